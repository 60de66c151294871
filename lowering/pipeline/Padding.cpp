//===- Padding.cpp - Windows that reach over the edge, without a copy
//-------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Padding.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace pto::lowering {
namespace {

/// The pieces of a padded buffer: alloc, fill, copy into its middle.
struct PaddedBuffer {
  memref::AllocOp alloc;
  linalg::FillOp fill;
  memref::SubViewOp middle;
  Operation *copy = nullptr;
  Value source;
};

/// The copy that writes `view`, if it is the view's only user.
std::optional<std::pair<Operation *, Value>> copyInto(Value view) {
  if (!view.hasOneUse())
    return std::nullopt;
  Operation *user = *view.user_begin();
  if (auto copy = dyn_cast<linalg::CopyOp>(user))
    if (copy.getDpsInits()[0] == view)
      return std::pair(user, copy.getDpsInputs()[0]);
  if (auto copy = dyn_cast<memref::CopyOp>(user))
    if (copy.getTarget() == view)
      return std::pair(user, copy.getSource());
  return std::nullopt;
}

std::optional<PaddedBuffer> analyseBuffer(memref::AllocOp alloc) {
  PaddedBuffer p;
  p.alloc = alloc;
  for (Operation *user : alloc->getUsers()) {
    if (auto fill = dyn_cast<linalg::FillOp>(user)) {
      if (p.fill || fill.getDpsInits()[0] != alloc.getResult())
        return std::nullopt;
      p.fill = fill;
    } else if (auto view = dyn_cast<memref::SubViewOp>(user)) {
      if (auto copy = copyInto(view)) {
        if (p.copy)
          return std::nullopt;
        p.middle = view;
        std::tie(p.copy, p.source) = *copy;
      }
    }
  }
  if (!p.fill || !p.copy || p.fill->getBlock() != p.copy->getBlock())
    return std::nullopt;
  // The source keeps its values: an input of the kernel, or a view of one.
  Value root = p.source;
  while (Operation *def = root.getDefiningOp()) {
    if (!isa<memref::CollapseShapeOp, memref::ExpandShapeOp, memref::SubViewOp,
             memref::CastOp>(def))
      return std::nullopt;
    root = def->getOperand(0);
  }
  auto func = dyn_cast<func::FuncOp>(
      cast<BlockArgument>(root).getOwner()->getParentOp());
  if (!func)
    return std::nullopt;
  auto role = func.getArgAttrOfType<StringAttr>(
      cast<BlockArgument>(root).getArgNumber(), "pto.role");
  if (!role || role.getValue() == "output")
    return std::nullopt;
  return p;
}

/// True if leaving out a tap equals reading `pad` there: the accumulator
/// combines with the operand itself, or with a product of it, and `pad` makes
/// that neutral.
bool isNeutral(linalg::LinalgOp op, OpOperand *operand, const APFloat &pad) {
  Block *body = op.getBlock();
  BlockArgument x = op.getMatchingBlockArgument(operand);
  BlockArgument acc = op.getMatchingBlockArgument(op.getDpsInitOperand(0));
  Operation *combine = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!combine || combine->getNumOperands() != 2 || !acc.hasOneUse() ||
      !x.hasOneUse())
    return false;
  Value other = combine->getOperand(0) == acc ? combine->getOperand(1)
                                              : combine->getOperand(0);
  if (combine->getOperand(0) != acc && combine->getOperand(1) != acc)
    return false;
  if (isa<arith::AddFOp>(combine)) {
    if (!pad.isZero())
      return false;
    auto product = other.getDefiningOp<arith::MulFOp>();
    return other == x ||
           (product && (product.getLhs() == x || product.getRhs() == x));
  }
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(combine))
    return other == x && pad.isInfinity() && pad.isNegative();
  if (isa<arith::MinimumFOp, arith::MinNumFOp>(combine))
    return other == x && pad.isInfinity() && !pad.isNegative();
  return false;
}

/// The coefficient of loop `loop` in `e`, if constant.
std::optional<int64_t> slopeOf(AffineExpr e, unsigned loop, unsigned numLoops) {
  AffineExpr dim = getAffineDimExpr(loop, e.getContext());
  auto c = dyn_cast<AffineConstantExpr>(
      simplifyAffineExpr(e.replace(dim, dim + 1) - e, numLoops, 0));
  if (!c)
    return std::nullopt;
  return c.getValue();
}

/// The form a * o + b * k + c of `e`; a loop that does not occur is left out.
bool decompose(linalg::LinalgOp op, AffineExpr e, PaddedAxis &axis) {
  unsigned n = op.getNumLoops();
  bool haveParallel = false, haveReduction = false;
  SmallVector<AffineExpr> zeros(n, getAffineConstantExpr(0, e.getContext()));
  for (unsigned loop = 0; loop < n; ++loop) {
    std::optional<int64_t> slope = slopeOf(e, loop, n);
    if (!slope)
      return false;
    if (*slope == 0)
      continue;
    bool parallel =
        op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel;
    bool &have = parallel ? haveParallel : haveReduction;
    if (have || *slope < 0)
      return false;
    have = true;
    (parallel ? axis.parallelLoop : axis.reductionLoop) = loop;
    (parallel ? axis.a : axis.b) = *slope;
  }
  auto c = dyn_cast<AffineConstantExpr>(e.replaceDims(zeros));
  if (!c)
    return false;
  axis.c = c.getValue();
  return haveParallel && haveReduction;
}

std::optional<Padding> resolveOperand(linalg::LinalgOp op, OpOperand *operand) {
  // The op's view of the padded buffer.
  Value value = operand->get();
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type)
    return std::nullopt;
  MLIRContext *ctx = op->getContext();
  Builder b(ctx);
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  bool haveOffsets = false;
  while (Operation *def = value.getDefiningOp()) {
    if (auto cast = dyn_cast<memref::CastOp>(def)) {
      value = cast.getSource();
      continue;
    }
    auto view = dyn_cast<memref::SubViewOp>(def);
    if (!view)
      break;
    if (haveOffsets || view.getType().getRank() != type.getRank() ||
        view.getSourceType().getRank() != type.getRank() ||
        !llvm::all_of(view.getMixedStrides(), isOneInteger))
      return std::nullopt;
    offsets = view.getMixedOffsets();
    haveOffsets = true;
    value = view.getSource();
  }
  auto alloc = value.getDefiningOp<memref::AllocOp>();
  if (!alloc)
    return std::nullopt;
  std::optional<PaddedBuffer> buffer = analyseBuffer(alloc);
  if (!buffer)
    return std::nullopt;
  FloatAttr pad;
  if (!matchPattern(buffer->fill.getInputs()[0], m_Constant(&pad)) ||
      !isNeutral(op, operand, pad.getValue()))
    return std::nullopt;
  auto middle = buffer->middle;
  auto source = dyn_cast<MemRefType>(buffer->source.getType());
  MemRefType padded = alloc.getType();
  if (!source || source.getRank() != padded.getRank() ||
      !source.hasStaticShape() || !padded.hasStaticShape() ||
      middle.getType().getRank() != padded.getRank())
    return std::nullopt;

  Padding result;
  result.operand = operand;
  result.source = buffer->source;
  result.buffer = alloc;
  AffineMap map = op.getMatchingIndexingMap(operand);
  for (int64_t i = 0; i < padded.getRank(); ++i) {
    std::optional<int64_t> low =
        getConstantIntValue(middle.getMixedOffsets()[i]);
    if (!low)
      return std::nullopt;
    result.shift.emplace_back(offsets[i], *low);
    if (source.getDimSize(i) == padded.getDimSize(i))
      continue;
    PaddedAxis axis;
    axis.axis = i;
    axis.low = *low;
    axis.extent = source.getDimSize(i);
    axis.offset = offsets[i];
    if (!decompose(op, map.getResult(i), axis))
      return std::nullopt;
    result.axes.push_back(axis);
  }
  return result;
}

} // namespace

std::optional<Padding> resolvePadding(linalg::LinalgOp op) {
  for (OpOperand *in : op.getDpsInputOperands())
    if (std::optional<Padding> padding = resolveOperand(op, in))
      return padding;
  return std::nullopt;
}

void eraseUnreadPadding(RewriterBase &rewriter, memref::AllocOp alloc) {
  // Views that lost their reader go first.
  for (Operation *user : llvm::to_vector(alloc->getUsers()))
    if (isa<memref::SubViewOp>(user) && user->use_empty())
      rewriter.eraseOp(user);
  std::optional<PaddedBuffer> p = analyseBuffer(alloc);
  if (!p || llvm::range_size(alloc->getUsers()) != 2)
    return;
  rewriter.eraseOp(p->copy);
  rewriter.eraseOp(p->middle);
  rewriter.eraseOp(p->fill);
  rewriter.eraseOp(alloc);
}

} // namespace pto::lowering
