//===- KernelKind.cpp - What a kernel computes
//------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "schedules/engine/extension/KernelKind.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace pto::schedules {

static linalg::LinalgOp marked(Operation *kernel, StringRef attr) {
  linalg::LinalgOp found;
  bool several = false;
  kernel->walk([&](linalg::LinalgOp op) {
    if (!op->hasAttr(attr))
      return;
    several |= bool(found);
    found = op;
  });
  return several ? linalg::LinalgOp() : found;
}

linalg::LinalgOp anchorOf(Operation *kernel) {
  return marked(kernel, "pto.anchor");
}

linalg::LinalgOp rootOf(Operation *kernel) {
  linalg::LinalgOp root = marked(kernel, "pto.root");
  return root ? root : anchorOf(kernel);
}

llvm::StringRef kernelKind(Operation *kernel) {
  linalg::LinalgOp op = anchorOf(kernel);
  if (!op)
    return "other";
  if (auto func = op->getParentOfType<func::FuncOp>();
      func && func->hasAttr("pto.rowwise"))
    return "rowwise";
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (op.getNumReductionLoops() == 0) {
    for (OpOperand *in : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(in);
      if (map.getNumResults() == out.getNumResults() && map != out &&
          map.isPermutation())
        return "transpose";
    }
    return "elementwise";
  }
  // A window: some operand is indexed by a sum of loops.
  bool window = false;
  for (OpOperand *in : op.getDpsInputOperands())
    for (AffineExpr e : op.getMatchingIndexingMap(in).getResults())
      window |= isa<AffineBinaryOpExpr>(e);
  bool multiplies = false;
  for (Operation &inner : op.getBlock()->without_terminator())
    multiplies |= inner.getName().getStringRef() == "arith.mulf" ||
                  inner.getName().getStringRef() == "arith.muli";
  bool two = op.getNumDpsInputs() == 2 && multiplies;
  if (!two)
    return window || op.getNumDpsInputs() == 2 ? "pooling" : "reduction";
  // The last dim of the result indexes the weights alone in a convolution or
  // matmul, and both operands in a depthwise one.
  auto last = out.getNumResults()
                  ? dyn_cast<AffineDimExpr>(out.getResults().back())
                  : AffineDimExpr(nullptr);
  if (!last)
    return "reduction";
  unsigned d = last.getPosition();
  bool a =
      op.getMatchingIndexingMap(op.getDpsInputOperand(0)).isFunctionOfDim(d);
  bool b =
      op.getMatchingIndexingMap(op.getDpsInputOperand(1)).isFunctionOfDim(d);
  if (a && b)
    return "depthwise_conv";
  if (a != b)
    return window ? "conv" : "matmul";
  return "other";
}

bool hasWeights(Operation *kernel) {
  linalg::LinalgOp op = anchorOf(kernel);
  if (!op || op.getNumDpsInputs() < 2)
    return false;
  Value v = op.getDpsInputOperand(1)->get();
  while (Operation *def = v.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, linalg::PackOp>(
            def))
      return false;
    v = def->getOperand(0);
  }
  auto arg = cast<BlockArgument>(v);
  auto func = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp());
  if (!func)
    return false;
  auto role = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "pto.role");
  return role && role.getValue() == "weight";
}

} // namespace pto::schedules
