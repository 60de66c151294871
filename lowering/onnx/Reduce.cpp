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
#include "mlir/Dialect/Arith/Utils/Utils.h"
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

namespace {
/// Which dims are reduced: known, or decided at run time (one i1 per dim).
struct ReducedDims {
  SmallVector<int64_t> known;
  SmallVector<Value> atRunTime;
  /// Number of dims reduced.
  int64_t count = 0;
};
} // namespace

/// reduce() over dims that are decided at run time: a window of size 1 or of
/// the whole dim. The reduced dims have size 1 in the result.
static Value reduceWindow(Node &n, Value input, ArrayRef<OpFoldResult> window,
                          ArrayRef<OpFoldResult> out, Value init, ScalarFn fn) {
  OpBuilder &b = n.b;
  int64_t rank = out.size();
  SmallVector<AffineExpr> inExprs, taps, outExprs;
  for (int64_t d = 0; d < rank; ++d) {
    outExprs.push_back(b.getAffineDimExpr(d));
    taps.push_back(b.getAffineDimExpr(rank + d));
    inExprs.push_back(outExprs.back() + taps.back());
  }
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(2 * rank, 0, exprs, b.getContext());
  };
  SmallVector<utils::IteratorType> iterators(2 * rank,
                                             utils::IteratorType::parallel);
  std::fill(iterators.begin() + rank, iterators.end(),
            utils::IteratorType::reduction);
  Value shape = emptyTensor(b, n.loc, window, init.getType());
  Value filled = filledTensor(b, n.loc, out, init);
  return linalg::GenericOp::create(
             b, n.loc, TypeRange{filled.getType()}, ValueRange{input, shape},
             ValueRange{filled}, {map(inExprs), map(taps), map(outExprs)},
             iterators,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               linalg::YieldOp::create(b, loc, fn(b, loc, {args[0], args[2]}));
             })
      .getResult(0);
}

static OpFoldResult selectSize(OpBuilder &b, Location loc, Value condition,
                               OpFoldResult x, OpFoldResult y) {
  return getAsOpFoldResult(b.createOrFold<arith::SelectOp>(
      loc, condition, getValueOrCreateConstantIndexOp(b, loc, x),
      getValueOrCreateConstantIndexOp(b, loc, y)));
}

/// The sizes of the dims that stay, without the others, which are known only
/// at run time: dim i of the input is dim j of the result if it stays and j
/// dims before it do.
static Sizes sizesThatStay(Node &n, ArrayRef<OpFoldResult> sizes,
                           const ReducedDims &dims) {
  OpBuilder &b = n.b;
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  Sizes result(sizes.size() - dims.count, one);
  OpFoldResult before = zero;
  for (auto [size, reduced] : llvm::zip(sizes, dims.atRunTime)) {
    for (auto [j, out] : llvm::enumerate(result)) {
      Value here = b.createOrFold<arith::CmpIOp>(
          n.loc, arith::CmpIPredicate::eq,
          getValueOrCreateConstantIndexOp(b, n.loc, before),
          arith::ConstantIndexOp::create(b, n.loc, j));
      OpFoldResult taken = selectSize(b, n.loc, here, size, out);
      out = selectSize(b, n.loc, reduced, out, taken);
    }
    before =
        addSizes(b, n.loc, before, selectSize(b, n.loc, reduced, zero, one));
  }
  return result;
}

static llvm::Error buildReduction(Node &n, StringRef op,
                                  const ReducedDims &dims, bool keepDims) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int dtype = x.dtype;
  ArrayRef<int64_t> axes = dims.known;
  bool atRunTime = !dims.atRunTime.empty();
  Sizes sizes = sizesOf(n, x), outSizes, kept, reducedSizes;
  for (int64_t d = 0; d < x.rank(); ++d) {
    OpFoldResult one = b.getIndexAttr(1);
    if (atRunTime) {
      reducedSizes.push_back(
          selectSize(b, loc, dims.atRunTime[d], sizes[d], one));
      outSizes.push_back(selectSize(b, loc, dims.atRunTime[d], one, sizes[d]));
    } else if (llvm::is_contained(axes, d)) {
      reducedSizes.push_back(sizes[d]);
      if (keepDims)
        kept.push_back(one);
    } else {
      outSizes.push_back(sizes[d]);
      kept.push_back(sizes[d]);
    }
  }
  if (atRunTime)
    kept = keepDims ? outSizes : sizesThatStay(n, sizes, dims);
  if (atRunTime && op == "ReduceLogSumExp")
    return n.unsupported("a run-time value of 'axes'");
  auto reduceDims = [&](Value input, Value init, ScalarFn fn) {
    return atRunTime ? reduceWindow(n, input, reducedSizes, outSizes, init, fn)
                     : reduce(b, loc, input, axes, init, fn);
  };
  if (!atRunTime)
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
  Value sum = reduceDims(
      n.value(shifted), init,
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
  int64_t rank = x.rank();
  // ReduceSum took its axes as an input five versions before the others.
  int inputSince = n.op() == "ReduceSum" ? 13 : 18;
  bool keepDims = n.intAttr("keepdims", 1);
  ReducedDims dims;
  bool given = n.since >= inputSince && n.has(1);
  if (given && !knownIntegers(n.in(1)) &&
      n.in(1).shape() != ArrayRef<int64_t>{0}) {
    auto elements = elementsOf(n, n.in(1));
    if (!elements || n.in(1).rank() != 1)
      return n.unsupported("'axes' of unknown length");
    Value no = arith::ConstantOp::create(n.b, n.loc, n.b.getBoolAttr(false));
    dims.atRunTime.assign(rank, no);
    dims.count = elements->size();
    for (OpFoldResult e : *elements)
      for (int64_t d = 0; d < rank; ++d)
        for (int64_t name : {d, d - rank}) {
          Value v = scalarValue(n.b, n.loc, e);
          Value hit = n.b.createOrFold<arith::CmpIOp>(
              n.loc, arith::CmpIPredicate::eq, v,
              scalarConstant(n.b, n.loc, v.getType(), name));
          dims.atRunTime[d] =
              n.b.createOrFold<arith::OrIOp>(n.loc, dims.atRunTime[d], hit);
        }
    if (dims.count > rank)
      return n.invalid("more axes than dims");
    return buildReduction(n, n.op(), dims, keepDims);
  }
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
    return buildReduction(n, n.op(), dims, true);
  }
  if (axes->empty())
    *axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  for (int64_t &a : *axes) {
    auto normal = normalizeAxis(n, a, rank);
    if (!normal)
      return normal.takeError();
    a = *normal;
  }
  llvm::sort(*axes);
  axes->erase(std::unique(axes->begin(), axes->end()), axes->end());
  dims.known = *axes;
  dims.count = axes->size();
  return buildReduction(n, n.op(), dims, keepDims);
}

llvm::Error buildGlobalPool(Node &n) {
  if (n.in(0).rank() < 3)
    return n.invalid("input of rank " + Twine(n.in(0).rank()));
  ReducedDims dims;
  dims.known = llvm::to_vector(llvm::seq<int64_t>(2, n.in(0).rank()));
  dims.count = dims.known.size();
  return buildReduction(
      n, n.op() == "GlobalMaxPool" ? "ReduceMax" : "ReduceMean", dims, true);
}

} // namespace pto::lowering
