//===- Edges.cpp - Windows that reach over the edge of a padded operand ---===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Padding is not stored: taps outside the source are left out.
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/microkernel/Emitter.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pto::lowering::microkernel {

memref::AllocOp Emitter::readAroundPadding() {
  if (!anchor)
    return {};
  std::optional<Padding> found = resolvePadding(anchor);
  if (!found)
    return {};
  ArrayRef<int64_t> shape = cast<ShapedType>(dest.getType()).getShape();
  for (const PaddedAxis &axis : found->axes) {
    unsigned dim = resultDimOf(axis.parallelLoop);
    if (dim + 1 == rank) // Vectors would have to be masked by position.
      return {};
    // Edge tiles need constant positions and windows known while compiling.
    if (size[dim] > 1 && (ShapedType::isDynamic(shape[dim]) ||
                          !isConstantIntValue(axis.offset, 0)))
      return {};
    if (ShapedType::isDynamic(anchor.getStaticLoopRanges()[axis.reductionLoop]))
      return {};
  }
  padding = std::move(found);
  return padding->buffer;
}

const PaddedAxis *Emitter::paddedAxis(unsigned resultDim) const {
  if (padding)
    for (const PaddedAxis &axis : padding->axes)
      if (resultDimOf(axis.parallelLoop) == resultDim)
        return &axis;
  return nullptr;
}

const PaddedAxis *Emitter::paddedReduction(unsigned loop) const {
  if (padding)
    for (const PaddedAxis &axis : padding->axes)
      if (axis.reductionLoop == loop)
        return &axis;
  return nullptr;
}

/// The positions [low, high) along a padded axis whose windows lie inside.
std::pair<int64_t, int64_t> Emitter::fullWindows(const PaddedAxis &axis,
                                                 int64_t extent) const {
  linalg::LinalgOp op = anchor;
  int64_t taps = op.getStaticLoopRanges()[axis.reductionLoop];
  int64_t shift = axis.c - axis.low;
  int64_t low = std::max<int64_t>(0, llvm::divideCeilSigned(-shift, axis.a));
  int64_t last = axis.extent - 1 - shift - axis.b * (taps - 1);
  int64_t high = last < 0 ? 0 : std::min<int64_t>(extent, last / axis.a + 1);
  return {std::min(low, extent), std::max(std::min(low, extent), high)};
}

/// True if a tap of an edge tile lies outside the source.
bool Emitter::isOutside(ArrayRef<Index> point) const {
  if (!padding)
    return false;
  for (const PaddedAxis &axis : padding->axes) {
    if (!edges.contains(resultDimOf(axis.parallelLoop)))
      continue;
    int64_t at = axis.a * point[axis.parallelLoop].offset +
                 axis.b * point[axis.reductionLoop].offset + axis.c - axis.low;
    if (at < 0 || at >= axis.extent)
      return true;
  }
  return false;
}

/// A reduction loop over the taps inside the source only; the tile is one long
/// along the axis.
SmallVector<Value> Emitter::clampedLoop(linalg::LinalgOp op, unsigned level,
                                        const PaddedAxis &axis,
                                        SmallVector<Value> accs) {
  int64_t taps = op.getStaticLoopRanges()[axis.reductionLoop];
  // Source index of tap 0: a * o + start.
  Index o = at[resultDimOf(axis.parallelLoop)];
  AffineExpr first = b.getAffineDimExpr(0) * axis.a + axis.c - axis.low;
  SmallVector<Index> position{o};
  if (std::optional<int64_t> c = getConstantIntValue(axis.offset)) {
    first = first + *c;
  } else {
    first = first + b.getAffineDimExpr(1);
    position.push_back({cast<Value>(axis.offset), 0});
  }
  auto bound = [&](AffineExpr e) { return indexValue(e, position); };
  Value low = arith::MaxSIOp::create(b, loc, constantIndex(0),
                                     bound((-first).ceilDiv(axis.b)));
  Value high =
      arith::MinSIOp::create(b, loc, constantIndex(taps),
                             bound((-first + axis.extent).ceilDiv(axis.b)));
  auto loopOp = scf::ForOp::create(b, loc, low, high, constantIndex(1), accs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loopOp.getBody());
  reductionAt.push_back({loopOp.getInductionVar(), 0});
  SmallVector<Value> inner =
      reduce(op, level + 1, SmallVector<Value>(loopOp.getRegionIterArgs()));
  reductionAt.pop_back();
  scf::YieldOp::create(b, loc, inner);
  return SmallVector<Value>(loopOp.getResults());
}

} // namespace pto::lowering::microkernel
