//===- MemoryPlanTest.cpp - Offsets in one arena --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/main/MemoryPlan.h"
#include <gtest/gtest.h>
#include <random>

using namespace pto::lowering;

namespace {

bool meet(const LiveBuffer &a, const LiveBuffer &b) {
  return a.first <= b.last && b.first <= a.last;
}

void expectValid(const std::vector<LiveBuffer> &buffers,
                 const MemoryPlan &plan) {
  ASSERT_EQ(buffers.size(), plan.offsets.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(0, plan.offsets[i] % 64);
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_LE(plan.offsets[i] + buffers[i].size, plan.total);
    for (size_t j = 0; j < i; ++j)
      if (meet(buffers[i], buffers[j])) {
        EXPECT_TRUE(plan.offsets[i] + buffers[i].size <= plan.offsets[j] ||
                    plan.offsets[j] + buffers[j].size <= plan.offsets[i] ||
                    !buffers[i].size || !buffers[j].size)
            << i << " and " << j << " overlap";
      }
  }
}

int64_t peak(const std::vector<LiveBuffer> &buffers) {
  int64_t peak = 0;
  for (const LiveBuffer &at : buffers) {
    int64_t sum = 0;
    for (const LiveBuffer &other : buffers)
      if (other.first <= at.first && at.first <= other.last)
        sum += (other.size + 63) / 64 * 64;
    peak = std::max(peak, sum);
  }
  return peak;
}

TEST(MemoryPlan, ChainReusesTwoBuffers) {
  std::vector<LiveBuffer> chain;
  for (int i = 0; i < 20; ++i)
    chain.push_back({1000, i, i + 1});
  MemoryPlan plan = planMemory(chain, 64);
  expectValid(chain, plan);
  EXPECT_EQ(2 * 1024, plan.total);
}

TEST(MemoryPlan, SmallBufferGoesIntoTheGap) {
  // 0 and 2 hold the ends; 1 dies early and leaves a gap that 3 fits.
  std::vector<LiveBuffer> buffers = {
      {4096, 0, 9}, {2048, 0, 3}, {1024, 0, 9}, {64, 5, 9}};
  MemoryPlan plan = planMemory(buffers, 64);
  expectValid(buffers, plan);
  EXPECT_EQ(4096 + 2048 + 1024, plan.total);
}

TEST(MemoryPlan, EmptyValuesTakeNothing) {
  std::vector<LiveBuffer> buffers = {{0, 0, 9}, {64, 0, 9}, {0, 3, 4}};
  MemoryPlan plan = planMemory(buffers, 64);
  expectValid(buffers, plan);
  EXPECT_EQ(64, plan.total);
}

TEST(MemoryPlan, RandomPlansAreValidAndTight) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<LiveBuffer> buffers;
    for (int i = 0; i < 40; ++i)
      buffers.push_back({static_cast<int64_t>(random() % 5000), i,
                         i + static_cast<int64_t>(random() % 6)});
    MemoryPlan plan = planMemory(buffers, 64);
    expectValid(buffers, plan);
    EXPECT_LE(plan.total, 2 * peak(buffers));
  }
}

TEST(MemoryPlan, SlotsSeparateWhatLivesTogether) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<LiveBuffer> buffers;
    for (int i = 0; i < 40; ++i)
      buffers.push_back({-1, i, i + static_cast<int64_t>(random() % 6)});
    std::vector<unsigned> slots = assignSlots(buffers);
    for (size_t i = 0; i < buffers.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (meet(buffers[i], buffers[j])) {
          EXPECT_NE(slots[i], slots[j]);
        }
    EXPECT_LE(*std::max_element(slots.begin(), slots.end()), 6u);
  }
}

} // namespace
