//===- RecordTest.cpp - Words, JSON and hashes ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "db/Record.h"
#include "db/Nearest.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace pto::db;

TEST(Record, OutcomesHaveTheWordsOfTheFormat) {
  const char *words[] = {
      "ok",        "illegal", "transform-failed", "compile-failed",
      "too-large", "timeout", "crashed",          "wrong-result"};
  ASSERT_EQ(allOutcomes().size(), std::size(words));
  for (auto [outcome, word] : llvm::zip(allOutcomes(), words)) {
    EXPECT_EQ(toString(outcome), word);
    EXPECT_EQ(parseOutcome(word), outcome);
  }
  EXPECT_EQ(parseOutcome("OK"), std::nullopt);
  EXPECT_EQ(parseEvidence("measured"), Evidence::Measured);
  EXPECT_EQ(parseEvidence(""), std::nullopt);
}

TEST(Record, JsonHasOneSpelling) {
  auto a = canonicalJson("{ \"tile_n\": 32, \"tile_m\": 1.0, \"s\": \"x\"}");
  ASSERT_TRUE(bool(a));
  EXPECT_EQ(*a, R"({"s":"x","tile_m":1,"tile_n":32})");
  auto bad = canonicalJson("{");
  EXPECT_FALSE(bool(bad));
  llvm::consumeError(bad.takeError());
}

TEST(Record, HashIsStable) {
  // The first half of SHA-256(""): written to files, so it must never change.
  EXPECT_EQ(hashText(""), "e3b0c44298fc1c149afbf4c8996fb924");
  EXPECT_NE(hashText("a"), hashText("b"));
}

TEST(Record, SamplesGiveBestAndMedian) {
  Trial trial;
  trial.outcome = Outcome::Crashed;
  trial.setSamples({4, 2, 8, 3});
  EXPECT_EQ(trial.outcome, Outcome::Ok);
  EXPECT_EQ(trial.bestNs, 2);
  EXPECT_EQ(trial.medianNs, 3.5);
  EXPECT_EQ(trial.samplesNs.front(), 4) << "order is kept";
}

TEST(Nearest, SizesCountInDoublings) {
  double near = featureDistance(R"({"m":127,"n":63})", R"({"m":255,"n":63})");
  EXPECT_DOUBLE_EQ(near, 1);
  EXPECT_EQ(featureDistance(R"({"m":64})", R"({"m":64})"), 0);
}

TEST(Nearest, AnotherDtypeIsFurtherThanAnotherSize) {
  double size =
      featureDistance(R"({"m":64,"t":"f32"})", R"({"m":256,"t":"f32"})");
  double type =
      featureDistance(R"({"m":64,"t":"f32"})", R"({"m":64,"t":"i8"})");
  EXPECT_LT(size, type);
  EXPECT_GT(featureDistance(R"({"m":64,"t":"f32"})", R"({"m":64})"), 0);
}

TEST(Nearest, NoObjectIsInfinitelyFar) {
  EXPECT_TRUE(std::isinf(featureDistance("[]", "{}")));
  EXPECT_TRUE(std::isinf(featureDistance("{}", "{")));
}
