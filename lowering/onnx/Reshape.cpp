//===- Reshape.cpp - Ops that only change the shape -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Ops.h"
#include "lowering/onnx/Shapes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace pto::lowering {

llvm::Error buildIdentity(Node &n) {
  n.set(0, n.in(0));
  return llvm::Error::success();
}

llvm::Error buildDropout(Node &n) {
  if (n.has(2)) {
    auto training = knownScalar(n.in(2));
    if (!training || !cast<IntegerAttr>(training).getValue().isZero())
      return n.unsupported("training mode");
  }
  n.set(0, n.in(0));
  if (n.wants(1)) {
    // Nothing is dropped.
    int dtype = n.since < 10 ? n.in(0).dtype : int(onnx::TensorProto::BOOL);
    Type type = storageType(n.b.getContext(), dtype);
    Value one = scalarConstant(n.b, n.loc, type, 1);
    n.set(1, dtype, filledTensor(n.b, n.loc, sizesOf(n, n.in(0)), one));
  }
  return llvm::Error::success();
}

/// `size`, or `other` where it equals `value`.
static OpFoldResult selectSize(OpBuilder &b, Location loc, OpFoldResult size,
                               int64_t value, OpFoldResult other) {
  if (auto v = known(size))
    return *v == value ? other : size;
  Value equal = b.createOrFold<arith::CmpIOp>(
      loc, arith::CmpIPredicate::eq, cast<Value>(size),
      arith::ConstantIndexOp::create(b, loc, value));
  return getAsOpFoldResult(b.createOrFold<arith::SelectOp>(
      loc, equal, getValueOrCreateConstantIndexOp(b, loc, other),
      cast<Value>(size)));
}

llvm::Error buildReshape(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  auto dims = elementsOf(n, n.in(1));
  if (!dims || n.in(1).rank() != 1)
    return n.unsupported("a shape of unknown length");
  bool allowZero = n.intAttr("allowzero", 0);
  Sizes in = sizesOf(n, x), out;
  int64_t inferred = -1;
  SmallVector<int64_t> atRunTime;
  for (auto [i, element] : llvm::enumerate(*dims)) {
    OpFoldResult size = toIndex(b, n.loc, element);
    auto v = known(size);
    if (v == 0 && !allowZero) {
      if (i >= in.size())
        return n.invalid("dim " + Twine(i) + " copies a dim that is not there");
      size = in[i];
    } else if (v == -1) {
      if (inferred >= 0)
        return n.invalid("more than one dim is -1");
      inferred = i;
      size = b.getIndexAttr(1);
    } else if (v && *v < 0) {
      return n.invalid("a negative size");
    }
    // A value from outside may mean "copy" or "what is left".
    if (!v && !nonNegative(size)) {
      if (!allowZero && i < in.size())
        size = selectSize(b, n.loc, size, 0, in[i]);
      atRunTime.push_back(i);
    }
    out.push_back(size);
  }
  if (inferred < 0 && !atRunTime.empty()) {
    // One of them may be -1: it gets what the others leave.
    Sizes factors = out;
    for (int64_t i : atRunTime)
      factors[i] = selectSize(b, n.loc, out[i], -1, b.getIndexAttr(1));
    OpFoldResult rest = divSizes(
        b, n.loc, product(b, n.loc, in),
        maxSizes(b, n.loc, product(b, n.loc, factors), b.getIndexAttr(1)));
    for (int64_t i : atRunTime)
      out[i] = selectSize(b, n.loc, out[i], -1, rest);
  }
  if (inferred >= 0) {
    // Equal factors cancel, so that dims that are copied need no arithmetic.
    Sizes above = in, below = out;
    for (OpFoldResult &s : below)
      if (auto *same = llvm::find(above, s);
          same != above.end() && known(s) != 0) {
        *same = b.getIndexAttr(1);
        s = b.getIndexAttr(1);
      }
    OpFoldResult rest = product(b, n.loc, below);
    if (known(rest) == 0)
      return n.invalid("-1 beside a size of 0");
    out[inferred] = divSizes(b, n.loc, product(b, n.loc, above), rest);
  }
  OpFoldResult from = product(b, n.loc, in), to = product(b, n.loc, out);
  if (known(from) && known(to) && *known(from) != *known(to))
    return n.invalid("reshape of " + Twine(*known(from)) + " elements to " +
                     Twine(*known(to)));
  n.set(0, reshape(n, x, out));
  return llvm::Error::success();
}

llvm::Error buildFlatten(Node &n) {
  Tensor &x = n.in(0);
  int64_t axis = n.intAttr("axis", 1), rank = x.rank();
  if (axis < -rank || axis > rank)
    return n.invalid("axis " + Twine(axis));
  if (axis < 0)
    axis += rank;
  Sizes in = sizesOf(n, x);
  n.set(0, reshape(n, x,
                   {product(n.b, n.loc, ArrayRef(in).take_front(axis)),
                    product(n.b, n.loc, ArrayRef(in).drop_front(axis))}));
  return llvm::Error::success();
}

llvm::Error buildSqueeze(Node &n) {
  Tensor &x = n.in(0);
  auto axes = listOperand(n, 1, "axes", 13);
  if (!axes)
    return axes.takeError();
  bool all = n.since < 13 ? !n.hasAttr("axes") : !n.has(1);
  SmallVector<bool> drop(x.rank(), false);
  for (int64_t a : *axes) {
    auto axis = normalizeAxis(n, a, x.rank());
    if (!axis)
      return axis.takeError();
    int64_t size = x.shape()[*axis];
    if (size != 1 && !ShapedType::isDynamic(size))
      return n.invalid("dim " + Twine(*axis) + " has size " + Twine(size));
    drop[*axis] = true;
  }
  Sizes in = sizesOf(n, x), out;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (!(all ? x.shape()[d] == 1 : drop[d]))
      out.push_back(in[d]);
  n.set(0, reshape(n, x, out));
  return llvm::Error::success();
}

llvm::Error buildUnsqueeze(Node &n) {
  Tensor &x = n.in(0);
  auto axes = listOperand(n, 1, "axes", 13);
  if (!axes)
    return axes.takeError();
  int64_t rank = x.rank() + axes->size();
  SmallVector<bool> added(rank, false);
  for (int64_t a : *axes) {
    auto axis = normalizeAxis(n, a, rank);
    if (!axis)
      return axis.takeError();
    if (added[*axis])
      return n.invalid("axis " + Twine(a) + " is given twice");
    added[*axis] = true;
  }
  Sizes in = sizesOf(n, x), out;
  for (int64_t d = 0, next = 0; d < rank; ++d)
    out.push_back(added[d] ? OpFoldResult(n.b.getIndexAttr(1)) : in[next++]);
  n.set(0, reshape(n, x, out));
  return llvm::Error::success();
}

} // namespace pto::lowering
