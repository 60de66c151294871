//===- Quantize.cpp - Integers with scale and zero point ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Products of quantised operands are products of int32: the zero points are
// subtracted first, so nothing saturates on the way.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "onnx/onnx_pb.h"

using namespace mlir;
using onnx::TensorProto;

namespace pto::lowering {

/// A scale or zero point of `x`: a scalar, or one value per index of `axis`.
static llvm::Expected<Tensor> parameter(Node &n, Tensor &p, Tensor &x,
                                        int64_t axis) {
  if (p.rank() == 0 ||
      (p.type.hasStaticShape() && p.type.getNumElements() == 1))
    return reshape(n, p, {});
  if (p.rank() != 1)
    return n.unsupported("a scale or zero point per block");
  auto normal = normalizeAxis(n, axis, x.rank());
  if (!normal)
    return normal.takeError();
  Sizes column(x.rank() - *normal, n.b.getIndexAttr(1));
  column[0] = sizesOf(n, p)[0];
  return reshape(n, p, column);
}

/// round(value / scale) + zero point, saturated to `to`. `value` and `scale`
/// are floats of one type.
static Value quantize(OpBuilder &b, Location loc, Value value, Value scale,
                      Value zeroPoint, int from, int to) {
  Value q = b.createOrFold<arith::DivFOp>(loc, value, scale);
  q = b.createOrFold<math::RoundEvenOp>(loc, q);
  if (zeroPoint)
    q = scalarAdd(b, loc, q, scalarCast(b, loc, zeroPoint, to, from));
  return scalarCast(b, loc, q, from, to);
}

llvm::Error buildQuantizeLinear(Node &n) {
  Tensor &x = n.in(0);
  int64_t axis = n.intAttr("axis", 1);
  if (n.intAttr("block_size", 0))
    return n.unsupported("quantisation by blocks");
  int to = n.has(2) ? n.in(2).dtype : n.intAttr("output_dtype", 0);
  if (to == 0)
    to = TensorProto::UINT8;
  if (!storageType(n.b.getContext(), to) || isFloat(to))
    return n.unsupported("data type " + onnxTypeName(to));
  auto scale = parameter(n, n.in(1), x, axis);
  if (!scale)
    return scale.takeError();
  SmallVector<Tensor *> inputs = {&x, &*scale};
  Tensor zero;
  if (n.has(2)) {
    auto zeroPoint = parameter(n, n.in(2), x, axis);
    if (!zeroPoint)
      return zeroPoint.takeError();
    zero = *zeroPoint;
    inputs.push_back(&zero);
  }
  // 16-bit floats are divided in float32: their sums would round twice.
  int compute = TensorProto::FLOAT;
  auto out = elementwise(
      n, inputs, to, [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
        Value value = scalarCast(b, loc, v[0], x.dtype, compute);
        Value s = scalarCast(b, loc, v[1], scale->dtype, compute);
        return quantize(b, loc, value, s, v.size() > 2 ? v[2] : Value(),
                        compute, to);
      });
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

llvm::Error buildDequantizeLinear(Node &n) {
  Tensor &x = n.in(0);
  int64_t axis = n.intAttr("axis", 1);
  if (n.intAttr("block_size", 0))
    return n.unsupported("quantisation by blocks");
  if (isFloat(x.dtype))
    return n.unsupported("data type " + onnxTypeName(x.dtype));
  auto scale = parameter(n, n.in(1), x, axis);
  if (!scale)
    return scale.takeError();
  int to = n.intAttr("output_dtype", 0);
  if (to == 0)
    to = scale->dtype;
  SmallVector<Tensor *> inputs = {&x, &*scale};
  Tensor zero;
  if (n.has(2)) {
    auto zeroPoint = parameter(n, n.in(2), x, axis);
    if (!zeroPoint)
      return zeroPoint.takeError();
    zero = *zeroPoint;
    inputs.push_back(&zero);
  }
  auto out = elementwise(
      n, inputs, to, [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
        Value q = scalarCast(b, loc, v[0], x.dtype, TensorProto::INT32);
        if (v.size() > 2)
          q = b.createOrFold<arith::SubIOp>(
              loc, q, scalarCast(b, loc, v[2], zero.dtype, TensorProto::INT32));
        Value s = scalarCast(b, loc, v[1], scale->dtype, TensorProto::FLOAT);
        Value f = scalarCast(b, loc, q, TensorProto::INT32, TensorProto::FLOAT);
        return scalarCast(b, loc, scalarMul(b, loc, f, s), TensorProto::FLOAT,
                          to);
      });
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

/// x as int32 minus its zero point, which is per `axis` unless scalar.
static llvm::Expected<Tensor> centred(Node &n, Tensor &x, Tensor *zeroPoint,
                                      int64_t axis) {
  SmallVector<Tensor *> inputs = {&x};
  Tensor zero;
  if (zeroPoint) {
    auto p = parameter(n, *zeroPoint, x, axis);
    if (!p)
      return p.takeError();
    zero = *p;
    inputs.push_back(&zero);
  }
  return elementwise(
      n, inputs, TensorProto::INT32,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        Value q = scalarCast(b, loc, v[0], x.dtype, TensorProto::INT32);
        if (v.size() == 1)
          return q;
        return b.createOrFold<arith::SubIOp>(
            loc, q, scalarCast(b, loc, v[1], zero.dtype, TensorProto::INT32));
      });
}

llvm::Error buildMatMulInteger(Node &n) {
  auto a = centred(n, n.in(0), n.has(2) ? &n.in(2) : nullptr, -2);
  if (!a)
    return a.takeError();
  auto b = centred(n, n.in(1), n.has(3) ? &n.in(3) : nullptr, -1);
  if (!b)
    return b.takeError();
  auto out = matrixProduct(n, *a, *b);
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

llvm::Error buildConvInteger(Node &n) {
  auto x = centred(n, n.in(0), n.has(2) ? &n.in(2) : nullptr, 1);
  if (!x)
    return x.takeError();
  auto w = centred(n, n.in(1), n.has(3) ? &n.in(3) : nullptr, 0);
  if (!w)
    return w.takeError();
  auto out = convolution(n, *x, *w);
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

/// acc * (a scale * b scale / y scale), rounded and saturated.
static llvm::Expected<Tensor> requantize(Node &n, Tensor acc, size_t aScale,
                                         size_t bScale, size_t yScale,
                                         int64_t bAxis, Tensor *bias) {
  Tensor &zero = n.in(yScale + 1);
  auto as = parameter(n, n.in(aScale), acc, -2);
  if (!as)
    return as.takeError();
  auto bs = parameter(n, n.in(bScale), acc, bAxis);
  if (!bs)
    return bs.takeError();
  auto ys = parameter(n, n.in(yScale), acc, bAxis);
  if (!ys)
    return ys.takeError();
  auto yz = parameter(n, zero, acc, bAxis);
  if (!yz)
    return yz.takeError();
  int to = zero.dtype, compute = TensorProto::FLOAT;
  SmallVector<Tensor *> inputs = {&acc, &*as, &*bs, &*ys, &*yz};
  if (bias)
    inputs.push_back(bias);
  return elementwise(
      n, inputs, to, [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
        Value sum = v.size() > 5 ? scalarAdd(b, loc, v[0], v[5]) : v[0];
        Value f = scalarCast(b, loc, sum, TensorProto::INT32, compute);
        Value sa = scalarCast(b, loc, v[1], as->dtype, compute);
        Value sb = scalarCast(b, loc, v[2], bs->dtype, compute);
        Value sy = scalarCast(b, loc, v[3], ys->dtype, compute);
        Value value = scalarMul(b, loc, f, scalarMul(b, loc, sa, sb));
        return quantize(b, loc, value, sy, v[4], compute, to);
      });
}

llvm::Error buildQLinearMatMul(Node &n) {
  if (isFloat(n.in(7).dtype) || !storageType(n.b.getContext(), n.in(7).dtype))
    return n.unsupported("data type " + onnxTypeName(n.in(7).dtype));
  auto a = centred(n, n.in(0), &n.in(2), -2);
  if (!a)
    return a.takeError();
  auto b = centred(n, n.in(3), &n.in(5), -1);
  if (!b)
    return b.takeError();
  auto product = matrixProduct(n, *a, *b);
  if (!product)
    return product.takeError();
  auto out = requantize(n, *product, 1, 4, 6, -1, nullptr);
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

llvm::Error buildQLinearConv(Node &n) {
  auto x = centred(n, n.in(0), &n.in(2), 1);
  if (!x)
    return x.takeError();
  auto w = centred(n, n.in(3), &n.in(5), 0);
  if (!w)
    return w.takeError();
  auto acc = convolution(n, *x, *w);
  if (!acc)
    return acc.takeError();
  Tensor bias;
  if (n.has(8)) {
    auto column = parameter(n, n.in(8), *acc, 1);
    if (!column)
      return column.takeError();
    bias = *column;
  }
  auto out = requantize(n, *acc, 1, 4, 6, 1, n.has(8) ? &bias : nullptr);
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

} // namespace pto::lowering
