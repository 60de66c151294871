//===- Strategy.cpp - Which point to try next -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "search/Strategy.h"
#include "search/Evolution.h"
#include "search/Random.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace pto::search {

void Strategy::addSeeds(ArrayRef<Point> points) {
  std::vector<Point> reversed(points.rbegin(), points.rend());
  seeds.insert(seeds.begin(), reversed.begin(), reversed.end());
}

std::vector<Point> Strategy::propose(unsigned count) {
  std::vector<Point> points;
  while (points.size() < count && !seeds.empty()) {
    if (take(seeds.back()))
      points.push_back(std::move(seeds.back()));
    seeds.pop_back();
  }
  while (points.size() < count) {
    std::optional<Point> point = proposeOne();
    if (!point)
      break;
    points.push_back(std::move(*point));
  }
  return points;
}

void Strategy::observe(const Point &point, std::optional<double> time) {
  known.insert(space.hash(point));
  observed(point, time);
}

bool Strategy::isKnown(const Point &point) const {
  return known.count(space.hash(point)) != 0;
}

bool Strategy::take(const Point &point) {
  if (isKnown(point) || space.refusal(point))
    return false;
  known.insert(space.hash(point));
  return true;
}

ArrayRef<StringRef> strategyNames() {
  static const StringRef names[] = {"evolution", "random"};
  return names;
}

Expected<std::unique_ptr<Strategy>>
makeStrategy(StringRef name, const Space &space,
             const StrategyOptions &options) {
  if (!is_contained(strategyNames(), name))
    return createStringError("unknown search strategy '" + name +
                             "': " + join(strategyNames(), ", "));
  // Without replacement, random order is an exhaustive search as well.
  if (name == "random" || space.size() <= options.expectedTrials)
    return std::make_unique<Random>(space, options.seed);
  return std::make_unique<Evolution>(space, options);
}

} // namespace pto::search
