//===- TimingLockTest.cpp -------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/TimingLock.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace pto::targets;
using Mode = TimingLock::Mode;

TEST(TimingLock, excludes) {
  llvm::SmallString<64> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("pto", "lock", path));
  TimingLock a(path.str().str()), b(path.str().str());
  // The second look at `stop` gives up, so the first try counts.
  auto once = [n = 0]() mutable { return n++ > 0; };
  ASSERT_TRUE(a.acquire(Mode::Measure));
  EXPECT_FALSE(b.acquire(Mode::Measure, once));
  EXPECT_FALSE(b.acquire(Mode::Compile, once));
  a.release();
  ASSERT_TRUE(a.acquire(Mode::Compile));
  EXPECT_TRUE(b.acquire(Mode::Compile, once));
  EXPECT_FALSE(b.acquire(Mode::Measure, once));
  a.release();
  b.release();
  EXPECT_TRUE(b.acquire(Mode::Measure, once));
  llvm::sys::fs::remove(path);
}

TEST(TimingLock, goesOnWithoutAFile) {
  TimingLock lock("/nonexistent/folder/lock");
  EXPECT_FALSE(lock.works());
  EXPECT_TRUE(lock.acquire(Mode::Measure));
}
