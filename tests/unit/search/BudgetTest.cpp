//===- BudgetTest.cpp - Durations and a clock that is a variable ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "search/Budget.h"
#include <gtest/gtest.h>

using namespace llvm;
using namespace pto::search;

TEST(Budget, ParsesDurations) {
  auto seconds = [](StringRef text) {
    Expected<double> value = parseDuration(text);
    if (value)
      return *value;
    consumeError(value.takeError());
    return -1.0;
  };
  EXPECT_EQ(seconds("90s"), 90);
  EXPECT_EQ(seconds("10m"), 600);
  EXPECT_EQ(seconds("2h"), 7200);
  EXPECT_EQ(seconds("1h30m"), 5400);
  EXPECT_EQ(seconds("1.5h"), 5400);
  for (const char *bad : {"", "s", "10", "-5s", "0s", "5s1h", "1m1m", "10x",
                          "1..5h", "10 m", "m10", "1e9999s", "nan"})
    EXPECT_EQ(seconds(bad), -1) << bad;
  EXPECT_EQ(toString(parseDuration("ten").takeError()),
            "'ten' is not a duration: write 90s, 10m or 2h");
}

TEST(Budget, FormatsDurations) {
  EXPECT_EQ(formatDuration(42), "42s");
  EXPECT_EQ(formatDuration(59.7), "1m00s");
  EXPECT_EQ(formatDuration(185), "3m05s");
  EXPECT_EQ(formatDuration(3725), "1h02m");
  EXPECT_EQ(formatDuration(-1), "0s");
}

TEST(Budget, FollowsItsClock) {
  double now = 1000;
  Budget budget(60, [&] { return now; });
  EXPECT_EQ(budget.remaining(), 60);
  now += 45;
  EXPECT_EQ(budget.elapsed(), 45);
  EXPECT_TRUE(budget.hasRoomFor(15));
  EXPECT_FALSE(budget.hasRoomFor(16));
  now += 20;
  EXPECT_TRUE(budget.isSpent());
  EXPECT_EQ(budget.remaining(), 0);
}

TEST(Budget, CanBeEnded) {
  Budget budget(3600);
  EXPECT_FALSE(budget.isSpent());
  budget.end();
  EXPECT_TRUE(budget.isSpent());
}
