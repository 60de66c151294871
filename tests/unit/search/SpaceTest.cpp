//===- SpaceTest.cpp - Points, their texts and numbers --------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "search/Space.h"
#include "search/Rng.h"
#include <gtest/gtest.h>
#include <set>

using namespace llvm;
using namespace pto::search;

namespace {

Space twoBranches() {
  Space space;
  space.addBranch({"matmul/a",
                   {{"tile_m", {4, 8, 16}, 1}, {"order", {"mn", "nm"}, 0}},
                   [](const Assignment &a) -> std::optional<std::string> {
                     if (a.integer("tile_m") == 16 && a.text("order") == "nm")
                       return "tile_m = 16 needs order = mn";
                     return std::nullopt;
                   }});
  space.addBranch({"matmul/b", {{"tile_m", {1, 2, 10}, 0}, {"u", {1}, 0}}, {}});
  return space;
}

std::string message(Error error) { return toString(std::move(error)); }

} // namespace

TEST(Space, CountsAndNumbersItsPoints) {
  Space space = twoBranches();
  ASSERT_EQ(space.size(), 9u);
  std::set<std::string> texts;
  for (uint64_t i = 0; i < space.size(); ++i) {
    Point point = space.at(i);
    EXPECT_EQ(space.indexOf(point), i);
    texts.insert(std::to_string(point.branch) + space.toJson(point));
  }
  EXPECT_EQ(texts.size(), 9u);
}

TEST(Space, HugeSizesSaturate) {
  Space space;
  Branch branch{"x", {}, {}};
  for (int i = 0; i < 40; ++i)
    branch.knobs.push_back({"k" + std::to_string(i), {1, 2, 3, 4}, 0});
  space.addBranch(branch);
  EXPECT_EQ(space.size(), UINT64_MAX);
}

TEST(Space, PointsGoThroughJsonAndBack) {
  Space space = twoBranches();
  Point point{0, {2, 1}};
  EXPECT_EQ(space.toJson(point), R"({"order":"nm","tile_m":16})");
  auto back = space.fromJson(0, R"({ "tile_m": 16, "order": "nm" })");
  ASSERT_TRUE(bool(back));
  EXPECT_EQ(*back, point);
  EXPECT_EQ(
      message(space.fromJson(0, R"({"tile_m":5,"order":"mn"})").takeError()),
      "knob 'tile_m' has no option 5");
  EXPECT_EQ(
      message(space.fromJson(0, R"({"tile_m":"8","order":"mn"})").takeError()),
      "knob 'tile_m' has no option \"8\"");
  EXPECT_EQ(message(space.fromJson(0, R"({"tile_m":8})").takeError()),
            "no value for knob 'order'");
  EXPECT_EQ(
      message(space.fromJson(1, R"({"tile_m":1,"u":1,"v":1})").takeError()),
      "there is no knob 'v'");
  EXPECT_NE(message(space.fromJson(0, "[").takeError()), "");
}

TEST(Space, AdaptTakesTheNearestOption) {
  Space space = twoBranches();
  auto point = space.adapt(0, R"({"tile_m":13,"order":"mk","other":3})");
  ASSERT_TRUE(bool(point));
  EXPECT_EQ(space.toJson(*point), R"({"order":"mn","tile_m":16})");
  EXPECT_EQ(space.moveTo(1, *point), (Point{1, {2, 0}}));
  EXPECT_EQ(*space.adapt(0, "{}"), space.defaultPoint(0));
}

TEST(Space, ConstraintsGiveReasons) {
  Space space = twoBranches();
  EXPECT_EQ(space.refusal({0, {2, 1}}), "tile_m = 16 needs order = mn");
  EXPECT_EQ(space.refusal({0, {2, 0}}), std::nullopt);
  EXPECT_EQ(space.refusal({1, {2, 0}}), std::nullopt);
}

TEST(Space, HashAndEncodingAreStable) {
  Space space = twoBranches();
  EXPECT_NE(space.hash({0, {0, 0}}), space.hash({0, {0, 1}}));
  // Stored beside measurements by other tools: must never change.
  EXPECT_EQ(space.hash({0, {2, 1}}), twoBranches().hash({0, {2, 1}}));
  EXPECT_EQ(space.encode({1, {0, 0}}),
            (std::vector<double>{0, 1, -1, -1, 1, 1}));
  EXPECT_EQ(space.findBranch("matmul/b"), 1u);
  EXPECT_EQ(space.findBranch("matmul"), std::nullopt);
}

TEST(Rng, PermutationHitsEveryIndexOnce) {
  for (uint64_t size : {1, 2, 3, 64, 100, 1000}) {
    std::set<uint64_t> seen;
    Permutation order(size, 7);
    for (uint64_t i = 0; i < size; ++i)
      seen.insert(order(i));
    EXPECT_EQ(seen.size(), size);
    EXPECT_LT(*seen.rbegin(), size);
  }
  Permutation a(1000, 1), b(1000, 2);
  unsigned same = 0;
  for (uint64_t i = 0; i < 1000; ++i)
    same += a(i) == b(i);
  EXPECT_LT(same, 20u);
}

TEST(Rng, BelowIsEvenlySpread) {
  Rng rng(3);
  unsigned counts[7] = {};
  for (int i = 0; i < 7000; ++i)
    ++counts[rng.below(7)];
  for (unsigned count : counts)
    EXPECT_NEAR(count, 1000, 150);
}
