//===- Normalization.cpp - Batch and layer normalisation ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace pto::lowering {

/// y = x * a[c] + b[c], with a and b computed from the constants alone so that
/// they can be folded into a convolution before it.
llvm::Error buildBatchNormalization(Node &n) {
  if (n.intAttr("training_mode", 0) || n.wants(1))
    return n.unsupported("training mode");
  if (n.since < 9 && n.hasAttr("spatial") && !n.intAttr("spatial", 1))
    return n.unsupported("spatial = 0");
  Tensor &x = n.in(0);
  if (x.rank() < 2)
    return n.invalid("input of rank " + Twine(x.rank()));
  int dtype = n.in(1).dtype;
  for (size_t i = 0; i < 5; ++i)
    if (n.in(i).dtype != x.dtype)
      return n.unsupported("mixed data types");
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  auto scale =
      elementwise(n, {&n.in(1), &n.in(4)}, dtype,
                  [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
                    Value e = scalarConstant(b, loc, v[1].getType(), epsilon);
                    Value root = b.createOrFold<math::SqrtOp>(
                        loc, scalarAdd(b, loc, v[1], e));
                    return b.createOrFold<arith::DivFOp>(loc, v[0], root);
                  });
  if (!scale)
    return scale.takeError();
  auto shift =
      elementwise(n, {&n.in(2), &n.in(3), &*scale}, dtype,
                  [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
                    return b.createOrFold<arith::SubFOp>(
                        loc, v[0], scalarMul(b, loc, v[1], v[2]));
                  });
  if (!shift)
    return shift.takeError();
  Sizes column(x.rank() - 1, n.b.getIndexAttr(1));
  column[0] = sizesOf(n, *scale)[0];
  Tensor a = reshape(n, *scale, column), c = reshape(n, *shift, column);
  auto out =
      elementwise(n, {&x, &a, &c}, x.dtype,
                  [](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
                    Value m = scalarMul(b, loc, v[0], v[1], true);
                    return scalarAdd(b, loc, m, v[2], true);
                  });
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

namespace {
/// (x - mean) and 1 / sqrt(variance + epsilon) over `axes`, in `dtype`; the
/// statistics keep the reduced dims as 1.
struct Standardized {
  Tensor centred, mean, inverse;
};
} // namespace

/// Two passes (mean, then centred squares), as accurate as ONNX's definitions.
static Standardized standardize(Node &n, Tensor &x, ArrayRef<int64_t> axes,
                                int dtype, double epsilon) {
  OpBuilder &b = n.b;
  Location loc = n.loc;
  Type compute = storageType(b.getContext(), dtype);
  auto widen = [compute](OpBuilder &b, Location loc, Value v) -> Value {
    return v.getType() == compute
               ? v
               : b.createOrFold<arith::ExtFOp>(loc, compute, v);
  };
  Sizes sizes = sizesOf(n, x), outer, kept, reduced;
  for (int64_t d = 0; d < x.rank(); ++d) {
    bool gone = llvm::is_contained(axes, d);
    (gone ? reduced : outer).push_back(sizes[d]);
    kept.push_back(gone ? OpFoldResult(b.getIndexAttr(1)) : sizes[d]);
  }
  Tensor count = Tensor::fromElements(
      onnx::TensorProto::INT64, RankedTensorType::get({}, b.getI64Type()),
      fromIndex(b, loc, product(b, loc, reduced), b.getI64Type()));
  auto divideByCount = [&](OpBuilder &b, Location loc, Value v,
                           Value c) -> Value {
    Value f = b.createOrFold<arith::SIToFPOp>(loc, compute, c);
    return b.createOrFold<arith::DivFOp>(loc, v, f);
  };
  Value zero = scalarConstant(b, loc, compute, 0);
  Tensor sum = Tensor::fromValue(
      dtype, reduce(b, loc, n.value(x), axes, zero,
                    [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                      return scalarAdd(b, loc, v[1], widen(b, loc, v[0]));
                    }));
  Tensor mean =
      elementwiseOver(n, {&sum, &count}, outer, dtype,
                      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                        return divideByCount(b, loc, v[0], v[1]);
                      });
  Standardized result;
  result.mean = reshape(n, mean, kept);
  result.centred = elementwiseOver(
      n, {&x, &result.mean}, sizes, dtype,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        return b.createOrFold<arith::SubFOp>(loc, widen(b, loc, v[0]), v[1]);
      });
  Tensor squares = Tensor::fromValue(
      dtype, reduce(b, loc, n.value(result.centred), axes, zero,
                    [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                      Value s = scalarMul(b, loc, v[0], v[0], true);
                      return scalarAdd(b, loc, v[1], s, true);
                    }));
  Tensor inverse = elementwiseOver(
      n, {&squares, &count}, outer, dtype,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        Value variance = divideByCount(b, loc, v[0], v[1]);
        Value e = scalarConstant(b, loc, compute, epsilon);
        Value root =
            b.createOrFold<math::SqrtOp>(loc, scalarAdd(b, loc, variance, e));
        return b.createOrFold<arith::DivFOp>(
            loc, scalarConstant(b, loc, compute, 1), root);
      });
  result.inverse = reshape(n, inverse, kept);
  return result;
}

/// centred * inverse * scale (+ shift), rounded to `dtype` before the scale.
static llvm::Expected<Tensor>
applyScale(Node &n, Standardized &s, Tensor &scale, Tensor *shift, int dtype) {
  SmallVector<Tensor *> inputs = {&s.centred, &s.inverse, &scale};
  if (shift)
    inputs.push_back(shift);
  return elementwise(
      n, inputs, dtype,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        Value r = scalarMul(b, loc, v[0], v[1]);
        if (r.getType() != v[2].getType())
          r = b.createOrFold<arith::TruncFOp>(loc, v[2].getType(), r);
        r = scalarMul(b, loc, r, v[2], true);
        return v.size() > 3 ? scalarAdd(b, loc, r, v[3], true) : r;
      });
}

llvm::Error buildLayerNormalization(Node &n) {
  Tensor &x = n.in(0);
  auto axis = normalizeAxis(n, n.intAttr("axis", -1), x.rank());
  if (!axis)
    return axis.takeError();
  int stash = n.intAttr("stash_type", 1);
  if (!isFloat(x.dtype) || !isFloat(stash))
    return n.unsupported("data type " + onnxTypeName(x.dtype));
  // Statistics in stash_type, but never narrower than the input.
  if (dtypeBytes(stash) < dtypeBytes(x.dtype))
    stash = x.dtype;
  Standardized s =
      standardize(n, x, llvm::to_vector(llvm::seq<int64_t>(*axis, x.rank())),
                  stash, n.floatAttr("epsilon", 1e-5f));
  auto out = applyScale(n, s, n.in(1), n.has(2) ? &n.in(2) : nullptr, x.dtype);
  if (!out)
    return out.takeError();
  n.set(0, *out);
  if (n.wants(1))
    n.set(1, s.mean);
  if (n.wants(2))
    n.set(2, s.inverse);
  return llvm::Error::success();
}

llvm::Error buildInstanceNormalization(Node &n) {
  Tensor &x = n.in(0);
  if (x.rank() < 3 || !isFloat(x.dtype))
    return n.invalid("input of rank " + Twine(x.rank()) + " or type " +
                     onnxTypeName(x.dtype));
  int stash =
      dtypeBytes(x.dtype) == 2 ? int(onnx::TensorProto::FLOAT) : x.dtype;
  Standardized s =
      standardize(n, x, llvm::to_vector(llvm::seq<int64_t>(2, x.rank())), stash,
                  n.floatAttr("epsilon", 1e-5f));
  Sizes column(x.rank() - 1, n.b.getIndexAttr(1));
  column[0] = sizesOf(n, n.in(1))[0];
  Tensor scale = reshape(n, n.in(1), column),
         shift = reshape(n, n.in(2), column);
  auto out = applyScale(n, s, scale, &shift, x.dtype);
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

/// x / norm, and 0 where the norm is 0.
llvm::Error buildLpNormalization(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  int64_t p = n.intAttr("p", 2);
  if (p != 1 && p != 2)
    return n.unsupported("p = " + Twine(p));
  auto axis = normalizeAxis(n, n.intAttr("axis", -1), x.rank());
  if (!axis)
    return axis.takeError();
  Value zero = scalarConstant(b, n.loc, x.elementType(), 0);
  Sizes sizes = sizesOf(n, x), kept = sizes;
  kept[*axis] = b.getIndexAttr(1);
  Tensor sum = Tensor::fromValue(
      x.dtype, reduce(b, n.loc, n.value(x), {*axis}, zero,
                      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                        Value e = p == 1
                                      ? b.createOrFold<math::AbsFOp>(loc, v[0])
                                      : scalarMul(b, loc, v[0], v[0], true);
                        return scalarAdd(b, loc, v[1], e, true);
                      }));
  Tensor norm = reshape(n, sum, kept);
  n.set(0, elementwiseOver(
               n, {&x, &norm}, sizes, x.dtype,
               [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
                 Value d =
                     p == 1 ? v[1] : b.createOrFold<math::SqrtOp>(loc, v[1]);
                 Value zero = scalarConstant(b, loc, v[0].getType(), 0);
                 Value none = b.createOrFold<arith::CmpFOp>(
                     loc, arith::CmpFPredicate::OEQ, d, zero);
                 Value q = b.createOrFold<arith::DivFOp>(loc, v[0], d);
                 return b.createOrFold<arith::SelectOp>(loc, none, zero, q);
               }));
  return llvm::Error::success();
}

} // namespace pto::lowering
