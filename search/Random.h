//===- Random.h - Every point once, in random order -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The baseline that other strategies must beat, and the exhaustive search of
// small spaces.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SEARCH_RANDOM_H
#define PTO_SEARCH_RANDOM_H

#include "search/Rng.h"
#include "search/Strategy.h"

namespace pto::search {

/// Draws points of a space in a random order, each at most once (in spaces of
/// more than 2^62 points: each practically at most once).
class Sampler {
public:
  Sampler(const Space &space, uint64_t seed);
  /// Only points of this branch.
  Sampler(const Space &space, unsigned branch, uint64_t seed);
  /// The next point, or nothing when all were drawn.
  std::optional<Point> draw();

private:
  Sampler(const Space &space, std::optional<unsigned> branch, uint64_t size,
          uint64_t seed);

  const Space &space;
  std::optional<unsigned> branch;
  uint64_t size;
  Permutation order;
  Rng rng;
  uint64_t position = 0;
};

class Random : public Strategy {
public:
  Random(const Space &space, uint64_t seed)
      : Strategy(space), sampler(space, seed) {}

protected:
  std::optional<Point> proposeOne() override;
  void observed(const Point &, std::optional<double>) override {}

private:
  Sampler sampler;
};

} // namespace pto::search

#endif // PTO_SEARCH_RANDOM_H
