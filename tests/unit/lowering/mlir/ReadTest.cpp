//===- ReadTest.cpp - Models given as MLIR --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/mlir/Read.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace pto::lowering;
using llvm::StringRef;

namespace {

class ReadTest : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> name;
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("pto-read", "mlir", name));
    path = name.str().str();
  }
  void TearDown() override { llvm::sys::fs::remove(path); }

  llvm::Expected<OwningOpRef<ModuleOp>> read(StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << text;
    return readMlir(context, path, options, &warnings);
  }
  func::FuncOp good(StringRef text) {
    auto result = read(text);
    if (!result) {
      ADD_FAILURE() << llvm::toString(result.takeError());
      return {};
    }
    module = std::move(*result);
    return *module->getOps<func::FuncOp>().begin();
  }
  std::string bad(StringRef text) {
    auto result = read(text);
    if (result) {
      ADD_FAILURE() << "read";
      return "";
    }
    return llvm::toString(result.takeError());
  }
  static std::string typeOf(func::FuncOp f) {
    std::string text;
    llvm::raw_string_ostream(text) << f.getFunctionType();
    return text;
  }

  std::string path;
  MLIRContext context;
  ImportOptions options;
  llvm::SmallVector<std::string> warnings;
  OwningOpRef<ModuleOp> module;
};

const char *kDynamicMatmul = R"(
func.func @forward(%a: tensor<?x4xf32>, %b: tensor<4x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x4xf32>, tensor<4x8xf32>)
                     outs(%f : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
})";

TEST_F(ReadTest, OnlyFunctionBecomesMain) {
  options.pinDynamicDims = false;
  func::FuncOp f = good(kDynamicMatmul);
  ASSERT_TRUE(f);
  EXPECT_EQ(f.getName(), "main");
  EXPECT_EQ(f.getArgAttrOfType<StringAttr>(1, "pto.name").getValue(), "input1");
  EXPECT_EQ(typeOf(f), "(tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>");
}

TEST_F(ReadTest, GivenShapeReachesTheResult) {
  options.shapes["input0"] = {16, 4};
  func::FuncOp f = good(kDynamicMatmul);
  ASSERT_TRUE(f);
  EXPECT_EQ(typeOf(f),
            "(tensor<16x4xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>");
  EXPECT_TRUE(warnings.empty());
}

TEST_F(ReadTest, TosaBecomesLinalg) {
  func::FuncOp f = good(R"(
    func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %0 = tosa.tanh %a : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    })");
  ASSERT_TRUE(f);
  int generics = 0;
  f.walk([&](linalg::GenericOp) { ++generics; });
  EXPECT_EQ(generics, 1);
}

TEST_F(ReadTest, LargeConstantsBecomeResources) {
  std::string values;
  for (int i = 0; i < 32; ++i)
    values += (i ? ", " : "") + std::to_string(i) + ".0";
  func::FuncOp f = good("func.func @main() -> tensor<32xf32> {\n"
                        "  %c = arith.constant dense<[" +
                        values +
                        "]> : tensor<32xf32>\n"
                        "  return %c : tensor<32xf32>\n}");
  ASSERT_TRUE(f);
  bool resource = false;
  f.walk([&](Operation *op) {
    resource |=
        isa_and_nonnull<DenseResourceElementsAttr>(op->getAttr("value"));
  });
  EXPECT_TRUE(resource);
}

TEST_F(ReadTest, Errors) {
  EXPECT_TRUE(StringRef(bad("func.func @main(")).contains("no valid MLIR"));
  EXPECT_TRUE(StringRef(bad("func.func private @f()")).contains("no function"));
  std::string error = bad(R"(
    func.func @main(%a: memref<2xf32>) { return })");
  EXPECT_TRUE(StringRef(error).contains("memref")) << error;
  options.shapes["nowhere"] = {1};
  error = bad(kDynamicMatmul);
  EXPECT_TRUE(StringRef(error).contains("no input 'nowhere'")) << error;
}

TEST_F(ReadTest, MissingFile) {
  auto result = readMlir(context, path + ".absent", options, &warnings);
  ASSERT_FALSE(bool(result));
  EXPECT_TRUE(
      StringRef(llvm::toString(result.takeError())).contains("cannot be read"));
}

} // namespace
