//===- StrategyTest.cpp - What strategies promise, and how well they do ---===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "search/CostModel.h"
#include "search/Evolution.h"
#include "search/Random.h"
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace llvm;
using namespace pto::search;

namespace {

/// Like a tiled matmul: smooth in the logarithms of sizes, a cliff where tiles
/// leave the cache, an order that matters, register pressure that fails, and
/// few good points among 98,304.
Space kernelSpace() {
  Space space;
  std::vector<Value> tiles = {8, 16, 32, 64, 128, 256, 512, 1024};
  space.addBranch({"matmul",
                   {{"tile_m", tiles, 0},
                    {"tile_n", tiles, 0},
                    {"tile_k", tiles, 0},
                    {"mr", {1, 2, 4, 6, 8, 12, 14, 16}, 0},
                    {"nr", {8, 16, 32, 64}, 0},
                    {"order", {"mnk", "mkn", "nmk", "nkm", "kmn", "knm"}, 0}},
                   [](const Assignment &a) -> std::optional<std::string> {
                     if (a.integer("mr") > a.integer("tile_m"))
                       return "mr is larger than tile_m";
                     return std::nullopt;
                   }});
  return space;
}

std::optional<double> kernelTime(const Space &space, const Point &point) {
  Assignment a(space, point);
  double m = a.integer("tile_m"), n = a.integer("tile_n"),
         k = a.integer("tile_k"), mr = a.integer("mr"), nr = a.integer("nr");
  if (mr * nr / 16 > 28)
    return std::nullopt; // no registers left: wrong or crashed
  double time = 100;
  double footprint = m * k + k * n + m * n;
  time *= 1 + 0.3 * std::abs(std::log2(footprint / 65536.0));
  if (footprint * 4 > 1 << 21)
    time *= 2.5;
  time *= 1 + 0.5 * std::abs(std::log2(mr * nr / 384.0));
  time *= a.text("order") == "nkm" ? 1 : a.text("order")[0] == 'n' ? 1.3 : 1.7;
  time *= 1 + 0.2 * std::abs(std::log2(k / 128));
  return time;
}

using Function =
    std::function<std::optional<double>(const Space &, const Point &)>;

/// Best time after `trials` in batches of 8, starting with the default.
double bestFound(Strategy &strategy, const Function &f, unsigned trials) {
  double best = INFINITY;
  strategy.addSeeds(strategy.getSpace().defaultPoint(0));
  for (unsigned done = 0; done < trials;) {
    std::vector<Point> batch = strategy.propose(std::min(8u, trials - done));
    if (batch.empty())
      break;
    for (const Point &point : batch) {
      std::optional<double> time = f(strategy.getSpace(), point);
      if (time)
        best = std::min(best, *time);
      strategy.observe(point, time);
      ++done;
    }
  }
  return best;
}

std::unique_ptr<Strategy> make(StringRef name, const Space &space,
                               StrategyOptions options = {}) {
  auto strategy = makeStrategy(name, space, options);
  if (!strategy) {
    ADD_FAILURE() << toString(strategy.takeError());
    abort();
  }
  return std::move(*strategy);
}

class EveryStrategy : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Strategy, EveryStrategy,
                         testing::Values("random", "evolution"));

} // namespace

TEST_P(EveryStrategy, ProposesLegalPointsOnce) {
  Space space = kernelSpace();
  auto strategy = make(GetParam(), space, {3});
  std::set<uint64_t> seen;
  for (int round = 0; round < 60; ++round)
    for (const Point &point : strategy->propose(10)) {
      EXPECT_EQ(space.refusal(point), std::nullopt);
      EXPECT_TRUE(seen.insert(space.indexOf(point)).second);
      strategy->observe(point, kernelTime(space, point));
    }
  EXPECT_EQ(seen.size(), 600u);
}

TEST_P(EveryStrategy, SearchesASmallSpaceToTheEnd) {
  Space space;
  space.addBranch({"a",
                   {{"x", {1, 2, 3, 4, 5}, 0}, {"y", {"p", "q"}, 0}},
                   [](const Assignment &a) -> std::optional<std::string> {
                     if (a.integer("x") == 3)
                       return "no";
                     return std::nullopt;
                   }});
  space.addBranch({"b", {}, {}});
  auto strategy = make(GetParam(), space);
  std::set<uint64_t> seen;
  while (true) {
    std::vector<Point> points = strategy->propose(3);
    if (points.empty())
      break;
    for (const Point &point : points) {
      seen.insert(space.indexOf(point));
      // Everything but one fails: failures must not hide what is left.
      bool good = point == Point{0, {4, 1}};
      strategy->observe(point, good ? std::optional(1.0) : std::nullopt);
    }
  }
  EXPECT_EQ(seen.size(), 9u);
}

TEST_P(EveryStrategy, RepeatsUnderItsSeed) {
  Space space = kernelSpace();
  auto run = [&](uint64_t seed) {
    auto strategy = make(GetParam(), space, {seed});
    std::vector<uint64_t> order;
    for (int round = 0; round < 20; ++round)
      for (const Point &point : strategy->propose(7)) {
        order.push_back(space.indexOf(point));
        strategy->observe(point, kernelTime(space, point));
      }
    return order;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST_P(EveryStrategy, SeedsComeFirstUnlessKnownOrIllegal) {
  Space space = kernelSpace();
  auto strategy = make(GetParam(), space);
  Point a = space.defaultPoint(0), known = a, illegal = a, b = a;
  known.choices[1] = 3;
  illegal.choices[3] = 7; // mr = 16 > tile_m = 8
  b.choices[2] = 2;
  strategy->observe(known, 10.0);
  strategy->addSeeds({a, known, illegal, b, a});
  std::vector<Point> points = strategy->propose(3);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0], a);
  EXPECT_EQ(points[1], b);
}

TEST_P(EveryStrategy, ASpaceThatIsRefusedAltogetherEnds) {
  Space space;
  Branch branch{"x", {}, [](const Assignment &) {
                  return std::optional<std::string>("never");
                }};
  for (int i = 0; i < 9; ++i)
    branch.knobs.push_back({"k" + std::to_string(i), {1, 2, 3, 4, 5}, 0});
  space.addBranch(branch);
  auto strategy = make(GetParam(), space);
  EXPECT_TRUE(strategy->propose(4).empty());
}

TEST_P(EveryStrategy, SpacesBeyond64Bits) {
  Space space;
  Branch branch{"x", {}, {}};
  for (int i = 0; i < 40; ++i)
    branch.knobs.push_back({"k" + std::to_string(i), {1, 2, 3, 4}, 0});
  space.addBranch(branch);
  auto strategy = make(GetParam(), space);
  std::vector<Point> points = strategy->propose(50);
  EXPECT_EQ(points.size(), 50u);
}

TEST(Strategy, SmallSpacesAreSearchedInRandomOrder) {
  Space space = kernelSpace();
  StrategyOptions options;
  options.expectedTrials = space.size();
  auto whole = make("evolution", space, options);
  EXPECT_NE(dynamic_cast<Random *>(whole.get()), nullptr);
  options.expectedTrials = 100;
  auto part = make("evolution", space, options);
  EXPECT_NE(dynamic_cast<Evolution *>(part.get()), nullptr);
  auto unknown = makeStrategy("annealing", space, {});
  EXPECT_EQ(toString(unknown.takeError()),
            "unknown search strategy 'annealing': evolution, random");
}

TEST(Evolution, BeatsRandomOnAStructuredFunction) {
  Space space = kernelSpace();
  double optimum = INFINITY;
  for (uint64_t i = 0; i < space.size(); ++i)
    if (!space.refusal(space.at(i)))
      if (auto time = kernelTime(space, space.at(i)))
        optimum = std::min(optimum, *time);
  constexpr unsigned seeds = 30, trials = 150;
  double logRandom = 0, logEvolution = 0;
  unsigned wins = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    double random =
        bestFound(*make("random", space, {seed}), kernelTime, trials) / optimum;
    double evolved =
        bestFound(*make("evolution", space, {seed}), kernelTime, trials) /
        optimum;
    logRandom += std::log(random) / seeds;
    logEvolution += std::log(evolved) / seeds;
    wins += evolved <= random;
  }
  RecordProperty("random", std::to_string(std::exp(logRandom)));
  RecordProperty("evolution", std::to_string(std::exp(logEvolution)));
  printf("over the optimum, geometric mean of %u seeds, %u trials: random "
         "%.3f, evolution %.3f; evolution at least as good in %u\n",
         seeds, trials, std::exp(logRandom), std::exp(logEvolution), wins);
  EXPECT_LT(std::exp(logEvolution), 1.10);
  EXPECT_LT(logEvolution, 0.5 * logRandom);
  EXPECT_GE(wins, seeds * 8 / 10);
}

TEST(Evolution, DoesNotLoseToRandomWithoutStructure) {
  Space space = kernelSpace();
  Function noise = [](const Space &space, const Point &point) {
    return std::optional<double>(1 + (Rng::mix(space.indexOf(point)) >> 11) *
                                         0x1p-53);
  };
  double random = 0, evolved = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    random += bestFound(*make("random", space, {seed}), noise, 100);
    evolved += bestFound(*make("evolution", space, {seed}), noise, 100);
  }
  EXPECT_LT(evolved, random * 1.02);
}

TEST(Evolution, AvoidsValuesThatFail) {
  // A quarter of mr fails whatever else is chosen.
  Space space = kernelSpace();
  Function f = [](const Space &space, const Point &point) {
    return point.choices[3] >= 6 ? std::nullopt : kernelTime(space, point);
  };
  auto failures = [&](StringRef name) {
    unsigned failed = 0;
    Function counting = [&](const Space &space, const Point &point) {
      std::optional<double> time = f(space, point);
      failed += !time;
      return time;
    };
    for (uint64_t seed = 0; seed < 10; ++seed)
      bestFound(*make(name, space, {seed}), counting, 200);
    return failed;
  };
  EXPECT_LT(failures("evolution"), failures("random") / 2);
}

TEST(Evolution, FindsTheBetterBranch) {
  Space space = kernelSpace();
  Branch second = space.getBranches()[0];
  second.name = "matmul_packed";
  space.addBranch(second);
  Function f = [](const Space &space, const Point &point) {
    std::optional<double> time = kernelTime(space, point);
    if (time && point.branch == 0)
      *time *= 1.5;
    return time;
  };
  unsigned found = 0;
  for (uint64_t seed = 0; seed < 10; ++seed)
    found += bestFound(*make("evolution", space, {seed}), f, 150) < 150;
  EXPECT_GE(found, 9u);
}

TEST(Evolution, StoredTrialsAreAStart) {
  // What a killed run had found is neither proposed again nor forgotten.
  Space space = kernelSpace();
  Point good{0, {3, 3, 4, 5, 2, 3}};
  auto strategy = make("evolution", space, {1});
  for (uint64_t i = 0; i < 12; ++i) {
    Point point = good;
    point.choices[5] = i % 6;
    point.choices[0] = 3 + i / 6;
    strategy->observe(point, kernelTime(space, point));
  }
  unsigned near = 0;
  for (const Point &point : strategy->propose(50)) {
    EXPECT_FALSE(point == good);
    unsigned same = 0;
    for (size_t i = 0; i < 6; ++i)
      same += point.choices[i] == good.choices[i];
    near += same >= 3;
  }
  EXPECT_GE(near, 30u);
}

TEST(Evolution, AsksTheModel) {
  /// Knows the truth, and counts.
  struct Oracle : CostModel {
    unsigned added = 0, asked = 0;
    void add(const Space &, const Point &, std::optional<double>) override {
      ++added;
    }
    bool isReady() const override { return added >= 16; }
    std::vector<double> predict(const Space &space,
                                ArrayRef<Point> points) override {
      std::vector<double> guesses;
      for (const Point &point : points)
        guesses.push_back(kernelTime(space, point).value_or(1e9));
      asked += points.size();
      return guesses;
    }
  };
  Space space = kernelSpace();
  double with = 0, without = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Oracle oracle;
    with += bestFound(*make("evolution", space, {seed, 0, &oracle}), kernelTime,
                      60);
    EXPECT_EQ(oracle.added, 60u);
    EXPECT_GT(oracle.asked, 100u);
    without += bestFound(*make("evolution", space, {seed}), kernelTime, 60);
  }
  EXPECT_LT(with, 0.9 * without);
}
