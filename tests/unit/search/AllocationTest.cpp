//===- AllocationTest.cpp - Time goes where it saves most -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "search/Allocation.h"
#include "search/Rng.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace pto::search;

namespace {

/// A kernel whose best time falls from `start` towards `end` as trials go on.
struct Curve {
  double calls, start, end, tau;
  double at(double trials) const {
    return end + (start - end) * std::exp(-trials / tau);
  }
};

/// Slices of 8 trials, a second each, to the kernels that `pick` names.
template <typename Pick>
double run(const std::vector<Curve> &curves, unsigned slices,
           Allocation &allocation, Pick pick) {
  for (const Curve &curve : curves)
    allocation.addTask(curve.calls, curve.start);
  for (unsigned s = 0; s < slices; ++s) {
    std::optional<unsigned> task = pick(s);
    if (!task)
      break;
    double trials = allocation.getTask(*task).trials + 8;
    allocation.report(*task, {8, 1, curves[*task].at(trials), false});
  }
  return allocation.modelNs();
}

double allocated(const std::vector<Curve> &curves, unsigned slices,
                 Allocation &allocation) {
  return run(curves, slices, allocation,
             [&](unsigned) { return allocation.next(); });
}

double inTurns(const std::vector<Curve> &curves, unsigned slices) {
  Allocation allocation;
  return run(curves, slices, allocation, [&](unsigned s) {
    return std::optional<unsigned>(s % curves.size());
  });
}

} // namespace

TEST(Allocation, EveryKernelGetsItsFloorLargestFirst) {
  Allocation allocation;
  allocation.addTask(1, 10);
  allocation.addTask(1, 1000);
  allocation.addTask(50, 100);
  std::vector<unsigned> order;
  for (int i = 0; i < 3; ++i) {
    unsigned task = *allocation.next();
    order.push_back(task);
    allocation.report(task, {8, 1, allocation.getTask(task).bestNs, false});
  }
  EXPECT_EQ(order, (std::vector<unsigned>{2, 1, 0}));
}

TEST(Allocation, TimeGoesWhereTheModelSaves) {
  // The same curve; one kernel is called a hundred times as often.
  std::vector<Curve> curves = {{100, 1000, 500, 60}, {1, 1000, 500, 60}};
  Allocation allocation;
  allocated(curves, 30, allocation);
  EXPECT_GT(allocation.getTask(0).trials, 4 * allocation.getTask(1).trials);
}

TEST(Allocation, LeavesAKernelThatStopsImproving) {
  // The large one is at its end after a few trials, the small one improves on.
  std::vector<Curve> curves = {{10, 1000, 990, 2}, {1, 3000, 500, 100}};
  Allocation allocation;
  allocated(curves, 40, allocation);
  EXPECT_GT(allocation.getTask(1).trials, allocation.getTask(0).trials);
}

TEST(Allocation, KernelsNearTheirBoundGetLittle) {
  Allocation allocation;
  allocation.addTask(1, 1000, /*boundNs=*/980);
  allocation.addTask(1, 900, /*boundNs=*/300);
  for (int i = 0; i < 8; ++i) {
    unsigned task = *allocation.next();
    allocation.report(task, {8, 1, allocation.getTask(task).bestNs, false});
  }
  EXPECT_EQ(allocation.getTask(0).trials, 8u);
}

TEST(Allocation, BeatsTakingTurns) {
  double gain = 0;
  unsigned worse = 0;
  constexpr unsigned models = 40;
  for (uint64_t seed = 0; seed < models; ++seed) {
    Rng rng(seed);
    std::vector<Curve> curves;
    for (int i = 0; i < 15; ++i) {
      double start = std::exp2(6 + 8 * rng.uniform());
      curves.push_back({1.0 + rng.below(6), start,
                        start * (0.3 + 0.7 * rng.uniform()),
                        10 + 150 * rng.uniform()});
    }
    Allocation allocation;
    double ours = allocated(curves, 90, allocation);
    double turns = inTurns(curves, 90);
    gain += std::log(turns / ours) / models;
    worse += ours > turns;
  }
  printf("whole model, geometric mean of %u models: taking turns / ours %.3f; "
         "worse in %u\n",
         models, std::exp(gain), worse);
  EXPECT_GT(std::exp(gain), 1.03);
  EXPECT_LE(worse, 2u);
}

TEST(Allocation, StopsWhenNothingImproves) {
  Allocation allocation;
  allocation.addTask(1, 1000);
  allocation.addTask(1, 1000);
  unsigned slices = 0;
  while (std::optional<unsigned> task = allocation.next()) {
    allocation.report(*task, {8, 1, 999, false}); // below the noise
    ASSERT_LT(++slices, 1000u);
  }
  EXPECT_EQ(slices, 2 * 96 / 8u);
  EXPECT_DOUBLE_EQ(allocation.modelNs(), 1998)
      << "the best counts all the same";
}

TEST(Allocation, SmallGainsAddUp) {
  Allocation allocation;
  allocation.addTask(1, 1000);
  double best = 1000;
  for (int i = 0; i < 60; ++i)
    allocation.report(0, {8, 1, best *= 0.996, false});
  EXPECT_FALSE(allocation.isDone(0));
}

TEST(Allocation, ExhaustedAndFailingKernelsEnd) {
  Allocation allocation;
  allocation.addTask(1, 1000);
  allocation.addTask(5, 0); // the default failed
  allocation.report(0, {3, 1, 900, /*exhausted=*/true});
  EXPECT_TRUE(allocation.isDone(0));
  unsigned slices = 0;
  while (std::optional<unsigned> task = allocation.next()) {
    EXPECT_EQ(*task, 1u);
    allocation.report(*task, {8, 1, 0, false});
    ASSERT_LT(++slices, 1000u);
  }
  EXPECT_EQ(slices, 96 / 8u);
  EXPECT_DOUBLE_EQ(allocation.modelNs(), 900);
}

TEST(Allocation, SharesAddUp) {
  Allocation allocation;
  allocation.addTask(2, 100);
  allocation.addTask(1, 300);
  EXPECT_DOUBLE_EQ(allocation.share(0), 0.4);
  EXPECT_DOUBLE_EQ(allocation.share(1), 0.6);
  EXPECT_EQ(Allocation().next(), std::nullopt);
}
