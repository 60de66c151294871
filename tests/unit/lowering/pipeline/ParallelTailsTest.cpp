//===- ParallelTailsTest.cpp - Which loops get a second body --------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Pipeline.h"
#include "lowering/pipeline/Stages.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace pto;

namespace {

struct Split {
  bool changed;
  int bodies = 0, unknown = 0;
  std::vector<int64_t> sizes; ///< Of the bodies' uses, in order.
};

/// Splits a loop from `lower` to `upper` whose body asks for min(`map`).
Split split(const std::string &range, const std::string &map) {
  mlir::DialectRegistry registry;
  lowering::registerAll(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func private @use(index)\nfunc.func @f() {\nscf.forall (%i) = " +
          range + " {\n%s = affine.min affine_map<(i) -> (" + map +
          ")>(%i)\nfunc.call @use(%s) : (index) -> ()\n}\nreturn\n}",
      &context);
  Split result;
  result.changed = lowering::splitParallelTails(*module);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  module->walk([&](mlir::scf::IfOp) { result.bodies += 2; });
  module->walk([&](mlir::func::CallOp call) {
    if (auto size = mlir::getConstantIntValue(call.getOperand(0)))
      result.sizes.push_back(*size);
    else
      ++result.unknown;
  });
  return result;
}

TEST(ParallelTails, TheLastChunkGetsItsOwnBody) {
  Split s = split("(0) to (197) step (104)", "104, 197 - i");
  EXPECT_TRUE(s.changed);
  EXPECT_EQ(s.bodies, 2);
  EXPECT_EQ(s.sizes, (std::vector<int64_t>{93, 104}));
  s = split("(10) to (64) step (12)", "12, 64 - i");
  EXPECT_EQ(s.sizes, (std::vector<int64_t>{6, 12}));
}

TEST(ParallelTails, WhatDividesStays) {
  EXPECT_FALSE(split("(0) to (192) step (48)", "48, 192 - i").changed);
  EXPECT_FALSE(split("(0) to (7) step (12)", "12, 7 - i").changed);
}

TEST(ParallelTails, SizesThatDifferMoreOftenStay) {
  Split s = split("(0) to (64) step (12)", "12, 40 - i");
  EXPECT_FALSE(s.changed);
  EXPECT_EQ(s.unknown, 1);
}

} // namespace
