//===- ImportTest.cpp - The ONNX importer's form and errors ---------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Models are written in onnx's text syntax, saved and imported. What is checked
// is structure (ops left, types, attributes) and messages; numbers are checked
// end to end, against onnx's conformance tests.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/MLIRContext.h"
#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace pto::lowering;
using llvm::StringRef;

namespace {

class ImportTest : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("pto-import", path));
    folder = path.str().str();
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string file(StringRef name) { return folder + "/" + name.str(); }

  void write(StringRef name, StringRef bytes) {
    std::error_code error;
    llvm::raw_fd_ostream os(file(name), error);
    ASSERT_FALSE(error);
    os << bytes;
  }

  /// `body` is a graph in onnx's text syntax.
  onnx::ModelProto parse(StringRef body, int opset = 17) {
    onnx::ModelProto model;
    std::string text =
        "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) +
        "]>\n" + body.str();
    auto status = onnx::OnnxParser::Parse(model, text.c_str());
    EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
    return model;
  }

  void save(const onnx::ModelProto &model) {
    write("m.onnx", model.SerializeAsString());
  }

  /// The imported @main; the module lives as long as the test.
  func::FuncOp import(StringRef body, int opset = 17) {
    save(parse(body, opset));
    auto result = importOnnx(context, file("m.onnx"), options, &warnings);
    if (!result) {
      ADD_FAILURE() << llvm::toString(result.takeError());
      return {};
    }
    module = std::move(*result);
    return *module->getOps<func::FuncOp>().begin();
  }

  /// The error of importing m.onnx as saved.
  std::string errorOfFile() {
    auto result = importOnnx(context, file("m.onnx"), options, &warnings);
    if (result) {
      ADD_FAILURE() << "import succeeded";
      return "";
    }
    return llvm::toString(result.takeError());
  }
  std::string errorOf(StringRef body, int opset = 17) {
    save(parse(body, opset));
    return errorOfFile();
  }

  template <typename Op> int count(func::FuncOp f) {
    int n = 0;
    f.walk([&](Op) { ++n; });
    return n;
  }

  static std::string resultType(func::FuncOp f, unsigned i = 0) {
    std::string text;
    llvm::raw_string_ostream(text) << f.getResultTypes()[i];
    return text;
  }

  std::string folder;
  MLIRContext context;
  ImportOptions options;
  llvm::SmallVector<std::string> warnings;
  OwningOpRef<ModuleOp> module;
};

bool contains(StringRef text, StringRef part) { return text.contains(part); }

//===- The form -----------------------------------------------------------===//

TEST_F(ImportTest, GemmWithTransposedWeightNeedsNoTranspose) {
  auto f = import(R"(
    g (float[4, 8] x) => (float[4, 3] y)
      <float[3, 8] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24},
       float[3] c = {1,2,3}>
    { y = Gemm <transB = 1> (x, w, c) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<4x3xf32>");
  EXPECT_EQ(count<linalg::TransposeOp>(f), 0);
  EXPECT_EQ(count<linalg::GenericOp>(f), 2);
  EXPECT_EQ(f.getArgAttrOfType<StringAttr>(0, "pto.name").getValue(), "x");
  EXPECT_EQ(f.getResultAttrOfType<StringAttr>(0, "pto.name").getValue(), "y");
  EXPECT_EQ((*module)->getAttrOfType<StringAttr>("pto.model").getValue(), "m");
  // The weight is a resource, the short bias is not.
  int resources = 0, inlined = 0;
  f.walk([&](Operation *op) {
    if (auto value = op->getAttrOfType<ElementsAttr>("value"))
      (isa<DenseResourceElementsAttr>(value) ? resources : inlined)++;
  });
  EXPECT_EQ(resources, 1);
  EXPECT_EQ(inlined, 1);
}

TEST_F(ImportTest, ConvolutionIsPadNamedOpAndBias) {
  auto f = import(R"(
    g (float[1, 2, 5, 5] x, float[4, 2, 3, 3] w, float[4] b) => (float[1, 4, 3, 3] y)
    { y = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w, b) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<1x4x3x3xf32>");
  EXPECT_EQ(count<tensor::PadOp>(f), 1);
  EXPECT_EQ(count<linalg::Conv2DNchwFchwOp>(f), 1);
  EXPECT_EQ(count<linalg::GenericOp>(f), 1);
}

TEST_F(ImportTest, DepthwiseConvolutionIsNamedOp) {
  auto f = import(R"(
    g (float[1, 4, 5, 5] x, float[4, 1, 3, 3] w) => (float[1, 4, 3, 3] y)
    { y = Conv <group = 4> (x, w) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(count<linalg::DepthwiseConv2DNchwChwOp>(f), 1);
}

TEST_F(ImportTest, GroupedAnd1dConvolutionsAreGeneric) {
  auto f = import(R"(
    g (float[1, 4, 5] x, float[6, 2, 3] w) => (float[1, 6, 3] y)
    { y = Conv <group = 2> (x, w) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<1x6x3xf32>");
  ASSERT_EQ(count<linalg::GenericOp>(f), 1);
  f.walk([](linalg::GenericOp op) {
    EXPECT_EQ(op.getNumReductionLoops(), 2u);
    EXPECT_EQ(op.getNumParallelLoops(), 4u);
  });
}

TEST_F(ImportTest, ContractionsMayFuseMultiplyAndAdd) {
  auto f = import(R"(
    g (float[2, 4, 5] x, float[5] v) => (float[2, 4] y)
    { y = MatMul (x, v) })");
  ASSERT_TRUE(f);
  int contract = 0;
  f.walk([&](arith::ArithFastMathInterface op) {
    contract += bitEnumContainsAll(op.getFastMathFlagsAttr().getValue(),
                                   arith::FastMathFlags::contract);
  });
  EXPECT_EQ(contract, 2);
}

TEST_F(ImportTest, MatMulWithMatrixRunsOverAllRows) {
  auto f = import(R"(
    g (float[2, 4, 5] x, float[5, 7] w) => (float[2, 4, 7] y)
    { y = MatMul (x, w) })");
  ASSERT_TRUE(f);
  f.walk([](linalg::MatmulOp op) {
    EXPECT_EQ(cast<ShapedType>(op.getResult(0).getType()).getShape(),
              (ArrayRef<int64_t>{8, 7}));
  });
  EXPECT_EQ(count<linalg::MatmulOp>(f), 1);
}

TEST_F(ImportTest, MissingDimsAreBroadcastByMaps) {
  auto f = import(R"(
    g (float[2, 3, 4] x, float[3, 1] y) => (float[2, 3, 4] z)
    { z = Add (x, y) })");
  ASSERT_TRUE(f);
  f.walk([](linalg::GenericOp op) {
    EXPECT_EQ(op.getIndexingMapsArray()[1].getNumResults(), 1u);
  });
  EXPECT_EQ(count<tensor::CollapseShapeOp>(f), 1);
}

TEST_F(ImportTest, BooleansAreBytes) {
  auto f = import(R"(
    g (bool[4] a, bool[4] b, uint8[4] u) => (bool[4] c, uint8[4] d)
    { c = And (a, b)
      d = Identity (u) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<4xi8>");
  EXPECT_TRUE(f.getArgAttr(0, "pto.bool"));
  EXPECT_TRUE(f.getResultAttr(0, "pto.bool"));
  EXPECT_TRUE(f.getArgAttr(2, "pto.unsigned"));
}

//===- Shapes -------------------------------------------------------------===//

TEST_F(ImportTest, ShapeArithmeticDisappears) {
  auto f = import(R"(
    g (float[2, 3, 4] x) => (float[n, m] y)
      <int64 zero = {0}, int64[1] axis = {0}, int64[1] rest = {-1}>
    { s = Shape (x)
      d = Gather <axis = 0> (s, zero)
      u = Unsqueeze (d, axis)
      t = Concat <axis = 0> (u, rest)
      y = Reshape (x, t) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<2x12xf32>");
  // One reshape and the return.
  EXPECT_EQ(f.getBody().front().getOperations().size(), 2u);
}

TEST_F(ImportTest, DynamicDimsStayDynamicOnRequest) {
  options.pinDynamicDims = false;
  auto f = import(R"(
    g (float[n, 3, 4] x) => (float[n, m] y)
      <int64 zero = {0}, int64[1] axis = {0}, int64[1] rest = {-1}>
    { s = Shape (x)
      d = Gather <axis = 0> (s, zero)
      u = Unsqueeze (d, axis)
      t = Concat <axis = 0> (u, rest)
      y = Reshape (x, t) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<?x12xf32>");
  EXPECT_EQ(count<tensor::CollapseShapeOp>(f), 1);
}

TEST_F(ImportTest, DimsOfOneSymbolAreOneValue) {
  options.pinDynamicDims = false;
  auto f = import(R"(
    g (float[b, s, 8] x, float[b, s, 8] y) => (float[b, s, 2, 4] z)
      <int64[1] zero = {0}, int64[1] one = {1}, int64[2] heads = {2, 4}>
    { p = Add (x, y)
      shape = Shape (y)
      bb = Gather <axis = 0> (shape, zero)
      ss = Gather <axis = 0> (shape, one)
      t = Concat <axis = 0> (bb, ss, heads)
      z = Reshape (p, t) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(count<tensor::DimOp>(f), 2);
  // Only the last dim is split: the others are seen to be the same.
  EXPECT_EQ(count<tensor::CollapseShapeOp>(f), 0);
  EXPECT_EQ(count<tensor::ExpandShapeOp>(f), 1);
  EXPECT_EQ(f.getArgAttrOfType<ArrayAttr>(0, "pto.dims").size(), 3u);
}

TEST_F(ImportTest, DynamicDimsArePinnedWithAWarning) {
  auto f = import("g (float[n, 3] x) => (float[n, 3] y) { y = Relu (x) }");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<1x3xf32>");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(contains(warnings[0], "'x'")) << warnings[0];
}

TEST_F(ImportTest, GivenShapeDeterminesEqualSymbols) {
  options.shapes["x"] = {5, 3};
  auto f = import(R"(
    g (float[n, 3] x, float[n, 1] y) => (float[n, 3] z) { z = Add (x, y) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<5x3xf32>");
  EXPECT_TRUE(warnings.empty());
}

TEST_F(ImportTest, CeilModeDropsWindowsThatStartInThePadding) {
  auto f = import(R"(
    g (float[1, 1, 4, 4] x) => (float[1, 1, a, b] y)
    { y = MaxPool <kernel_shape = [1, 1], strides = [2, 2], ceil_mode = 1,
                   pads = [0, 0, 1, 1]> (x) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<1x1x2x2xf32>");
}

TEST_F(ImportTest, SqueezeReadsItsVersionsForm) {
  auto old = import(R"(
    g (float[1, 3, 1] x) => (float[a, b] y) { y = Squeeze <axes = [2]> (x) })",
                    11);
  ASSERT_TRUE(old);
  EXPECT_EQ(resultType(old), "tensor<1x3xf32>");
  auto f = import(R"(
    g (float[1, 3, 1] x) => (float[a, b] y) <int64[1] axes = {0}>
    { y = Squeeze (x, axes) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<3x1xf32>");
}

TEST_F(ImportTest, FunctionsAreReplacedByTheirBodies) {
  auto f = import(R"(
    g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y)
    { y = MeanVarianceNormalization (x) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<2x3x4x4xf32>");
}

TEST_F(ImportTest, RunTimeAxesAreAWindow) {
  auto f = import(R"(
    g (float[2, 3, 4] x, int64[1] axes) => (float[a, b] y)
    { y = ReduceSum <keepdims = 0> (x, axes) })");
  ASSERT_TRUE(f);
  EXPECT_EQ(resultType(f), "tensor<?x?xf32>");
}

TEST_F(ImportTest, OnlyTheKnownBranchIsBuilt) {
  auto f = import(R"(
    g (float[2] x) => (float[2] y)
    { c = Constant <value = bool {1}> ()
      y = If (c) <then_branch = t () => (float[2] a) { a = Relu (x) },
                  else_branch = e () => (float[2] b)
                    { b = LSTM <hidden_size = 1> (x, x, x) }> })");
  ASSERT_TRUE(f);
  EXPECT_EQ(count<linalg::GenericOp>(f), 1);
}

//===- Errors -------------------------------------------------------------===//

TEST_F(ImportTest, MissingFile) {
  EXPECT_TRUE(contains(errorOfFile(), "m.onnx: cannot be read"));
}

TEST_F(ImportTest, TruncatedFile) {
  std::string bytes = parse("g (float[2] x) => (float[2] y) { y = Relu (x) }")
                          .SerializeAsString();
  for (size_t size : {bytes.size() / 2, bytes.size() - 1, size_t(0)}) {
    write("m.onnx", bytes.substr(0, size));
    EXPECT_TRUE(contains(errorOfFile(), "m.onnx: cannot be parsed"));
  }
}

TEST_F(ImportTest, NewerOpset) {
  std::string error =
      errorOf("g (float[2] x) => (float[2] y) { y = Relu (x) }", 999);
  EXPECT_TRUE(contains(error, "opset 999")) << error;
}

TEST_F(ImportTest, OldVersionOfAnOp) {
  std::string error =
      errorOf("g (float[2] x) => (float[2] y) { [old] y = Add (x, x) }", 6);
  EXPECT_TRUE(contains(error, "old: Add (domain ai.onnx, opset 6)")) << error;
}

TEST_F(ImportTest, UnsupportedNodesAreListedTogether) {
  onnx::ModelProto model = parse(R"(
    g (float[2] x) => (float[2] y)
    { [first] a = Frobnicate (x)
      [second] b = Wibble (a)
      [good] y = Relu (b) })");
  model.mutable_graph()->mutable_node(0)->set_domain("example.custom");
  auto &import = *model.add_opset_import();
  import.set_domain("example.custom");
  import.set_version(1);
  save(model);
  std::string error = errorOfFile();
  EXPECT_TRUE(contains(error, "2 nodes")) << error;
  EXPECT_TRUE(contains(error, "first: Frobnicate (domain example.custom"))
      << error;
  EXPECT_TRUE(contains(error, "second: Wibble (domain ai.onnx")) << error;
  EXPECT_FALSE(contains(error, "good")) << error;
}

TEST_F(ImportTest, ReasonsOfBuildersAreListedWithUnsupportedOps) {
  std::string error = errorOf(R"(
    g (float[1, 1, 4, 4] x, float[n, 4] s) => (float[1, 1, 4, 4] y, int64[n] z, float[m] w)
    { [pool] y, i = MaxPool <kernel_shape = [1, 1]> (x)
      [nz] z = NonZero (s)
      [ok] w = Relu (i) })");
  EXPECT_TRUE(contains(error, "pool: MaxPool")) << error;
  EXPECT_TRUE(contains(error, "nz: NonZero")) << error;
}

TEST_F(ImportTest, Cycle) {
  std::string error = errorOf(R"(
    g (float[2] x) => (float[2] b)
    { [left] a = Add (x, b)
      [right] b = Mul (x, a) })");
  EXPECT_TRUE(contains(error, "node 'left'")) << error;
  EXPECT_TRUE(contains(error, "cycle")) << error;
}

TEST_F(ImportTest, InitializerLargerThanItsData) {
  onnx::ModelProto model = parse(R"(
    g (float[2] x) => (float[2] y) <float[2] giant = {1, 2}>
    { y = Add (x, giant) })");
  auto &tensor = *model.mutable_graph()->mutable_initializer(0);
  tensor.clear_dims();
  tensor.add_dims(int64_t(1) << 40);
  tensor.add_dims(int64_t(1) << 30);
  save(model);
  EXPECT_TRUE(contains(errorOfFile(), "'giant'"));
  tensor.clear_dims();
  tensor.add_dims(3);
  save(model);
  std::string error = errorOfFile();
  EXPECT_TRUE(contains(error, "'giant'")) << error;
  EXPECT_TRUE(contains(error, "needs 3")) << error;
}

TEST_F(ImportTest, ExternalData) {
  onnx::ModelProto model = parse(R"(
    g (float[2] x) => (float[2] y) <float[2] w = {1, 2}>
    { y = Add (x, w) })");
  auto &tensor = *model.mutable_graph()->mutable_initializer(0);
  tensor.clear_float_data();
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto &location = *tensor.add_external_data();
  location.set_key("location");
  auto &offset = *tensor.add_external_data();
  offset.set_key("offset");
  offset.set_value("4");
  auto errorFor = [&](StringRef name) {
    location.set_value(name.str());
    save(model);
    return errorOfFile();
  };
  std::string error = errorFor("absent.bin");
  EXPECT_TRUE(contains(error, "'w'") && contains(error, "absent.bin")) << error;
  write("short.bin", StringRef("\0\0\0\0\0\0\0\0\0\0\0", 11));
  error = errorFor("short.bin");
  EXPECT_TRUE(contains(error, "8 bytes at offset 4, the file has 11")) << error;
  EXPECT_TRUE(contains(errorFor("../w.bin"), "outside the model's folder"));
  EXPECT_TRUE(contains(errorFor("/etc/passwd"), "relative"));
  write("good.bin", StringRef("\0\0\0\0\0\0\0\0\0\0\0\0", 12));
  location.set_value("good.bin");
  save(model);
  auto result = importOnnx(context, file("m.onnx"), options, &warnings);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
}

TEST_F(ImportTest, GivenShapesAreChecked) {
  StringRef body = "g (float[n, 3] x) => (float[n, 3] y) { y = Relu (x) }";
  options.shapes["wrong"] = {1, 3};
  std::string error = errorOf(body);
  EXPECT_TRUE(contains(error, "no input 'wrong'") &&
              contains(error, "the inputs are: x"))
      << error;
  options.shapes.clear();
  options.shapes["x"] = {1, 4};
  EXPECT_TRUE(contains(errorOf(body), "size 3, given as 4"));
  options.shapes["x"] = {1};
  EXPECT_TRUE(contains(errorOf(body), "rank 2"));
}

TEST_F(ImportTest, ShapesThatDoNotFit) {
  std::string error = errorOf(R"(
    g (float[2, 3] x, float[4, 5] w) => (float[2, 5] y)
    { [bad] y = MatMul (x, w) })");
  EXPECT_TRUE(contains(error, "bad: MatMul")) << error;
  error = errorOf(R"(
    g (float[2, 3] x, float[4] w) => (float[2, 3] y) { [bad] y = Add (x, w) })");
  EXPECT_TRUE(contains(error, "bad: Add")) << error;
}

TEST_F(ImportTest, ConstantIndexOutOfBounds) {
  std::string error = errorOf(R"(
    g (float[2, 3] x) => (float[1, 3] y) <int64[1] i = {2}>
    { [pick] y = Gather (x, i) })");
  EXPECT_TRUE(contains(error, "pick: Gather") &&
              contains(error, "out of bounds"))
      << error;
}

} // namespace
