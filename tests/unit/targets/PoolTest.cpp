//===- PoolTest.cpp - The artifact's thread pool --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extern "C" {
#include "targets/cpu/runtime/pool.h"
}
#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace {

struct Pool {
  explicit Pool(int threads) : pool(pto_pool_create(threads)) {}
  ~Pool() { pto_pool_destroy(pool); }
  template <typename Body> void run(int64_t n, Body body) {
    pto_pool_run(
        pool, n, [](void *arg, int64_t i) { (*static_cast<Body *>(arg))(i); },
        &body);
  }
  pto_pool *pool;
};

TEST(Pool, EachIterationOnceManyLoops) {
  Pool pool(4);
  // Plain ints: under ThreadSanitizer this also shows that loops are ordered.
  std::vector<int> counts(257);
  for (int round = 1; round <= 2000; ++round) {
    int64_t n = 1 + round % 257;
    pool.run(n, [&](int64_t i) { ++counts[i]; });
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += counts[i];
    std::fill(counts.begin(), counts.end(), 0);
    ASSERT_EQ(n, sum);
  }
}

TEST(Pool, EmptyAndSingle) {
  Pool pool(3);
  int count = 0;
  pool.run(0, [&](int64_t) { ++count; });
  pool.run(-1, [&](int64_t) { ++count; });
  EXPECT_EQ(0, count);
  pool.run(1, [&](int64_t i) { count += 1 + i; });
  EXPECT_EQ(1, count);
}

TEST(Pool, WorkersTakePart) {
  Pool pool(2);
  // Two iterations that wait for each other finish only on two threads.
  std::atomic<int> arrived{0};
  pool.run(2, [&](int64_t) {
    ++arrived;
    while (arrived < 2)
      std::this_thread::yield();
  });
  EXPECT_EQ(2, arrived);
}

TEST(Pool, WakesUpAfterSleeping) {
  Pool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> arrived{0};
    pool.run(2, [&](int64_t) {
      ++arrived;
      while (arrived < 2)
        std::this_thread::yield();
    });
    // Longer than workers spin.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(Pool, ManyPoolsSideBySide) {
  std::vector<std::thread> users;
  std::atomic<int64_t> total{0};
  for (int user = 0; user < 4; ++user)
    users.emplace_back([&] {
      Pool pool(3);
      for (int round = 0; round < 200; ++round)
        pool.run(16, [&](int64_t) { ++total; });
    });
  for (std::thread &user : users)
    user.join();
  EXPECT_EQ(4 * 200 * 16, total);
}

TEST(Pool, CreatedAndDestroyedWithoutALoop) {
  for (int i = 0; i < 100; ++i)
    Pool pool(8);
}

} // namespace
