//===- KernelSizes.cpp - Kernels find sizes in their own tensors ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// After outlining, the size of an intermediate tensor is computed as the model
// did, often from an input that the kernel does not read otherwise. The loops
// of the kernel's ops say which dims are equal, so the size can be read off an
// argument that the kernel has anyway, best of all its output. Inputs that
// only gave their shape are dropped.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Passes.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;

namespace pto::lowering {
namespace {

/// A dim of a tensor, or a loop of an op.
using Node = std::pair<const void *, int64_t>;

Node dimNode(Value tensor, int64_t dim) {
  return {tensor.getAsOpaquePointer(), dim};
}

RankedTensorType tensorType(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

/// Which dims have equal sizes, because the same loop walks them.
llvm::EquivalenceClasses<Node> equalDims(func::FuncOp kernel) {
  llvm::EquivalenceClasses<Node> classes;
  for (Operation &op : kernel.getBody().front()) {
    if (auto pad = dyn_cast<tensor::PadOp>(op))
      for (auto [i, low, high] :
           llvm::enumerate(pad.getMixedLowPad(), pad.getMixedHighPad()))
        if (isConstantIntValue(low, 0) && isConstantIntValue(high, 0))
          classes.unionSets(dimNode(pad.getSource(), i),
                            dimNode(pad.getResult(), i));
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp)
      continue;
    for (OpOperand &operand : op.getOpOperands()) {
      if (!tensorType(operand.get()))
        continue;
      AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
      for (auto [i, expr] : llvm::enumerate(map.getResults()))
        if (auto loop = dyn_cast<AffineDimExpr>(expr))
          classes.unionSets(dimNode(operand.get(), i),
                            Node(&op, loop.getPosition()));
    }
    for (auto [result, init] :
         llvm::zip(op.getResults(), linalgOp.getDpsInits()))
      if (RankedTensorType type = tensorType(result))
        for (int64_t i = 0; i < type.getRank(); ++i)
          classes.unionSets(dimNode(init, i), dimNode(result, i));
  }
  return classes;
}

/// The dim of an argument, the last that has one, that equals `node`.
std::optional<std::pair<BlockArgument, int64_t>>
findArgumentDim(func::FuncOp kernel, llvm::EquivalenceClasses<Node> &classes,
                Node node) {
  for (BlockArgument argument : llvm::reverse(kernel.getArguments()))
    if (RankedTensorType type = tensorType(argument))
      for (int64_t i = 0; i < type.getRank(); ++i)
        if (classes.isEquivalent(node, dimNode(argument, i)))
          return std::pair(argument, i);
  return std::nullopt;
}

void resizeEmpties(func::FuncOp kernel) {
  llvm::EquivalenceClasses<Node> classes = equalDims(kernel);
  for (auto empty : llvm::to_vector(kernel.getOps<tensor::EmptyOp>())) {
    OpBuilder b(empty);
    unsigned next = 0;
    for (int64_t i = 0; i < empty.getType().getRank(); ++i) {
      if (!empty.getType().isDynamicDim(i))
        continue;
      OpOperand &size = empty->getOpOperand(next++);
      if (auto found = findArgumentDim(kernel, classes, dimNode(empty, i)))
        size.set(tensor::DimOp::create(b, empty.getLoc(), found->first,
                                       found->second));
    }
  }
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(kernel.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Erases inputs without uses, also from the call.
void dropUnread(func::FuncOp kernel, func::CallOp call) {
  llvm::BitVector unread(kernel.getNumArguments());
  for (BlockArgument argument : kernel.getArguments()) {
    auto role = kernel.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                    "pto.role");
    if (argument.use_empty() && role && role.getValue() != "output")
      unread.set(argument.getArgNumber());
  }
  if (unread.any() && succeeded(kernel.eraseArguments(unread)))
    call->eraseOperands(unread);
}

} // namespace

LogicalResult localiseSizes(ModuleOp module) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  SmallVector<func::CallOp> calls;
  llvm::DenseMap<StringAttr, unsigned> uses;
  main.walk([&](func::CallOp call) {
    calls.push_back(call);
    ++uses[call.getCalleeAttr().getAttr()];
  });
  for (func::CallOp call : calls) {
    auto kernel = module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!kernel || !kernel->hasAttr("pto.kernel") ||
        uses[call.getCalleeAttr().getAttr()] != 1)
      continue;
    resizeEmpties(kernel);
    dropUnread(kernel, call);
  }
  return success();
}

} // namespace pto::lowering
