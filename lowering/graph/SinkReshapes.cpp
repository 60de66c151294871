//===- SinkReshapes.cpp - Reshapes behind elementwise users ---------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A reshape between an op and an elementwise user keeps the two apart. The
// user is rewritten to the shape before the reshape, which moves behind it.
// Broadcast operands get rid of unit dims first, or they would stand in the
// way.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/AlignShapes.h"
#include "lowering/graph/Passes.h"
#include "lowering/graph/Permutation.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace pto::lowering {

/// Whether a reshape between these types only adds or removes unit dims.
static bool isUnitReshape(RankedTensorType a, RankedTensorType b) {
  auto nonUnit = [](RankedTensorType type) {
    return llvm::count_if(type.getShape(), [](int64_t d) { return d != 1; });
  };
  return nonUnit(a) == nonUnit(b);
}

/// Operands that are broadcast lose their unit dims: a bias of shape 1xC that
/// walks the batch loop would keep that loop from being merged with others.
static void dropUnitDims(linalg::GenericOp op) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  OpBuilder b(op);
  bool changed = false;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand->get().getType());
    AffineMap &map = maps[operand->getOperandNumber()];
    if (!type || map.isPermutation())
      continue;
    // One value per row, from a reduction: a reshape would part the two.
    if (map.getNumResults() < map.getNumDims() &&
        map ==
            AffineMap::getMultiDimIdentityMap(map.getNumDims(), op.getContext())
                .getMajorSubMap(map.getNumResults()) &&
        operand->get().getDefiningOp<linalg::GenericOp>())
      continue;
    SmallVector<AffineExpr> results;
    SmallVector<int64_t> shape;
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (type.getDimSize(dim) == 1 && (loop ? ranges[loop.getPosition()] == 1
                                             : isa<AffineConstantExpr>(expr)))
        continue;
      results.push_back(expr);
      shape.push_back(type.getDimSize(dim));
    }
    if (results.size() == map.getNumResults())
      continue;
    Value reshaped =
        reshapeTo(b, op.getLoc(), operand->get(),
                  RankedTensorType::get(shape, type.getElementType()));
    if (!reshaped)
      continue;
    operand->set(reshaped);
    map = AffineMap::get(map.getNumDims(), 0, results, op.getContext());
    changed = true;
  }
  if (changed)
    op.setIndexingMapsAttr(b.getAffineMapArrayAttr(maps));
}

LogicalResult sinkReshapes(ModuleOp module) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  for (auto generic : main.getBody().front().getOps<linalg::GenericOp>())
    if (isElementwise(generic.getOperation()))
      dropUnitDims(generic);
  alignShapes(main);
  // Sizes that are not known leave it to patterns, one reshape at a time. The
  // two sets would undo each other's work, so they run one by one.
  auto isDynamic = [](OpOperand *operand) {
    return !cast<RankedTensorType>(operand->get().getType()).hasStaticShape();
  };
  RewritePatternSet collapsing(module.getContext());
  linalg::populateFoldReshapeOpsByCollapsingPatterns(
      collapsing, [&](OpOperand *operand) {
        auto expand = operand->get().getDefiningOp<tensor::ExpandShapeOp>();
        return expand && isDynamic(operand) &&
               isElementwise(operand->getOwner()) &&
               expand.getSrc().getDefiningOp<linalg::GenericOp>();
      });
  (void)applyPatternsGreedily(main, std::move(collapsing));
  RewritePatternSet expanding(module.getContext());
  linalg::populateFoldReshapeOpsByExpansionPatterns(
      expanding, [&](OpOperand *operand) {
        auto collapse = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
        return collapse && isDynamic(operand) &&
               isElementwise(operand->getOwner()) &&
               collapse.getSrc().getDefiningOp<linalg::GenericOp>() &&
               isUnitReshape(collapse.getSrcType(), collapse.getResultType());
      });
  (void)applyPatternsGreedily(main, std::move(expanding));
  return success();
}

} // namespace pto::lowering
