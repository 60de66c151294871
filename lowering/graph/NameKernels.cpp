//===- NameKernels.cpp - Names, keys, and equal code kept once ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Graph.h"
#include "lowering/graph/KernelName.h"
#include "lowering/graph/Passes.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace pto::lowering {

/// What two kernels may differ in without a difference in code: ops without
/// users, equal ops, and the order of constants.
static void normalise(func::FuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
  Block &body = kernel.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>() &&
        isMemoryEffectFree(&op))
      rewriter.eraseOp(&op);
  // Constants go to the front, in the order of their first use.
  SmallVector<Operation *> constants;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && def->hasTrait<OpTrait::ConstantLike>() &&
          !llvm::is_contained(constants, def))
        constants.push_back(def);
    }
  });
  for (Operation *op : llvm::reverse(constants))
    if (op->getBlock() == &body)
      op->moveBefore(&body, body.begin());
}

LogicalResult nameKernels(ModuleOp module) {
  llvm::StringMap<func::FuncOp> byCode;
  SmallVector<func::FuncOp> duplicates;
  llvm::StringMap<std::string> renamed; ///< Old symbol -> new one.
  SmallVector<func::FuncOp> kernels;
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr("pto.kernel"))
      kernels.push_back(kernel);
  for (func::FuncOp kernel : kernels) {
    normalise(kernel);
    std::string code = codeHash(kernel);
    auto [it, first] = byCode.try_emplace(code, kernel);
    std::string old = kernel.getSymName().str();
    if (!first) {
      renamed[old] = it->second.getSymName().str();
      duplicates.push_back(kernel);
      continue;
    }
    kernel->setAttr("pto.key",
                    StringAttr::get(kernel.getContext(), kernelHash(kernel)));
    std::string name = describeKernel(kernel) + "_" + code.substr(0, 8);
    // Eight digits may collide.
    if (module.lookupSymbol(name))
      name += "_" + code.substr(8);
    renamed[old] = name;
    kernel.setSymName(name);
  }
  module.walk([&](func::CallOp call) {
    auto it = renamed.find(call.getCallee());
    if (it != renamed.end())
      call.setCallee(it->second);
  });
  for (func::FuncOp kernel : duplicates)
    kernel.erase();
  return success();
}

} // namespace pto::lowering
