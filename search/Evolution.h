//===- Evolution.h - Vary what was fast -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Keeps the fastest points seen. A new point is a child of one or two of them
// that won a tournament: crossed knob by knob, then changed in a few knobs,
// ordered ones mostly to a neighbouring value. Starts with the seeds and some
// random points, and never stops trying random ones. Values that have only ever
// failed are avoided.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SEARCH_EVOLUTION_H
#define PTO_SEARCH_EVOLUTION_H

#include "search/Random.h"
#include "search/Rng.h"
#include "search/Strategy.h"

namespace pto::search {

class Evolution : public Strategy {
public:
  Evolution(const Space &space, const StrategyOptions &options);

protected:
  std::optional<Point> proposeOne() override;
  void observed(const Point &point, std::optional<double> time) override;

private:
  struct Member {
    Point point;
    double time;
  };
  /// How often a knob's value was tried, and how often that failed.
  struct Tally {
    unsigned tried = 0, failed = 0;
  };

  /// The faster of a few random members.
  const Member &tournament();
  Point makeChild();
  void mutateKnob(Point &point, unsigned knob);
  Point cross(const Point &a, const Point &b);
  /// True, by chance, for points with a value that mostly failed.
  bool looksBad(const Point &point);
  std::optional<Point> proposeRandom();
  std::optional<Point> drawFrom(Sampler &sampler);
  std::optional<Point> proposeChild();

  Rng rng;
  std::vector<Sampler> samplers; ///< One for each branch.
  CostModel *model;
  std::vector<Member> population; ///< Fastest first.
  std::vector<Point> passedOver;  ///< Drawn, but they looked bad.
  unsigned observations = 0;
  std::vector<std::vector<std::vector<Tally>>>
      tallies; ///< [branch][knob][choice]
};

} // namespace pto::search

#endif // PTO_SEARCH_EVOLUTION_H
