//===- KnobsTest.cpp - Options that depend on kernel and target -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "schedules/engine/Knobs.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace pto;
using namespace pto::schedules;

namespace {

targets::Target avx512() {
  targets::Target t;
  t.isa = "avx512";
  t.vectorBits = 512;
  t.vectorRegisters = 32;
  return t;
}

Knob resolve(llvm::StringRef options, const KernelFacts &facts,
             const targets::Target &target, unsigned threads = 1) {
  mlir::MLIRContext ctx;
  auto knob = resolveKnob("k", mlir::parseAttribute(options, &ctx), facts,
                          target, threads);
  EXPECT_TRUE(bool(knob)) << llvm::toString(knob.takeError());
  return knob ? *knob : Knob();
}

TEST(RegisterTile, FillsTheRegistersOfEachIsa) {
  // 14 x 2 accumulators on AVX-512, and nothing that spills on AVX2 or NEON.
  RegisterTile t = bestRegisterTile(56, 64, 16, 32);
  EXPECT_EQ(t.rows, 14);
  EXPECT_EQ(t.vectors, 2);
  for (int64_t m : {1, 7, 14, 49, 56, 128, 197})
    for (int64_t n : {10, 24, 64, 96, 1000})
      for (auto [width, registers] : {std::pair(16, 32), {8, 16}, {4, 32}})
        EXPECT_LE(registersFor(bestRegisterTile(m, n, width, registers)),
                  registers);
}

TEST(RegisterTile, PrefersRowsThatLeaveNoTail) {
  EXPECT_EQ(7, bestRegisterTile(7, 512, 16, 32).rows);
}

TEST(Knobs, ReadsListsIsaTablesAndBounds) {
  KernelFacts facts;
  facts.shape = {56, 64};
  targets::Target t = avx512();
  EXPECT_EQ(resolve("[8, 4]", facts, t).options,
            (std::vector<std::string>{"8", "4"}));
  EXPECT_EQ(resolve("{avx512 = [14], any = [6]}", facts, t).options[0], "14");
  t.isa = "generic";
  EXPECT_EQ(resolve("{avx512 = [14], any = [6]}", facts, t).options[0], "6");
  EXPECT_EQ(resolve("{lower_bound = 8 : i64, upper_bound = 64 : i64, divides "
                    "= 64 : i64}",
                    facts, t)
                .options,
            (std::vector<std::string>{"8", "16", "32", "64"}));
}

TEST(Knobs, SourcesFollowKernelAndTarget) {
  KernelFacts facts;
  facts.shape = {1, 7, 7, 10};
  Knob panel = resolve("{source = \"panel\"}", facts, avx512());
  EXPECT_EQ(panel.options, (std::vector<std::string>{"16"}));
  Knob threads = resolve("{source = \"threads\"}", facts, avx512(), 6);
  EXPECT_EQ(threads.options, (std::vector<std::string>{"1", "2", "4", "6"}));
  EXPECT_EQ(threads.options[threads.defaultIndex], "6");
  facts.shape = {128, 768};
  Knob rows = resolve("{source = \"block_rows\"}", facts, avx512());
  EXPECT_EQ(rows.options[rows.defaultIndex], "4");
}

/// The dim that an untuned build shares among two threads.
std::string parallelDim(KernelFacts facts) {
  Knob knob = resolve("{source = \"parallel_dim\"}", facts, avx512(), 2);
  return knob.options[knob.defaultIndex];
}

TEST(Knobs, ThreadsShareTheDimThatIsDoneFirst) {
  KernelFacts product;
  product.kind = "matmul";
  product.shape = {128, 768};
  product.batch = {false, false};
  product.reduction = 768;
  product.weightBytes = product.streamBytes = 300000;
  EXPECT_EQ(parallelDim(product), "0");
  // Each thread reads its own part of weights that no cache holds.
  product.weightBytes = 9 << 20;
  EXPECT_EQ(parallelDim(product), "1");
  // One row has columns only.
  product.shape = {1, 1000};
  EXPECT_EQ(parallelDim(product), "1");
  // Heads share nothing, wherever they lie in the result.
  KernelFacts heads;
  heads.kind = "matmul";
  heads.shape = {128, 12, 64};
  heads.batch = {false, true, false};
  heads.reduction = 128;
  heads.weightBytes = heads.streamBytes = 400000;
  EXPECT_EQ(parallelDim(heads), "1");
}

TEST(Knobs, RefusesUnknownForms) {
  mlir::MLIRContext ctx;
  for (llvm::StringRef bad : {"\"x\"", "[]", "{source = \"moon\"}"}) {
    auto knob = resolveKnob("tile_m", mlir::parseAttribute(bad, &ctx),
                            KernelFacts(), avx512(), 1);
    EXPECT_FALSE(bool(knob));
    llvm::consumeError(knob.takeError());
  }
}

} // namespace
