//===- KeyTest.cpp - Hashes of kernels --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Graph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace pto::lowering;

namespace {

class KeyTest : public ::testing::Test {
protected:
  KeyTest() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        linalg::LinalgDialect, tensor::TensorDialect>();
  }

  /// A kernel that clips `type` to 0..`limit`.
  func::FuncOp clip(StringRef name, StringRef type, StringRef limit,
                    StringRef attributes = "pto.kernel") {
    std::string text =
        ("func.func private @" + name + "(%x: " + type + ", %out: " + type +
         " {pto.role = \"output\"}) -> " + type + " attributes {" + attributes +
         "} {\n" + "%limit = arith.constant " + limit +
         " : f32\n"
         "%r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, "
         "affine_map<(d0) -> (d0)>], iterator_types = [\"parallel\"]} ins(%x "
         ": " +
         type + ") outs(%out : " + type +
         ") {\n^bb0(%a: f32, %o: f32):\n"
         "%0 = arith.minimumf %a, %limit : f32\n"
         "linalg.yield %0 : f32\n} -> " +
         type + "\nreturn %r : " + type + "\n}")
            .str();
    modules.push_back(parseSourceString<ModuleOp>(text, &context));
    EXPECT_TRUE(modules.back());
    return *modules.back()->getOps<func::FuncOp>().begin();
  }

  MLIRContext context;
  std::vector<OwningOpRef<ModuleOp>> modules;
};

TEST_F(KeyTest, NamesDoNotMatter) {
  func::FuncOp a = clip("a", "tensor<8xf32>", "6.0");
  func::FuncOp b =
      clip("b", "tensor<8xf32>", "6.0", "pto.kernel, pto.key = \"x\"");
  EXPECT_EQ(codeHash(a), codeHash(b));
  EXPECT_EQ(kernelHash(a), kernelHash(b));
}

TEST_F(KeyTest, ConstantsAreCodeButNotKernel) {
  func::FuncOp six = clip("k", "tensor<8xf32>", "6.0");
  func::FuncOp one = clip("k", "tensor<8xf32>", "1.0");
  EXPECT_NE(codeHash(six), codeHash(one));
  EXPECT_EQ(kernelHash(six), kernelHash(one));
}

TEST_F(KeyTest, ShapesAreBoth) {
  func::FuncOp small = clip("k", "tensor<8xf32>", "6.0");
  func::FuncOp large = clip("k", "tensor<16xf32>", "6.0");
  EXPECT_NE(codeHash(small), codeHash(large));
  EXPECT_NE(kernelHash(small), kernelHash(large));
}

TEST_F(KeyTest, TextIsHexOf128BitsAndParses) {
  func::FuncOp kernel = clip("k", "tensor<8xf32>", "6.0");
  EXPECT_EQ(codeHash(kernel).size(), 32u);
  EXPECT_EQ(codeHash(kernel).find_first_not_of("0123456789abcdef"),
            std::string::npos);
  OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(
      canonicalText(kernel, /*withConstants=*/true), &context);
  ASSERT_TRUE(again);
  EXPECT_EQ(codeHash(*again->getOps<func::FuncOp>().begin()), codeHash(kernel));
  // The kernel that was asked about is untouched.
  EXPECT_EQ(kernel.getSymName(), "k");
}

} // namespace
