//===- Buffers.cpp - Checks and clean-ups on buffers
//------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Stages.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace pto::lowering {

/// True when both values are sure to be the same view of the same buffer.
static bool sameView(Value a, Value b) {
  if (a == b)
    return true;
  auto sa = a.getDefiningOp<memref::SubViewOp>();
  auto sb = b.getDefiningOp<memref::SubViewOp>();
  return sa && sb && sa.getType() == sb.getType() &&
         sa.getMixedOffsets() == sb.getMixedOffsets() &&
         sa.getMixedSizes() == sb.getMixedSizes() &&
         sa.getMixedStrides() == sb.getMixedStrides() &&
         sameView(sa.getSource(), sb.getSource());
}

LogicalResult eraseSelfCopies(ModuleOp module) {
  module.walk([](memref::CopyOp copy) {
    if (sameView(copy.getSource(), copy.getTarget()))
      copy.erase();
  });
  return success();
}

LogicalResult expandStridedCopies(ModuleOp module) {
  auto contiguous = [](Value v) {
    auto type = dyn_cast<MemRefType>(v.getType());
    return type && type.getLayout().isIdentity();
  };
  module.walk([&](memref::CopyOp copy) {
    if (contiguous(copy.getSource()) && contiguous(copy.getTarget()))
      return;
    OpBuilder b(copy);
    linalg::CopyOp::create(b, copy.getLoc(), copy.getSource(),
                           copy.getTarget());
    copy.erase();
  });
  return success();
}

LogicalResult checkBuffers(ModuleOp module) {
  constexpr int64_t maxStackBytes = 256 << 10;
  constexpr int64_t maxVectorElements = 4096;
  for (auto func : module.getOps<func::FuncOp>()) {
    int64_t stack = 0;
    WalkResult r = func.walk([&](Operation *op) {
      if (auto alloca = dyn_cast<memref::AllocaOp>(op)) {
        MemRefType type = alloca.getType();
        if (!type.hasStaticShape())
          return op->emitError("too large: a stack buffer of unknown size"),
                 WalkResult::interrupt();
        int64_t bits = type.getElementType().isIntOrFloat()
                           ? type.getElementTypeBitWidth()
                           : 64;
        stack += type.getNumElements() * bits / 8;
        if (stack > maxStackBytes)
          return op->emitError("too large: ")
                     << stack << " bytes on the stack, limit " << maxStackBytes,
                 WalkResult::interrupt();
      }
      for (Type t : op->getResultTypes())
        if (auto v = dyn_cast<VectorType>(t))
          if (v.getNumElements() > maxVectorElements)
            return op->emitError("too large: a vector of ")
                       << v.getNumElements() << " elements (" << v
                       << "), limit " << maxVectorElements,
                   WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (r.wasInterrupted())
      return failure();
  }
  return success();
}

LogicalResult freeBuffers(ModuleOp module) {
  module.walk([](memref::AllocOp alloc) {
    // A user of any alias may free it explicitly (a schedule's own doing).
    for (Operation *user : alloc->getUsers())
      if (isa<memref::DeallocOp>(user))
        return;
    OpBuilder b(alloc->getBlock()->getTerminator());
    memref::DeallocOp::create(b, alloc.getLoc(), alloc);
  });
  return success();
}

} // namespace pto::lowering
