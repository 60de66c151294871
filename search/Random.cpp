//===- Random.cpp - Every point once, in random order ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "search/Random.h"

#include <algorithm>

namespace pto::search {

/// More points than Permutation orders.
static constexpr uint64_t hugeSpace = uint64_t(1) << 62;
/// Draws before a space counts as refused altogether: well under a second.
static constexpr unsigned maxDraws = 50000;

Sampler::Sampler(const Space &space, uint64_t seed)
    : Sampler(space, std::nullopt, space.size(), seed) {}

Sampler::Sampler(const Space &space, unsigned branch, uint64_t seed)
    : Sampler(space, branch, space.size(branch), seed) {}

Sampler::Sampler(const Space &space, std::optional<unsigned> branch,
                 uint64_t size, uint64_t seed)
    : space(space), branch(branch), size(size),
      order(std::min(size, hugeSpace), seed), rng(seed) {}

std::optional<Point> Sampler::draw() {
  if (size <= hugeSpace) {
    if (position >= size)
      return std::nullopt;
    uint64_t index = order(position++);
    return branch ? space.at(*branch, index) : space.at(index);
  }
  Point point;
  point.branch = branch ? *branch : rng.below(space.getBranches().size());
  for (const Knob &knob : space.getBranches()[point.branch].knobs)
    point.choices.push_back(rng.below(knob.options.size()));
  return point;
}

std::optional<Point> Random::proposeOne() {
  for (unsigned i = 0; i < maxDraws; ++i) {
    std::optional<Point> point = sampler.draw();
    if (!point)
      return std::nullopt;
    if (take(*point))
      return point;
  }
  return std::nullopt;
}

} // namespace pto::search
