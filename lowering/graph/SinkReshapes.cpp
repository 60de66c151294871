//===- SinkReshapes.cpp - Reshapes behind elementwise users ---------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A reshape between an op and an elementwise user keeps the two apart. The
// user is rewritten to the shape before the reshape, which moves behind it.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Passes.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace pto::lowering {

LogicalResult sinkReshapes(ModuleOp module) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  RewritePatternSet patterns(module.getContext());
  // An expanded value of a kernel's result: its elementwise user works on the
  // result itself.
  linalg::populateFoldReshapeOpsByCollapsingPatterns(
      patterns, [](OpOperand *operand) {
        auto expand = operand->get().getDefiningOp<tensor::ExpandShapeOp>();
        return expand && isElementwise(operand->getOwner()) &&
               expand.getSrc().getDefiningOp<linalg::GenericOp>() &&
               expand->hasOneUse();
      });
  (void)applyPatternsGreedily(main, std::move(patterns));
  return success();
}

} // namespace pto::lowering
