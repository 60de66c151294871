//===- MicroKernel.h - A linalg chain as register tiles ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A schedule asks for a micro-kernel by marking a linalg op and the producers
// fused with it (accumulator fill, contraction or reduction); the code is made
// after bufferisation, as loops over register tiles: every tile is unrolled
// over its outer dims and cut into native vectors along its last dim,
// accumulators live in vectors across the reduction loops, and the epilogue
// runs on them before the one store. Any affine indexing map is accepted, so
// matmul, convolution, depthwise convolution, pooling and elementwise chains
// all take this path; sizes that the tile does not divide get static tails
// with masked vectors. See "Anatomy of High-Performance Matrix Multiplication"
// (Goto & van de Geijn, 2008) for the scheme of the inner kernel.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_PIPELINE_MICROKERNEL_H
#define PTO_LOWERING_PIPELINE_MICROKERNEL_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace pto::lowering {

struct MicroKernelOptions {
  /// Register tile, aligned to the last dims of root's result (dims of size 1
  /// do not count, nor do those that both factors of a product have, but for
  /// the very last); dims before it have tile size 1. 0 means the whole dim.
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
  /// Prefetch the next panel of a packed operand while this one is in use.
  bool prefetch = false;
};

/// True if `loop` of `anchor`, a product of two inputs, numbers independent
/// products: both inputs have it, beside what is summed. Nothing is shared
/// along it, wherever it lies in the result.
bool numbersProducts(mlir::linalg::LinalgOp anchor, mlir::AffineExpr loop);

/// Marks `root`, a linalg op on tensors, and what can be fused with it. An
/// error is a precondition that does not hold, with the reason; nothing is
/// marked then. An op that is part of a micro-kernel already is left alone.
llvm::Error markMicroKernel(mlir::linalg::LinalgOp root,
                            const MicroKernelOptions &options);

/// Replaces every marked chain, now on memrefs, by loops over register tiles.
mlir::LogicalResult expandMicroKernels(mlir::ModuleOp module);

} // namespace pto::lowering

#endif // PTO_LOWERING_PIPELINE_MICROKERNEL_H
