//===- Pad.cpp - Padding, tiling, space and depth -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace pto::lowering {

/// x mod y for index values, never negative.
static Value floorMod(OpBuilder &b, Location loc, Value x, Value y) {
  Value r = b.createOrFold<arith::RemSIOp>(loc, x, y);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value negative =
      b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, r, zero);
  Value moved = b.createOrFold<arith::AddIOp>(loc, r, y);
  return b.createOrFold<arith::SelectOp>(loc, negative, moved, r);
}

/// Where a padded position reads from, by the mode's rule.
static Value sourceIndex(OpBuilder &b, Location loc, StringRef mode, Value at,
                         Value size) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value last = b.createOrFold<arith::SubIOp>(loc, size, one);
  if (mode == "edge")
    return b.createOrFold<arith::MinSIOp>(
        loc, b.createOrFold<arith::MaxSIOp>(loc, at, zero), last);
  if (mode == "wrap")
    return floorMod(b, loc, at, size);
  // reflect: a triangle wave of period 2 * (size - 1).
  Value period = b.createOrFold<arith::MaxSIOp>(
      loc, b.createOrFold<arith::AddIOp>(loc, last, last), one);
  Value phase = floorMod(b, loc, at, period);
  Value mirrored = b.createOrFold<arith::SubIOp>(loc, period, phase);
  return b.createOrFold<arith::MinSIOp>(loc, phase, mirrored);
}

llvm::Error buildPad(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int64_t rank = x.rank();
  std::string mode = n.stringAttr("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" &&
      mode != "wrap")
    return n.unsupported("mode '" + mode + "'");
  Sizes pads;
  if (n.since < 11) {
    for (int64_t p : n.intsAttr(n.since < 2 ? "paddings" : "pads"))
      pads.push_back(b.getIndexAttr(p));
  } else {
    auto elements = elementsOf(n, n.in(1));
    if (!elements)
      return n.unsupported("'pads' of unknown length");
    for (OpFoldResult e : *elements)
      pads.push_back(toIndex(b, loc, e));
  }
  SmallVector<int64_t> axes;
  if (n.has(3)) {
    auto known = knownIntegers(n.in(3));
    if (!known)
      return n.unsupported("a run-time value of 'axes'");
    axes = *known;
  } else {
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  }
  if (pads.size() != 2 * axes.size())
    return n.invalid(Twine(pads.size()) + " pads for " + Twine(axes.size()) +
                     " axes");
  OpFoldResult zero = b.getIndexAttr(0);
  Sizes low(rank, zero), high(rank, zero);
  for (auto [i, a] : llvm::enumerate(axes)) {
    auto axis = normalizeAxis(n, a, rank);
    if (!axis)
      return axis.takeError();
    low[*axis] = pads[i];
    high[*axis] = pads[axes.size() + i];
  }
  Sizes in = sizesOf(n, x), out;
  for (int64_t d = 0; d < rank; ++d)
    out.push_back(addSizes(b, loc, addSizes(b, loc, in[d], low[d]), high[d]));
  Value source = n.value(x);

  if (mode != "constant") {
    SmallVector<Value> lows, sizes;
    for (int64_t d = 0; d < rank; ++d) {
      lows.push_back(getValueOrCreateConstantIndexOp(b, loc, low[d]));
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, in[d]));
    }
    n.set(0, x.dtype,
          indexed(n, {}, out, x.elementType(),
                  [&](OpBuilder &b, Location loc, ArrayRef<Value> loops,
                      ArrayRef<Value>) -> Value {
                    SmallVector<Value> at;
                    for (int64_t d = 0; d < rank; ++d) {
                      if (known(low[d]) == 0 && known(high[d]) == 0) {
                        at.push_back(loops[d]);
                        continue;
                      }
                      Value i =
                          b.createOrFold<arith::SubIOp>(loc, loops[d], lows[d]);
                      at.push_back(sourceIndex(b, loc, mode, i, sizes[d]));
                    }
                    return tensor::ExtractOp::create(b, loc, source, at);
                  }));
    return llvm::Error::success();
  }

  Value value = scalarConstant(b, loc, x.elementType(), 0);
  if (n.since < 11)
    value = scalarConstant(b, loc, x.elementType(), n.floatAttr("value", 0));
  else if (n.has(2)) {
    if (!n.in(2).type.hasStaticShape() || n.in(2).type.getNumElements() != 1)
      return n.invalid("constant_value is no scalar");
    Tensor scalar = reshape(n, n.in(2), {});
    value = scalarValue(b, loc, elementsOf(n, scalar)->front());
  }
  // Negative pads cut off.
  Sizes offsets(rank, zero), kept = in, strides(rank, b.getIndexAttr(1));
  bool cut = false;
  for (int64_t d = 0; d < rank; ++d) {
    if (nonNegative(low[d]) && nonNegative(high[d]))
      continue;
    cut = true;
    OpFoldResult cutLow =
        maxSizes(b, loc, subSizes(b, loc, zero, low[d]), zero);
    OpFoldResult cutHigh =
        maxSizes(b, loc, subSizes(b, loc, zero, high[d]), zero);
    offsets[d] = cutLow;
    kept[d] = subSizes(b, loc, subSizes(b, loc, in[d], cutLow), cutHigh);
    low[d] = maxSizes(b, loc, low[d], zero);
    high[d] = maxSizes(b, loc, high[d], zero);
  }
  if (cut)
    source =
        tensor::ExtractSliceOp::create(b, loc, source, offsets, kept, strides);
  auto type = x.type.clone(staticShape(out));
  n.set(0, x.dtype,
        tensor::PadOp::create(b, loc, type, source, low, high, value));
  return llvm::Error::success();
}

/// A new dim before each dim takes the repetitions; then both are merged.
llvm::Error buildTile(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  auto repeats = elementsOf(n, n.in(1));
  if (!repeats || int64_t(repeats->size()) != x.rank())
    return n.invalid("'repeats' does not match the input's rank");
  Sizes in = sizesOf(n, x), paired, tiled, out;
  for (auto [size, repeat] : llvm::zip(in, *repeats)) {
    OpFoldResult count = toIndex(b, n.loc, repeat);
    out.push_back(mulSizes(b, n.loc, size, count));
    if (known(count) == 1) {
      paired.push_back(size);
      tiled.push_back(size);
      continue;
    }
    paired.push_back(b.getIndexAttr(1));
    paired.push_back(size);
    tiled.push_back(count);
    tiled.push_back(size);
  }
  Tensor split = reshape(n, x, paired);
  Tensor repeated = elementwiseOver(
      n, {&split}, tiled, x.dtype,
      [](OpBuilder &, Location, ArrayRef<Value> v) { return v[0]; });
  n.set(0, reshape(n, repeated, out));
  return llvm::Error::success();
}

static Tensor transposed(Node &n, Tensor &x, ArrayRef<int64_t> perm) {
  Sizes in = sizesOf(n, x), out;
  for (int64_t p : perm)
    out.push_back(in[p]);
  Value init = emptyTensor(n.b, n.loc, out, x.elementType());
  return Tensor::fromValue(
      x.dtype, linalg::TransposeOp::create(n.b, n.loc, n.value(x), init, perm)
                   ->getResult(0));
}

llvm::Error buildDepthToSpace(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  int64_t block = n.intAttr("blocksize", 0);
  if (x.rank() != 4 || block < 1)
    return n.invalid("rank or blocksize");
  Sizes in = sizesOf(n, x);
  OpFoldResult s = b.getIndexAttr(block);
  bool crd = n.stringAttr("mode", "DCR") == "CRD";
  OpFoldResult c = divSizes(b, n.loc, in[1], b.getIndexAttr(block * block));
  Sizes split = crd ? Sizes{in[0], c, s, s, in[2], in[3]}
                    : Sizes{in[0], s, s, c, in[2], in[3]};
  Tensor parts = reshape(n, x, split);
  Tensor moved = crd ? transposed(n, parts, {0, 1, 4, 2, 5, 3})
                     : transposed(n, parts, {0, 3, 4, 1, 5, 2});
  n.set(0, reshape(n, moved,
                   {in[0], c, mulSizes(b, n.loc, in[2], s),
                    mulSizes(b, n.loc, in[3], s)}));
  return llvm::Error::success();
}

llvm::Error buildSpaceToDepth(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  int64_t block = n.intAttr("blocksize", 0);
  if (x.rank() != 4 || block < 1)
    return n.invalid("rank or blocksize");
  Sizes in = sizesOf(n, x);
  OpFoldResult s = b.getIndexAttr(block);
  OpFoldResult h = divSizes(b, n.loc, in[2], s),
               w = divSizes(b, n.loc, in[3], s);
  Tensor parts = reshape(n, x, {in[0], in[1], h, s, w, s});
  bool crd = n.stringAttr("mode", "DCR") == "CRD";
  Tensor moved = crd ? transposed(n, parts, {0, 1, 3, 5, 2, 4})
                     : transposed(n, parts, {0, 3, 5, 1, 2, 4});
  n.set(0, reshape(n, moved,
                   {in[0],
                    mulSizes(b, n.loc, in[1], b.getIndexAttr(block * block)), h,
                    w}));
  return llvm::Error::success();
}

} // namespace pto::lowering
