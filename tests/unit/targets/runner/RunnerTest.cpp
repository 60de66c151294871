//===- RunnerTest.cpp -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/LoadedKernel.h"
#include "targets/runner/Pool.h"
#include "targets/runner/Timing.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace pto::targets;
namespace json = llvm::json;

namespace {
/// out[37] = x[37, 24] * w[24]: TestKernel.c.
struct RunnerTest : testing::Test {
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("pto", "ref", cache));
    auto add = [&](std::vector<int64_t> shape, Role role) {
      ArgumentSpec a;
      a.tensor = {DType::F32, std::move(shape)};
      a.role = role;
      signature.arguments.push_back(std::move(a));
    };
    add({37, 24}, Role::Input);
    add({24}, Role::Weight);
    add({37}, Role::Output);
    signature.reductionLength = 24;
    signature.flops = 2 * 37 * 24;
    WorkerCommand command;
    command.program = PTO_RUNNER;
    command.memoryBytes = int64_t(4) << 30;
    pool = std::make_unique<WorkerPool>(command, 1);
    Reply r = ask("reference", "good");
    ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
    ASSERT_EQ("ok", r.body.getString("outcome")->str()) << text(r);
  }
  void TearDown() override { llvm::sys::fs::remove(cache); }

  json::Object request(llvm::StringRef op) {
    TimingPolicy policy;
    policy.coldWeightBytes = 1 << 16;
    policy.coldDataBytes = 1 << 16;
    policy.minSampleNs = 1e5;
    policy.samples = 5;
    policy.dropAboveNs = dropAbove;
    return json::Object{
        {"op", op},
        {"kernel", json::Object{{"id", "test"},
                                {"seed", 1},
                                {"signature", signature.toJson()}}},
        {"cache", cache.str()},
        {"threads", 1},
        {"timing", policy.toJson()}};
  }
  static json::Object candidate(llvm::StringRef variant) {
    CandidateSpec spec;
    spec.object = (TEST_BIN "test-kernel-" + variant + ".so").str();
    if (variant == "packed") {
      spec.call.operands = {{false, 0}, {true, 0}, {false, 2}};
      spec.call.prepackArguments = {1};
      spec.call.prepackResults = {{DType::F32, {24}}};
    }
    return spec.toJson();
  }
  Reply ask(llvm::StringRef op, llvm::StringRef variant) {
    Job job;
    job.request = request(op);
    job.request["candidate"] = candidate(variant);
    return pool->run(std::move(job));
  }
  static std::string text(const Reply &r) {
    std::string s;
    llvm::raw_string_ostream(s)
        << r.message << json::Value(json::Object(r.body));
    return s;
  }
  void expectWrong(llvm::StringRef variant, llvm::StringRef part) {
    Reply r = ask("measure", variant);
    ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
    EXPECT_EQ("wrong-result", r.body.getString("outcome")->str()) << text(r);
    EXPECT_TRUE(r.body.getString("message")->contains(part)) << text(r);
    EXPECT_FALSE(r.body.get("samples_ns"));
  }

  llvm::SmallString<64> cache;
  KernelSignature signature;
  double dropAbove = 0;
  std::unique_ptr<WorkerPool> pool;
};
} // namespace

TEST_F(RunnerTest, goodIsTimed) {
  Reply r = ask("measure", "good");
  ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
  EXPECT_EQ("ok", r.body.getString("outcome")->str()) << text(r);
  const json::Array *samples = r.body.getArray("samples_ns");
  ASSERT_TRUE(samples) << text(r);
  EXPECT_LE(5u, samples->size()); // More while the least is not stable.
  for (const json::Value &v : *samples) {
    EXPECT_GT(*v.getAsNumber(), 10);  // 888 multiply-adds take longer,
    EXPECT_LT(*v.getAsNumber(), 1e6); // and no millisecond.
  }
  EXPECT_GT(*r.body.getNumber("tolerance"), 0);
}

TEST_F(RunnerTest, packedWeights) {
  Reply r = ask("measure", "packed");
  ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
  EXPECT_EQ("ok", r.body.getString("outcome")->str()) << text(r);
}

TEST_F(RunnerTest, wrongResults) {
  expectWrong("half", "[18] was not written");
  expectWrong("overrun", "outside of its bounds");
  expectWrong("underrun", "outside of its bounds");
  expectWrong("input", "an input, was written");
#if defined(__x86_64__)
  expectWrong("mode", "floating-point mode");
#endif
}

TEST_F(RunnerTest, crashNamesWhatRan) {
  Reply r = ask("measure", "crash");
  EXPECT_EQ(ReplyStatus::Crashed, r.status);
  EXPECT_TRUE(llvm::StringRef(r.message).contains("running the kernel"))
      << r.message;
  // The next runner finds the reference in the cache file.
  r = ask("measure", "good");
  ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
  EXPECT_EQ("ok", r.body.getString("outcome")->str()) << text(r);
}

TEST_F(RunnerTest, slowIsDroppedEarly) {
  dropAbove = 100e3;
  Reply r = ask("measure", "slow");
  ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
  EXPECT_EQ("ok", r.body.getString("outcome")->str()) << text(r);
  EXPECT_EQ(1u, r.body.getArray("samples_ns")->size());
}

TEST_F(RunnerTest, compareTakesTurns) {
  Job job;
  job.request = request("compare");
  job.request["candidates"] =
      json::Array{candidate("good"), candidate("slow"), candidate("packed")};
  job.request["rounds"] = 4;
  job.request["seconds"] = 0.02; // Too little for 4 rounds of the slow one.
  Reply r = pool->run(std::move(job));
  ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
  const json::Array *all = r.body.getArray("samples_ns");
  ASSERT_TRUE(all) << text(r);
  ASSERT_EQ(3u, all->size());
  for (const json::Value &v : *all)
    EXPECT_GE(v.getAsArray()->size(), 3u);
  EXPECT_GT(*(*(*all)[1].getAsArray())[0].getAsNumber(), 2e6);
}

TEST_F(RunnerTest, missingObject) {
  Reply r = ask("measure", "nonexistent");
  ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
  EXPECT_EQ("compile-failed", r.body.getString("outcome")->str());
  EXPECT_TRUE(r.body.getString("message")->contains("nonexistent.so"));
}

TEST_F(RunnerTest, peakIsPlausible) {
  Job job;
  job.request = json::Object{{"op", "peak"}, {"threads", 1}};
  Reply r = pool->run(std::move(job));
  ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
  EXPECT_GT(*r.body.getNumber("gflops"), 1);
  EXPECT_LT(*r.body.getNumber("gflops"), 2000);
  EXPECT_GT(*r.body.getNumber("gbytes"), 0.5);
}
