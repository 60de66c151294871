//===- Evolution.cpp - Vary what was fast ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "search/Evolution.h"
#include "search/CostModel.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace llvm;

namespace pto::search {
namespace {

// Chosen on the functions of tests/unit/search/EvolutionTest.cpp; none of them
// matters by a factor of two.
constexpr unsigned minWarmup = 12;      ///< Results before the first child.
constexpr size_t maxPopulation = 16;    ///< Members kept.
constexpr unsigned tournamentSize = 4;  ///< Entrants.
constexpr double randomRate = 0.1;      ///< Of proposals, for ever.
constexpr double crossRate = 0.3;       ///< Children with two parents.
constexpr double branchRate = 0.05;     ///< Children moved to another branch.
constexpr double neighbourRate = 0.8;   ///< Ordered knobs: one step up or down.
constexpr double anotherKnobRate = 0.3; ///< One knob more is changed.
constexpr unsigned maxAttempts = 200;   ///< Children before a random point.
constexpr unsigned maxDraws = 50000;    ///< Random points before the end.
constexpr unsigned oversampling = 16;   ///< Children per choice of the model.
constexpr unsigned fewTries = 4;        ///< Below, a value is given a chance.

} // namespace

Evolution::Evolution(const Space &space, const StrategyOptions &options)
    : Strategy(space), rng(options.seed ^ 0x65766f6c7574696f),
      model(options.model) {
  for (const Branch &branch : space.getBranches()) {
    samplers.emplace_back(space, unsigned(samplers.size()), options.seed);
    tallies.emplace_back();
    for (const Knob &knob : branch.knobs)
      tallies.back().emplace_back(knob.options.size());
  }
}

void Evolution::observed(const Point &point, std::optional<double> time) {
  ++observations;
  for (auto [i, choice] : llvm::enumerate(point.choices)) {
    Tally &tally = tallies[point.branch][i][choice];
    ++tally.tried;
    tally.failed += !time;
  }
  if (model)
    model->add(space, point, time);
  if (!time)
    return;
  // A point that was timed again (a confirmation) counts with its last time.
  llvm::erase_if(population,
                 [&](const Member &member) { return member.point == point; });
  auto after = llvm::find_if(
      population, [&](const Member &member) { return member.time > *time; });
  population.insert(after, {point, *time});
  if (population.size() > maxPopulation)
    population.pop_back();
}

std::optional<Point> Evolution::proposeOne() {
  // A few results of every branch before the first child.
  size_t warmup = std::max<size_t>(minWarmup, 3 * samplers.size());
  if (observations < warmup || population.empty() || rng.chance(randomRate))
    if (std::optional<Point> point = proposeRandom())
      return point;
  if (!population.empty())
    if (std::optional<Point> point = proposeChild())
      return point;
  return proposeRandom();
}

std::optional<Point> Evolution::proposeRandom() {
  // All branches alike: a script with few knobs has few points, but may win.
  unsigned count = samplers.size();
  unsigned start = count ? rng.below(count) : 0;
  for (unsigned i = 0; i < count; ++i)
    if (std::optional<Point> point = drawFrom(samplers[(start + i) % count]))
      return point;
  // What looked bad is all that is left.
  while (!passedOver.empty()) {
    Point point = std::move(passedOver.back());
    passedOver.pop_back();
    if (take(point))
      return point;
  }
  return std::nullopt;
}

std::optional<Point> Evolution::drawFrom(Sampler &sampler) {
  for (unsigned i = 0; i < maxDraws; ++i) {
    std::optional<Point> point = sampler.draw();
    if (!point)
      break;
    if (isKnown(*point) || space.refusal(*point))
      continue;
    if (looksBad(*point))
      passedOver.push_back(std::move(*point));
    else if (take(*point))
      return point;
  }
  return std::nullopt;
}

std::optional<Point> Evolution::proposeChild() {
  bool ranked = model && model->isReady();
  size_t wanted = ranked ? oversampling : 1;
  std::vector<Point> children;
  for (unsigned i = 0; i < maxAttempts && children.size() < wanted; ++i) {
    Point child = makeChild();
    if (isKnown(child) || space.refusal(child) || looksBad(child) ||
        is_contained(children, child))
      continue;
    children.push_back(std::move(child));
  }
  if (children.empty())
    return std::nullopt;
  size_t best = 0;
  if (ranked) {
    std::vector<double> guesses = model->predict(space, children);
    best = std::min_element(guesses.begin(), guesses.end()) - guesses.begin();
  }
  if (!take(children[best]))
    return std::nullopt;
  return children[best];
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

const Evolution::Member &Evolution::tournament() {
  // The population is sorted, so the least index is the fastest entrant.
  size_t best = population.size() - 1;
  for (unsigned i = 0; i < tournamentSize; ++i)
    best = std::min<size_t>(best, rng.below(population.size()));
  return population[best];
}

Point Evolution::makeChild() {
  Point child = tournament().point;
  if (rng.chance(crossRate))
    child = cross(child, tournament().point);
  size_t branches = space.getBranches().size();
  if (branches > 1 && rng.chance(branchRate))
    child = space.moveTo(rng.below(branches), child);
  if (child.choices.empty())
    return child;
  do
    mutateKnob(child, rng.below(child.choices.size()));
  while (rng.chance(anotherKnobRate));
  return child;
}

void Evolution::mutateKnob(Point &point, unsigned index) {
  const Knob &knob = space.getBranches()[point.branch].knobs[index];
  unsigned &choice = point.choices[index];
  unsigned options = knob.options.size();
  if (options < 2)
    return;
  if (knob.isOrdered() && rng.chance(neighbourRate)) {
    bool up = choice == 0 || (choice + 1 < options && rng.chance(0.5));
    choice = up ? choice + 1 : choice - 1;
    return;
  }
  unsigned other = rng.below(options - 1);
  choice = other + (other >= choice);
}

Point Evolution::cross(const Point &a, const Point &b) {
  Point mate = b.branch == a.branch ? b : space.moveTo(a.branch, b);
  Point child = a;
  for (auto [choice, other] : llvm::zip_equal(child.choices, mate.choices))
    if (rng.chance(0.5))
      choice = other;
  return child;
}

bool Evolution::looksBad(const Point &point) {
  double risk = 0;
  for (auto [i, choice] : llvm::enumerate(point.choices)) {
    const Tally &tally = tallies[point.branch][i][choice];
    if (tally.tried >= fewTries)
      risk = std::max(risk, double(tally.failed) / tally.tried);
  }
  // Half of the points with a value fail for another value's sake, so moderate
  // rates say little: square them.
  return risk > 0 && rng.chance(0.95 * risk * risk);
}

} // namespace pto::search
