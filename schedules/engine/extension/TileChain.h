//===- TileChain.h - Tile an op together with what it consumes --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SCHEDULES_ENGINE_EXTENSION_TILECHAIN_H
#define PTO_SCHEDULES_ENGINE_EXTENSION_TILECHAIN_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace pto::schedules {

struct TiledChain {
  mlir::linalg::LinalgOp root; ///< Root in the innermost loop.
  llvm::SmallVector<mlir::LoopLikeOpInterface> loops;
};

/// Tiles `root` by `sizes` (per loop of root; 0: not tiled) and pulls the
/// linalg ops that only the chain consumes into the loops, also those that
/// several of its ops read at the same place; pads and packs stay outside.
/// `parallel` makes one scf.forall, which reductions must not be part of.
mlir::FailureOr<TiledChain> tileChain(mlir::RewriterBase &rewriter,
                                      mlir::linalg::LinalgOp root,
                                      llvm::ArrayRef<mlir::OpFoldResult> sizes,
                                      llvm::ArrayRef<int64_t> interchange,
                                      bool parallel);

/// Tile sizes along `loop` must be multiples of this: the size of the panels
/// in which an operand of the chain is packed along it (1: not packed).
int64_t panelAlong(mlir::linalg::LinalgOp root, unsigned loop);

} // namespace pto::schedules

#endif // PTO_SCHEDULES_ENGINE_EXTENSION_TILECHAIN_H
