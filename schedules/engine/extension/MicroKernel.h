//===- MicroKernel.h - A linalg chain as register tiles ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Turns `root`, together with the producers fused with it (accumulator fill,
// contraction or reduction), into loops over register tiles: every tile is
// unrolled over its outer dims and cut into native vectors along its last dim,
// accumulators live in vectors across the reduction loops, and the epilogue
// runs on them before the one store. Any affine indexing map is accepted, so
// matmul, convolution, depthwise convolution, pooling and elementwise chains
// all take this path; sizes that the tile does not divide get static tails
// with masked vectors. See "Anatomy of High-Performance Matrix Multiplication"
// (Goto & van de Geijn, 2008) for the scheme of the inner kernel.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SCHEDULES_ENGINE_EXTENSION_MICROKERNEL_H
#define PTO_SCHEDULES_ENGINE_EXTENSION_MICROKERNEL_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/Error.h"

namespace pto::schedules {

struct MicroKernelOptions {
  /// Register tile, aligned to the last dims of root's result; dims before it
  /// have tile size 1. 0 means the whole dim.
  llvm::SmallVector<int64_t> tile;
  /// Where the loop over the last dim goes among the tile loops: 0 is
  /// outermost (weights stay, rows stream), -1 innermost. The other loops keep
  /// the order of the result's dims.
  int64_t vectorLoop = -1;
  /// Iterations of each reduction loop that are unrolled, aligned to the last
  /// ones; missing: 1, 0: all.
  llvm::SmallVector<int64_t> unroll;
  /// Native vector width.
  int64_t vectorBits = 256;
};

/// Replaces `root` and what is fused with it. An error is a precondition that
/// does not hold, with the reason; the IR is then unchanged.
llvm::Error emitMicroKernel(mlir::RewriterBase &rewriter,
                            mlir::linalg::LinalgOp root,
                            const MicroKernelOptions &options);

/// The producer of root's operands that does the reduction, if it is fused
/// with root: a linalg op in the same block whose one use is root.
mlir::linalg::LinalgOp findAnchor(mlir::linalg::LinalgOp root);

} // namespace pto::schedules

#endif // PTO_SCHEDULES_ENGINE_EXTENSION_MICROKERNEL_H
