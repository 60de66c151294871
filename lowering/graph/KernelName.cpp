//===- KernelName.cpp - Names that say what a kernel does -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/KernelName.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace pto::lowering {

static std::string times(ArrayRef<int64_t> sizes) {
  std::string text;
  for (int64_t size : sizes) {
    if (!text.empty())
      text += "x";
    text += ShapedType::isDynamic(size) ? "n" : std::to_string(size);
  }
  return text.empty() ? "1" : text;
}

static std::string shapeOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return "scalar";
  ArrayRef<int64_t> shape = type.getShape();
  if (shape.size() > 1 && shape.front() == 1)
    shape = shape.drop_front();
  std::string text = times(shape);
  Type element = type.getElementType();
  if (!element.isF32()) {
    std::string name;
    llvm::raw_string_ostream(name) << element;
    text += "_" + name;
  }
  return text;
}

static std::string sizesOf(linalg::GenericOp op, ArrayRef<unsigned> loops) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges(), sizes;
  for (unsigned loop : loops)
    sizes.push_back(ranges[loop]);
  return times(sizes);
}

/// "s2" where the window moves by more than one.
static std::string strideOf(linalg::GenericOp op) {
  for (AffineMap map : op.getIndexingMapsArray())
    for (AffineExpr expr : map.getResults()) {
      int64_t stride = 1;
      expr.walk([&](AffineExpr e) {
        auto binary = dyn_cast<AffineBinaryOpExpr>(e);
        if (!binary || e.getKind() != AffineExprKind::Mul)
          return;
        auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
        auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
        if (dim && factor &&
            op.getIteratorTypesArray()[dim.getPosition()] ==
                utils::IteratorType::parallel)
          stride = factor.getValue();
      });
      if (stride != 1)
        return "s" + std::to_string(stride);
    }
  return "";
}

/// What an op of a body is called; empty for what is not worth a word.
static StringRef wordFor(Operation &op) {
  return llvm::TypeSwitch<Operation *, StringRef>(&op)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return "add"; })
      .Case<arith::SubFOp, arith::SubIOp>([](auto) { return "sub"; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return "mul"; })
      .Case<arith::DivFOp>([](auto) { return "div"; })
      .Case<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp>(
          [](auto) { return "max"; })
      .Case<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp>(
          [](auto) { return "min"; })
      .Case<arith::SelectOp>([](auto) { return "select"; })
      .Case<arith::CmpFOp, arith::CmpIOp>([](auto) { return "cmp"; })
      .Case<arith::SIToFPOp, arith::FPToSIOp, arith::ExtFOp, arith::TruncFOp,
            arith::ExtSIOp, arith::TruncIOp>([](auto) { return "cast"; })
      .Case<tensor::ExtractOp>([](auto) { return "gather"; })
      .Default([](Operation *op) {
        return isa<math::MathDialect>(op->getDialect())
                   ? op->getName().stripDialect()
                   : StringRef();
      });
}

static bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

/// The words of an elementwise body, in order: bias, add, relu, clip, exp...
static SmallVector<std::string> wordsOf(linalg::GenericOp op) {
  SmallVector<std::string> words;
  auto isBroadcast = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != op.getBody())
      return false;
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    return op.getMatchingIndexingMap(&operand).getNumResults() <
           op.getNumLoops();
  };
  for (Operation &inner : op.getBody()->without_terminator()) {
    std::string word = wordFor(inner).str();
    if (word.empty())
      continue;
    if (word == "add" && llvm::any_of(inner.getOperands(), isBroadcast))
      word = "bias";
    if (word == "max" && llvm::any_of(inner.getOperands(), isZero))
      word = "relu";
    if ((word == "min" && !words.empty() && words.back() == "relu") ||
        (word == "min" && !words.empty() && words.back() == "max")) {
      words.back() = "clip";
      continue;
    }
    words.push_back(word);
  }
  constexpr size_t kMaxWords = 4;
  if (words.size() > kMaxWords) {
    words.resize(kMaxWords);
    words.push_back("etc");
  }
  return words;
}

static StringRef reductionWord(linalg::GenericOp op) {
  Operation *last =
      op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  StringRef word = last ? wordFor(*last) : StringRef();
  return word == "add" ? "sum" : word.empty() ? "reduce" : word;
}

static SmallVector<unsigned> reductionLoops(linalg::GenericOp op) {
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  return loops;
}

static std::string describeAnchor(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return isa<tensor::InsertSliceOp>(op) ? "pad"
                                          : op->getName().stripDialect().str();
  std::optional<LoopRoles> roles = loopRoles(generic);
  switch (opKind(op)) {
  case OpKind::Convolution:
    return (roles->channel.empty() ? "conv" : "groupconv") +
           (roles->window.empty() ? std::string("1x1")
                                  : sizesOf(generic, roles->window)) +
           strideOf(generic);
  case OpKind::Depthwise:
    return "dwconv" + sizesOf(generic, roles->window) + strideOf(generic);
  case OpKind::Contraction:
    return roles && !roles->channel.empty() ? "bmm" : "matmul";
  case OpKind::Window:
    return reductionWord(generic).str() + "pool" +
           sizesOf(generic, reductionLoops(generic)) + strideOf(generic);
  case OpKind::Reduction:
    return reductionWord(generic).str();
  case OpKind::Elementwise: {
    SmallVector<std::string> words = wordsOf(generic);
    if (!words.empty())
      return llvm::join(words, "_");
    return linalg::isaTransposeOpInterface(generic) ? "transpose" : "copy";
  }
  case OpKind::Other:
    return "op";
  }
  llvm_unreachable("all kinds are named");
}

/// Rows are called by what is done to them.
static std::string describeRows(func::FuncOp kernel, Operation *root) {
  bool exp = false, max = false, root2 = false;
  kernel.walk([&](Operation *op) {
    exp |= isa<math::ExpOp>(op);
    max |= isa<arith::MaximumFOp, arith::MaxNumFOp>(op);
    root2 |= isa<math::SqrtOp, math::RsqrtOp>(op);
  });
  return (exp && max ? "softmax_"
          : root2    ? "norm_"
                     : "rows_") +
         shapeOf(root->getResult(0));
}

std::string describeKernel(func::FuncOp kernel) {
  Operation *anchor = nullptr, *root = nullptr;
  for (Operation &op : kernel.getBody().front()) {
    if (op.hasAttr("pto.anchor"))
      anchor = &op;
    if (op.hasAttr("pto.root"))
      root = &op;
  }
  if (kernel->hasAttr("pto.rowwise"))
    return describeRows(kernel, root);
  std::string name =
      describeAnchor(anchor) + "_" + shapeOf(anchor->getResult(0));
  OpKind kind = opKind(anchor);
  auto generic = dyn_cast<linalg::GenericOp>(anchor);
  if (kind == OpKind::Contraction || kind == OpKind::Convolution) {
    std::optional<LoopRoles> roles = loopRoles(generic);
    if (roles && !roles->in.empty())
      name += "_k" + sizesOf(generic, roles->in);
  } else if (kind == OpKind::Reduction) {
    name += "_k" + sizesOf(generic, reductionLoops(generic));
  }
  if (root && root != anchor)
    if (auto epilogue = dyn_cast<linalg::GenericOp>(root))
      for (const std::string &word : wordsOf(epilogue))
        name += "_" + word;
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  return name;
}

} // namespace pto::lowering
