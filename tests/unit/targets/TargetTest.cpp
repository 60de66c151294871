//===- TargetTest.cpp - Target specs and host facts -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "targets/Target.h"
#include "targets/Features.h"
#include "targets/Host.h"
#include "llvm/ADT/StringRef.h"
#include <gtest/gtest.h>
#include <sched.h>

using namespace pto::targets;

namespace {

std::string failure(llvm::StringRef spec) {
  auto target = parseTarget(spec);
  return target ? "" : llvm::toString(target.takeError());
}

TEST(Target, HostHasPlausibleFacts) {
  Target host = llvm::cantFail(parseTarget("cpu"));
  EXPECT_TRUE(host.isHost);
  EXPECT_FALSE(host.cpu.empty());
  EXPECT_FALSE(host.model.empty());
  EXPECT_GE(host.cores, 1u);
  EXPECT_GE(host.l1Bytes, 8 << 10);
  EXPECT_GE(host.l2Bytes, host.l1Bytes);
  EXPECT_EQ(host.fingerprint(), detectHost().fingerprint());
}

TEST(Target, CoresHonourAffinity) {
  cpu_set_t before, one;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof(before), &before));
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &before)) {
      CPU_SET(i, &one);
      break;
    }
  ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
  EXPECT_EQ(1u, detectHost().cores);
  ASSERT_EQ(0, sched_setaffinity(0, sizeof(before), &before));
}

TEST(Target, CrossTargetsAreComplete) {
  struct {
    const char *spec, *isa;
    unsigned bits;
  } const rows[] = {{"cpu,arch=x86-64-v3", "avx2", 256},
                    {"cpu,arch=x86-64-v4", "avx512", 512},
                    {"cpu,arch=armv8-a", "neon", 128}};
  for (const auto &row : rows) {
    Target target = llvm::cantFail(parseTarget(row.spec));
    EXPECT_EQ(row.isa, target.isa);
    EXPECT_EQ(row.bits, target.vectorBits);
    EXPECT_NE(0u, codeFeatureMask(target)) << row.spec;
  }
}

TEST(Target, FingerprintsDiffer) {
  std::string v3 =
      llvm::cantFail(parseTarget("cpu,arch=x86-64-v3")).fingerprint();
  std::string v4 =
      llvm::cantFail(parseTarget("cpu,arch=x86-64-v4")).fingerprint();
  EXPECT_NE(v3, v4);
}

TEST(Target, MissingFeatureMeansItDoesNotRun) {
  Target v3 = llvm::cantFail(parseTarget("cpu,arch=x86-64-v3"));
  Target v4 = llvm::cantFail(parseTarget("cpu,arch=x86-64-v4"));
  EXPECT_TRUE(runsOn(v3, v4));
  EXPECT_FALSE(runsOn(v4, v3));
}

TEST(Target, BadSpecsListWhatIsKnown) {
  EXPECT_NE(std::string::npos, failure("gpu9").find("known: cpu"));
  EXPECT_NE(std::string::npos, failure("cpu,arch=z80").find("x86-64-v3"));
  EXPECT_NE(std::string::npos, failure("cpu,colour=red").find("known: arch"));
}

} // namespace
