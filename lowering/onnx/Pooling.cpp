//===- Pooling.cpp - Reductions over sliding windows ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Ops.h"
#include "lowering/onnx/Window.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace pto::lowering {

/// Reduces the window of every position of the padded `input`: (n, c,
/// positions..., taps...). The window operand only carries the tap sizes.
static Value pool(Node &n, const Window &w, Value input,
                  ArrayRef<OpFoldResult> positions, Value init, ScalarFn fn) {
  OpBuilder &b = n.b;
  int64_t rank = w.rank(), dims = 2 + 2 * rank;
  Sizes in = sizesOf(b, n.loc, input);
  Sizes out = {in[0], in[1]};
  llvm::append_range(out, positions);
  SmallVector<AffineExpr> inExprs = {b.getAffineDimExpr(0),
                                     b.getAffineDimExpr(1)};
  SmallVector<AffineExpr> outExprs = inExprs, taps;
  Sizes windowSizes;
  for (int64_t d = 0; d < rank; ++d) {
    AffineExpr position = b.getAffineDimExpr(2 + d);
    AffineExpr tap = b.getAffineDimExpr(2 + rank + d);
    inExprs.push_back(windowExpr(w, d, position, tap));
    outExprs.push_back(position);
    taps.push_back(tap);
    windowSizes.push_back(b.getIndexAttr(w.kernel[d]));
  }
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(dims, 0, exprs, b.getContext());
  };
  SmallVector<utils::IteratorType> iterators(dims,
                                             utils::IteratorType::parallel);
  std::fill(iterators.end() - rank, iterators.end(),
            utils::IteratorType::reduction);
  Value window = emptyTensor(b, n.loc, windowSizes, init.getType());
  Value filled = filledTensor(b, n.loc, out, init);
  return linalg::GenericOp::create(
             b, n.loc, TypeRange{filled.getType()}, ValueRange{input, window},
             ValueRange{filled}, {map(inExprs), map(taps), map(outExprs)},
             iterators,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               linalg::YieldOp::create(b, loc, fn(b, loc, {args[0], args[2]}));
             })
      .getResult(0);
}

static llvm::Expected<Window> readPool(Node &n, ArrayRef<OpFoldResult> in) {
  if (in.size() < 3)
    return n.invalid("input of rank " + Twine(in.size()));
  return readWindow(n, n.intsAttr("kernel_shape"), in.drop_front(2));
}

llvm::Error buildMaxPool(Node &n) {
  if (n.wants(1))
    return n.unsupported("the Indices output");
  Tensor &x = n.in(0);
  Sizes in = sizesOf(n, x);
  auto w = readPool(n, in);
  if (!w)
    return w.takeError();
  Sizes positions = windowPositions(n, *w, ArrayRef(in).drop_front(2));
  Value low = lowest(n.b, n.loc, x.dtype);
  Value padded = padForWindow(n, *w, n.value(x), positions, low);
  n.set(0, x.dtype,
        pool(n, *w, padded, positions, low,
             [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
               return scalarMax(b, loc, x.dtype, v[1], v[0]);
             }));
  return llvm::Error::success();
}

/// The taps of dim `d` that count, per position: inside the input, or inside
/// its declared padding when that is included.
static SmallVector<int64_t> countTaps(const Window &w, int64_t d, int64_t size,
                                      int64_t positions, bool includePad) {
  int64_t begin = *known(w.padBegin[d]), end = *known(w.padEnd[d]);
  int64_t lo = includePad ? -begin : 0, hi = includePad ? size + end : size;
  SmallVector<int64_t> counts;
  for (int64_t p = 0; p < positions; ++p) {
    int64_t count = 0;
    for (int64_t k = 0; k < w.kernel[d]; ++k) {
      int64_t at = p * w.strides[d] - begin + k * w.dilations[d];
      count += at >= lo && at < hi;
    }
    counts.push_back(count);
  }
  return counts;
}

llvm::Error buildAveragePool(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  if (!isFloat(x.dtype))
    return n.unsupported("data type " + onnxTypeName(x.dtype));
  Sizes in = sizesOf(n, x);
  auto w = readPool(n, in);
  if (!w)
    return w.takeError();
  Sizes positions = windowPositions(n, *w, ArrayRef(in).drop_front(2));
  Value zero = scalarConstant(b, n.loc, x.elementType(), 0);
  Value padded = padForWindow(n, *w, n.value(x), positions, zero);
  Tensor out = Tensor::fromValue(
      x.dtype, pool(n, *w, padded, positions, zero,
                    [](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                      return scalarAdd(b, loc, v[1], v[0]);
                    }));

  // Divide by the number of taps that count. Dims where that is the same
  // everywhere go into one constant; the others are small constant tensors.
  bool includePad = n.intAttr("count_include_pad", 0);
  double uniform = 1;
  SmallVector<Tensor> counts;
  for (int64_t d = 0; d < w->rank(); ++d) {
    bool padded = known(w->padBegin[d]) != 0 || known(w->padEnd[d]) != 0;
    if ((!padded || includePad) && !w->ceil) {
      uniform *= w->kernel[d];
      continue;
    }
    auto size = known(in[2 + d]), count = known(positions[d]);
    if (!size || !count || !known(w->padBegin[d]))
      return n.unsupported("a dynamic size with windows of varying tap count");
    SmallVector<int64_t> taps = countTaps(*w, d, *size, *count, includePad);
    if (llvm::all_equal(taps)) {
      uniform *= taps.empty() ? 1 : taps.front();
      continue;
    }
    SmallVector<int64_t> shape(w->rank() - d, 1);
    shape[0] = *count;
    SmallVector<double> values(taps.begin(), taps.end());
    SmallVector<Attribute> attrs;
    for (double v : values)
      attrs.push_back(b.getFloatAttr(x.elementType(), v));
    auto type = RankedTensorType::get(shape, x.elementType());
    auto dense = DenseElementsAttr::get(type, attrs);
    counts.push_back(Tensor::fromConstant(
        x.dtype, makeConstant(type, constantBytes(dense), "pool_taps")));
  }
  SmallVector<Tensor *> inputs = {&out};
  for (Tensor &t : counts)
    inputs.push_back(&t);
  Sizes sizes = sizesOf(n, out);
  n.set(0, elementwiseOver(
               n, inputs, sizes, x.dtype,
               [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
                 Value divisor =
                     scalarConstant(b, loc, v[0].getType(), uniform);
                 for (Value c : v.drop_front())
                   divisor = scalarMul(b, loc, divisor, c);
                 return b.createOrFold<arith::DivFOp>(loc, v[0], divisor);
               }));
  return llvm::Error::success();
}

llvm::Error buildLpPool(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  if (!isFloat(x.dtype))
    return n.unsupported("data type " + onnxTypeName(x.dtype));
  Sizes in = sizesOf(n, x);
  auto w = readPool(n, in);
  if (!w)
    return w.takeError();
  double p = n.intAttr("p", 2);
  Sizes positions = windowPositions(n, *w, ArrayRef(in).drop_front(2));
  Value zero = scalarConstant(b, n.loc, x.elementType(), 0);
  Value padded = padForWindow(n, *w, n.value(x), positions, zero);
  auto power = [](OpBuilder &b, Location loc, Value v, double e) -> Value {
    return b.createOrFold<math::PowFOp>(loc, v,
                                        scalarConstant(b, loc, v.getType(), e));
  };
  Tensor sum = Tensor::fromValue(
      x.dtype, pool(n, *w, padded, positions, zero,
                    [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                      Value a = b.createOrFold<math::AbsFOp>(loc, v[0]);
                      return scalarAdd(b, loc, v[1],
                                       p == 1   ? a
                                       : p == 2 ? scalarMul(b, loc, a, a)
                                                : power(b, loc, a, p));
                    }));
  if (p == 1) {
    n.set(0, sum);
    return llvm::Error::success();
  }
  n.set(0, elementwiseOver(
               n, {&sum}, sizesOf(n, sum), x.dtype,
               [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
                 return p == 2 ? b.createOrFold<math::SqrtOp>(loc, v[0])
                               : power(b, loc, v[0], 1 / p);
               }));
  return llvm::Error::success();
}

/// x / (bias + alpha / size * sum of squares over the channels around)^beta.
llvm::Error buildLrn(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int64_t size = n.intAttr("size", 1), rank = x.rank();
  if (rank < 3 || size < 1 || !isFloat(x.dtype))
    return n.invalid("rank, size or type");
  double alpha = n.floatAttr("alpha", 1e-4f), beta = n.floatAttr("beta", 0.75f),
         bias = n.floatAttr("bias", 1);
  Sizes sizes = sizesOf(n, x), padded = sizes;
  Sizes low(rank, b.getIndexAttr(0)), high = low;
  low[1] = b.getIndexAttr((size - 1) / 2);
  high[1] = b.getIndexAttr(size - 1 - (size - 1) / 2);
  padded[1] = addSizes(b, loc, sizes[1], b.getIndexAttr(size - 1));
  Value zero = scalarConstant(b, loc, x.elementType(), 0);
  Value source = tensor::PadOp::create(
      b, loc, x.type.clone(staticShape(padded)), n.value(x), low, high, zero);
  SmallVector<AffineExpr> inExprs, outExprs;
  for (int64_t d = 0; d < rank; ++d) {
    outExprs.push_back(b.getAffineDimExpr(d));
    inExprs.push_back(d == 1 ? b.getAffineDimExpr(1) + b.getAffineDimExpr(rank)
                             : b.getAffineDimExpr(d));
  }
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(rank + 1, 0, exprs, b.getContext());
  };
  SmallVector<utils::IteratorType> iterators(rank + 1,
                                             utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  Value window = emptyTensor(b, loc, {OpFoldResult(b.getIndexAttr(size))},
                             x.elementType());
  Value init = filledTensor(b, loc, sizes, zero);
  auto op = linalg::GenericOp::create(
      b, loc, TypeRange{init.getType()}, ValueRange{source, window},
      ValueRange{init},
      {map(inExprs), map(b.getAffineDimExpr(rank)), map(outExprs)}, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value s = scalarMul(b, loc, args[0], args[0], true);
        linalg::YieldOp::create(b, loc, scalarAdd(b, loc, args[2], s, true));
      });
  Tensor sum = Tensor::fromValue(x.dtype, op.getResult(0));
  n.set(0, elementwiseOver(
               n, {&x, &sum}, sizes, x.dtype,
               [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
                 Type type = v[0].getType();
                 Value scaled = scalarMul(
                     b, loc, v[1], scalarConstant(b, loc, type, alpha / size));
                 Value base = scalarAdd(b, loc, scaled,
                                        scalarConstant(b, loc, type, bias));
                 Value d = b.createOrFold<math::PowFOp>(
                     loc, base, scalarConstant(b, loc, type, beta));
                 return b.createOrFold<arith::DivFOp>(loc, v[0], d);
               }));
  return llvm::Error::success();
}

} // namespace pto::lowering
