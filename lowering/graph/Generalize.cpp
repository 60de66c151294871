//===- Generalize.cpp - Named linalg ops to linalg.generic ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// linalg.fill stays: it initialises accumulators, and one that only sets a
// value is easier to recognise by name. Without fastmath<contract> LLVM forms
// no FMA, and a contraction runs at half its speed.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Passes.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace pto::lowering {

static void allowContraction(linalg::GenericOp op) {
  for (Operation &inner : *op.getBody()) {
    auto fastMath = dyn_cast<arith::ArithFastMathInterface>(&inner);
    if (!fastMath || !isa<arith::MulFOp, arith::AddFOp>(inner))
      continue;
    arith::FastMathFlags flags = fastMath.getFastMathFlagsAttr().getValue() |
                                 arith::FastMathFlags::contract;
    inner.setAttr(fastMath.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(op.getContext(), flags));
  }
}

LogicalResult generalizeOps(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  SmallVector<linalg::LinalgOp> named;
  module.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp, linalg::FillOp>(op.getOperation()))
      named.push_back(op);
  });
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return op->emitError("has no form as linalg.generic");
  }
  module.walk([](linalg::GenericOp op) {
    if (isMultiplyAdd(op))
      allowContraction(op);
  });
  return success();
}

} // namespace pto::lowering
