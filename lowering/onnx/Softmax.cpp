//===- Softmax.cpp - Softmax and LogSoftmax -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Four simple ops (maximum, exponentials, sum, quotient) that later stages can
// fuse as they like.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace pto::lowering {

llvm::Error buildSoftmax(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int dtype = x.dtype;
  bool log = n.op() == "LogSoftmax";
  // Before version 13 everything from the axis on is one row.
  bool flatten = n.since < 13;
  auto axis = normalizeAxis(n, n.intAttr("axis", flatten ? 1 : -1), x.rank());
  if (!axis)
    return axis.takeError();
  if (x.rank() == 0) {
    n.set(0, elementwiseOver(
                 n, {&x}, {}, dtype,
                 [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                   return scalarConstant(b, loc, v[0].getType(), log ? 0 : 1);
                 }));
    return llvm::Error::success();
  }
  SmallVector<int64_t> axes = {*axis};
  if (flatten)
    axes.assign(llvm::seq<int64_t>(*axis, x.rank()).begin(),
                llvm::seq<int64_t>(*axis, x.rank()).end());
  Sizes sizes = sizesOf(n, x), kept;
  for (int64_t d = 0; d < x.rank(); ++d)
    kept.push_back(llvm::is_contained(axes, d) ? OpFoldResult(b.getIndexAttr(1))
                                               : sizes[d]);
  auto add = [](OpBuilder &b, Location loc, ArrayRef<Value> v) {
    return scalarAdd(b, loc, v[1], v[0]);
  };
  Value top = reduce(b, loc, n.value(x), axes, lowest(b, loc, dtype),
                     [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                       return scalarMax(b, loc, dtype, v[1], v[0]);
                     });
  Tensor topTensor = Tensor::fromValue(dtype, reshape(b, loc, top, kept));
  Value zero = scalarConstant(b, loc, x.elementType(), 0);
  if (log) {
    Tensor centred =
        elementwiseOver(n, {&x, &topTensor}, sizes, dtype,
                        [](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                          return b.createOrFold<arith::SubFOp>(loc, v[0], v[1]);
                        });
    Value sum =
        reduce(b, loc, n.value(centred), axes, zero,
               [](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                 return scalarAdd(b, loc, v[1],
                                  b.createOrFold<math::ExpOp>(loc, v[0]));
               });
    Tensor sumTensor = Tensor::fromValue(dtype, reshape(b, loc, sum, kept));
    n.set(0, elementwiseOver(n, {&centred, &sumTensor}, sizes, dtype,
                             [](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                               return b.createOrFold<arith::SubFOp>(
                                   loc, v[0],
                                   b.createOrFold<math::LogOp>(loc, v[1]));
                             }));
    return llvm::Error::success();
  }
  Tensor exps = elementwiseOver(
      n, {&x, &topTensor}, sizes, dtype,
      [](OpBuilder &b, Location loc, ArrayRef<Value> v) {
        return b.createOrFold<math::ExpOp>(
            loc, b.createOrFold<arith::SubFOp>(loc, v[0], v[1]));
      });
  Value sum = reduce(b, loc, n.value(exps), axes, zero, add);
  Tensor sumTensor = Tensor::fromValue(dtype, reshape(b, loc, sum, kept));
  n.set(0, elementwiseOver(n, {&exps, &sumTensor}, sizes, dtype,
                           [](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                             return b.createOrFold<arith::DivFOp>(loc, v[0],
                                                                  v[1]);
                           }));
  return llvm::Error::success();
}

} // namespace pto::lowering
