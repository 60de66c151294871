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

/// Two passes (mean, then centred squares), as accurate as ONNX's definition;
/// in float32 for the 16-bit types.
llvm::Error buildLayerNormalization(Node &n) {
  Tensor &x = n.in(0);
  auto axis = normalizeAxis(n, n.intAttr("axis", -1), x.rank());
  if (!axis)
    return axis.takeError();
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int dtype = x.dtype;
  int stash = n.intAttr("stash_type", 1);
  Type compute = storageType(b.getContext(), stash);
  if (!isFloat(dtype) || !compute)
    return n.unsupported("data type " + onnxTypeName(dtype));
  // Statistics in stash_type, but never narrower than the input.
  if (compute.getIntOrFloatBitWidth() < x.elementType().getIntOrFloatBitWidth())
    compute = x.elementType(), stash = dtype;
  auto widen = [compute](OpBuilder &b, Location loc, Value v) -> Value {
    return v.getType() == compute
               ? v
               : b.createOrFold<arith::ExtFOp>(loc, compute, v);
  };

  Sizes sizes = sizesOf(n, x);
  auto axes = llvm::to_vector(llvm::seq<int64_t>(*axis, x.rank()));
  Sizes outer(sizes.begin(), sizes.begin() + *axis);
  Sizes kept = outer;
  kept.resize(x.rank(), b.getIndexAttr(1));
  OpFoldResult count =
      product(b, loc, ArrayRef<OpFoldResult>(sizes).drop_front(*axis));
  auto countType = RankedTensorType::get({}, b.getI64Type());
  Tensor countTensor =
      Tensor::fromElements(onnx::TensorProto::INT64, countType,
                           fromIndex(b, loc, count, b.getI64Type()));
  auto divideByCount = [&](OpBuilder &b, Location loc, Value v,
                           Value c) -> Value {
    Value f = b.createOrFold<arith::SIToFPOp>(loc, compute, c);
    return b.createOrFold<arith::DivFOp>(loc, v, f);
  };

  Value zero = scalarConstant(b, loc, compute, 0);
  Value sum = reduce(b, loc, n.value(x), axes, zero,
                     [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                       return scalarAdd(b, loc, v[1], widen(b, loc, v[0]));
                     });
  Tensor sumTensor = Tensor::fromValue(stash, sum);
  Tensor mean =
      elementwiseOver(n, {&sumTensor, &countTensor}, outer, stash,
                      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                        return divideByCount(b, loc, v[0], v[1]);
                      });
  Tensor meanKept = reshape(n, mean, kept);
  auto centred = elementwise(
      n, {&x, &meanKept}, stash,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        return b.createOrFold<arith::SubFOp>(loc, widen(b, loc, v[0]), v[1]);
      });
  if (!centred)
    return centred.takeError();
  Value squares = reduce(b, loc, n.value(*centred), axes, zero,
                         [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                           Value s = scalarMul(b, loc, v[0], v[0], true);
                           return scalarAdd(b, loc, v[1], s, true);
                         });
  Tensor squaresTensor = Tensor::fromValue(stash, squares);
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  Tensor inverse = elementwiseOver(
      n, {&squaresTensor, &countTensor}, outer, stash,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        Value variance = divideByCount(b, loc, v[0], v[1]);
        Value e = scalarConstant(b, loc, compute, epsilon);
        Value root =
            b.createOrFold<math::SqrtOp>(loc, scalarAdd(b, loc, variance, e));
        return b.createOrFold<arith::DivFOp>(
            loc, scalarConstant(b, loc, compute, 1), root);
      });
  Tensor inverseKept = reshape(n, inverse, kept);
  SmallVector<Tensor *> inputs = {&*centred, &inverseKept, &n.in(1)};
  if (n.has(2))
    inputs.push_back(&n.in(2));
  auto out = elementwise(
      n, inputs, dtype,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        Value r = scalarMul(b, loc, v[0], v[1]);
        if (r.getType() != v[2].getType())
          r = b.createOrFold<arith::TruncFOp>(loc, v[2].getType(), r);
        r = scalarMul(b, loc, r, v[2], true);
        return v.size() > 3 ? scalarAdd(b, loc, r, v[3], true) : r;
      });
  if (!out)
    return out.takeError();
  n.set(0, *out);
  if (n.wants(1))
    n.set(1, meanKept);
  if (n.wants(2))
    n.set(2, inverseKept);
  return llvm::Error::success();
}

} // namespace pto::lowering
