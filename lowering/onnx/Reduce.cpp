//===- Reduce.cpp - Reductions and global pools ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One reduction over the axes, with the elementwise part before it (square,
// absolute value) in its body and the part after it (mean, root, log) as an
// elementwise op.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "onnx/onnx_pb.h"

using namespace mlir;
using onnx::TensorProto;

namespace pto::lowering {

/// A rank-0 tensor with a size in it.
static Tensor sizeTensor(Node &n, OpFoldResult size) {
  Type i64 = n.b.getI64Type();
  return Tensor::fromElements(TensorProto::INT64,
                              RankedTensorType::get({}, i64),
                              fromIndex(n.b, n.loc, size, i64));
}

static Value logarithm(OpBuilder &b, Location loc, Value v) {
  return b.createOrFold<math::LogOp>(loc, v);
}

/// Reduces small tracked tensors here; only what shape arithmetic uses.
static std::optional<Tensor> evaluate(Node &n, Tensor &x,
                                      ArrayRef<int64_t> axes,
                                      ArrayRef<int64_t> outShape) {
  auto elements = trackedElements(x);
  StringRef op = n.op();
  if (!elements || !isSigned(x.dtype) || int64_t(axes.size()) != x.rank())
    return std::nullopt;
  std::function<Value(Value, Value)> fn;
  int64_t start = 0;
  if (op == "ReduceProd") {
    start = 1;
    fn = [&](Value a, Value c) { return scalarMul(n.b, n.loc, a, c); };
  } else if (op == "ReduceSum") {
    fn = [&](Value a, Value c) { return scalarAdd(n.b, n.loc, a, c); };
  } else if ((op == "ReduceMax" || op == "ReduceMin") && !elements->empty()) {
    fn = [&](Value a, Value c) {
      return op == "ReduceMax" ? scalarMax(n.b, n.loc, x.dtype, a, c)
                               : scalarMin(n.b, n.loc, x.dtype, a, c);
    };
  } else {
    return std::nullopt;
  }
  Value acc = op == "ReduceMax" || op == "ReduceMin"
                  ? scalarValue(n.b, n.loc, elements->front())
                  : scalarConstant(n.b, n.loc, x.elementType(), start);
  for (OpFoldResult e : *elements)
    acc = fn(acc, scalarValue(n.b, n.loc, e));
  return Tensor::fromElements(x.dtype,
                              RankedTensorType::get(outShape, x.elementType()),
                              getAsOpFoldResult(acc));
}

static llvm::Error buildReduction(Node &n, StringRef op, ArrayRef<int64_t> axes,
                                  bool keepDims) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int dtype = x.dtype;
  Sizes sizes = sizesOf(n, x), outSizes, kept, reducedSizes;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (llvm::is_contained(axes, d)) {
      reducedSizes.push_back(sizes[d]);
      if (keepDims)
        kept.push_back(b.getIndexAttr(1));
    } else {
      outSizes.push_back(sizes[d]);
      kept.push_back(sizes[d]);
    }
  }
  if (auto folded = evaluate(n, x, axes, staticShape(kept))) {
    n.set(0, *folded);
    return llvm::Error::success();
  }

  bool isMax = op == "ReduceMax", isMin = op == "ReduceMin";
  bool needsFloat =
      op == "ReduceL2" || op == "ReduceLogSum" || op == "ReduceLogSumExp";
  if ((needsFloat && !isFloat(dtype)) || (isBool(dtype) && !isMax && !isMin))
    return n.unsupported("data type " + onnxTypeName(dtype));
  // The exponentials are taken relative to the maximum.
  Tensor shiftedBy, shifted = x;
  if (op == "ReduceLogSumExp") {
    Value m = reduce(b, loc, n.value(x), axes, lowest(b, loc, dtype),
                     [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                       return scalarMax(b, loc, dtype, v[0], v[1]);
                     });
    Tensor raw = Tensor::fromValue(dtype, m);
    // An infinite maximum would give inf - inf.
    shiftedBy = elementwiseOver(
        n, {&raw}, outSizes, dtype,
        [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
          Value magnitude = b.createOrFold<math::AbsFOp>(loc, v[0]);
          Value inf = b.createOrFold<arith::CmpFOp>(
              loc, arith::CmpFPredicate::OEQ, magnitude,
              scalarConstant(b, loc, v[0].getType(), INFINITY));
          return b.createOrFold<arith::SelectOp>(
              loc, inf, scalarConstant(b, loc, v[0].getType(), 0), v[0]);
        });
    Sizes ones;
    for (int64_t d = 0, o = 0; d < x.rank(); ++d)
      ones.push_back(llvm::is_contained(axes, d)
                         ? OpFoldResult(b.getIndexAttr(1))
                         : outSizes[o++]);
    Tensor broadcast = reshape(n, shiftedBy, ones);
    shifted = elementwiseOver(
        n, {&x, &broadcast}, sizes, dtype,
        [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
          return b.createOrFold<arith::SubFOp>(loc, v[0], v[1]);
        });
  }

  // Sums of 16-bit floats are kept in float32.
  bool narrow = isFloat(dtype) && dtypeBytes(dtype) == 2 && !isMax && !isMin;
  int accDtype = narrow ? int(TensorProto::FLOAT) : dtype;
  Type accType = storageType(b.getContext(), accDtype);
  Value init = isMax   ? lowest(b, loc, dtype)
               : isMin ? highest(b, loc, dtype)
                       : scalarConstant(b, loc, accType, op == "ReduceProd");
  Value sum = reduce(
      b, loc, n.value(shifted), axes, init,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        Value e = v[0], acc = v[1];
        if (narrow)
          e = b.createOrFold<arith::ExtFOp>(loc, accType, e);
        if (isMax)
          return scalarMax(b, loc, dtype, acc, e);
        if (isMin)
          return scalarMin(b, loc, dtype, acc, e);
        if (op == "ReduceProd")
          return scalarMul(b, loc, acc, e);
        if (op == "ReduceL1")
          e = isFloat(dtype)    ? b.createOrFold<math::AbsFOp>(loc, e)
              : isSigned(dtype) ? b.createOrFold<math::AbsIOp>(loc, e)
                                : e;
        if (op == "ReduceLogSumExp")
          e = b.createOrFold<math::ExpOp>(loc, e);
        if (op == "ReduceSumSquare" || op == "ReduceL2")
          return scalarAdd(b, loc, acc, scalarMul(b, loc, e, e, true), true);
        return scalarAdd(b, loc, acc, e);
      });
  Tensor out = Tensor::fromValue(accDtype, sum);

  bool mean = op == "ReduceMean", root = op == "ReduceL2",
       log = op == "ReduceLogSum" || op == "ReduceLogSumExp";
  if (mean || root || log || narrow) {
    Tensor count = sizeTensor(n, product(b, loc, reducedSizes));
    SmallVector<Tensor *> inputs = {&out};
    if (mean)
      inputs.push_back(&count);
    if (shiftedBy)
      inputs.push_back(&shiftedBy);
    out = elementwiseOver(
        n, inputs, outSizes, dtype,
        [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
          Value r = v[0];
          if (mean && isFloat(dtype))
            r = b.createOrFold<arith::DivFOp>(
                loc, r, b.createOrFold<arith::SIToFPOp>(loc, accType, v[1]));
          else if (mean) {
            Value c = v[1];
            if (accType.getIntOrFloatBitWidth() < 64)
              c = b.createOrFold<arith::TruncIOp>(loc, accType, c);
            r = isSigned(dtype) ? b.createOrFold<arith::DivSIOp>(loc, r, c)
                                : b.createOrFold<arith::DivUIOp>(loc, r, c);
          }
          if (root)
            r = b.createOrFold<math::SqrtOp>(loc, r);
          if (log)
            r = logarithm(b, loc, r);
          if (narrow)
            r = b.createOrFold<arith::TruncFOp>(
                loc, storageType(b.getContext(), dtype), r);
          return shiftedBy ? scalarAdd(b, loc, r, v.back()) : r;
        });
  }
  n.set(0, reshape(n, out, kept));
  return llvm::Error::success();
}

llvm::Error buildReduce(Node &n) {
  Tensor &x = n.in(0);
  // ReduceSum took its axes as an input five versions before the others.
  int inputSince = n.op() == "ReduceSum" ? 13 : 18;
  auto axes = listOperand(n, 1, "axes", inputSince);
  if (!axes)
    return axes.takeError();
  if (axes->empty() && n.intAttr("noop_with_empty_axes", 0)) {
    n.set(0, x);
    // Even then the elementwise part applies.
    if (n.op() == "ReduceSum" || n.op() == "ReduceMax" ||
        n.op() == "ReduceMin" || n.op() == "ReduceMean" ||
        n.op() == "ReduceProd")
      return llvm::Error::success();
    return buildReduction(n, n.op(), {}, true);
  }
  if (axes->empty())
    axes->assign(llvm::seq<int64_t>(0, x.rank()).begin(),
                 llvm::seq<int64_t>(0, x.rank()).end());
  for (int64_t &a : *axes) {
    auto normal = normalizeAxis(n, a, x.rank());
    if (!normal)
      return normal.takeError();
    a = *normal;
  }
  llvm::sort(*axes);
  axes->erase(std::unique(axes->begin(), axes->end()), axes->end());
  return buildReduction(n, n.op(), *axes, n.intAttr("keepdims", 1));
}

llvm::Error buildGlobalPool(Node &n) {
  if (n.in(0).rank() < 3)
    return n.invalid("input of rank " + Twine(n.in(0).rank()));
  auto axes = llvm::to_vector(llvm::seq<int64_t>(2, n.in(0).rank()));
  return buildReduction(
      n, n.op() == "GlobalMaxPool" ? "ReduceMax" : "ReduceMean", axes, true);
}

} // namespace pto::lowering
