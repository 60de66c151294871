//===- VerifyKernels.cpp - The "Kernels" form, checked --------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Passes.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace pto::lowering {

static bool isAllowedInMain(Operation &op) {
  if (isa<arith::ConstantOp, tensor::EmptyOp, tensor::DimOp,
          tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp,
          cf::AssertOp, func::CallOp, func::ReturnOp>(op))
    return true;
  // Sizes may come with an input's data.
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return isa<BlockArgument>(extract.getTensor());
  // Arithmetic on sizes.
  return op.getNumRegions() == 0 && isMemoryEffectFree(&op) &&
         llvm::all_of(op.getResultTypes(),
                      [](Type type) { return type.isIntOrIndex(); }) &&
         llvm::all_of(op.getOperandTypes(),
                      [](Type type) { return type.isIntOrIndex(); });
}

static LogicalResult verifyKernel(func::FuncOp kernel) {
  bool failed = false;
  auto report = [&](Operation *op, const llvm::Twine &text) {
    op->emitError("kernel @") << kernel.getSymName() << ": " << text;
    failed = true;
  };
  unsigned anchors = 0, roots = 0, outputs = 0;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    auto role = kernel.getArgAttrOfType<StringAttr>(i, "pto.role");
    if (!role)
      report(kernel, "argument " + llvm::Twine(i) + " has no pto.role");
    else if (role == "output")
      ++outputs;
    else if (outputs)
      report(kernel, "outputs must be the last arguments");
  }
  if (outputs != kernel.getNumResults())
    report(kernel, "each result needs an output argument");
  for (Operation &op : kernel.getBody().front()) {
    anchors += op.hasAttr("pto.anchor");
    roots += op.hasAttr("pto.root");
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (isa<DenseResourceElementsAttr>(constant.getValue()))
        report(&op, "weights must be arguments");
  }
  if (anchors != 1 || roots != 1)
    report(kernel, "needs one pto.anchor and one pto.root");
  return failure(failed);
}

LogicalResult verifyKernels(ModuleOp module) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  bool bad = false;
  for (Operation &op : main.getBody().front())
    if (!isAllowedInMain(op)) {
      op.emitError("is left in @main after kernels were formed");
      bad = true;
    }
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr("pto.kernel") && mlir::failed(verifyKernel(kernel)))
      bad = true;
  return failure(bad);
}

} // namespace pto::lowering
