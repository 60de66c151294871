//===- Chain.h - What a micro-kernel computes -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Root and what is fused with it: found and checked on tensors when a schedule
// marks it, and again on memrefs when it becomes loops.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_PIPELINE_MICROKERNEL_CHAIN_H
#define PTO_LOWERING_PIPELINE_MICROKERNEL_CHAIN_H

#include "lowering/pipeline/MicroKernel.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace pto::lowering::microkernel {

/// Root and what is fused with it, on tensors or on memrefs.
struct Chain {
  mlir::linalg::LinalgOp root;
  mlir::linalg::LinalgOp anchor; ///< The reduction; root itself, or null.
  mlir::linalg::FillOp fill;     ///< Initialises the anchor, or null.
  mlir::Value intermediate;      ///< What root reads of another op, the anchor.

  unsigned rank = 0; ///< Of root's result.
  int64_t nativeWidth = 1;
  llvm::SmallVector<unsigned> rootLoop,
      anchorLoop;                             ///< Loop of each result dim.
  llvm::SmallVector<unsigned> reductionLoops; ///< Of the anchor.
  llvm::SmallVector<int64_t> order, unroll;
  llvm::SmallVector<int64_t>
      size; ///< Of the register tile; -1: dynamic last dim.
  bool prefetch = false;
  /// The reduction loop to vectorise, where only reduction loops run along
  /// memory (sums over rows); else the result's last dim is vectorised.
  std::optional<unsigned> rowLoop;

  /// Without an anchor: the result dim along which an input lies in memory that
  /// the last dim strides through. Blocks of it are transposed in registers.
  std::optional<unsigned> crossDim;

  /// Fills in the rest; an error is a precondition that does not hold.
  llvm::Error analyse(const MicroKernelOptions &options);
};

/// The loop along which an operand with `map` lies in memory, if that is
/// another one than `vectorLoop` and the operand has both.
std::optional<unsigned> crossLoop(mlir::AffineMap map, unsigned vectorLoop);

/// How the anchor combines its accumulator, if vectors can.
std::optional<mlir::vector::CombiningKind>
reductionKind(mlir::linalg::LinalgOp op);

llvm::Error refuse(const llvm::Twine &reason);

} // namespace pto::lowering::microkernel

#endif // PTO_LOWERING_PIPELINE_MICROKERNEL_CHAIN_H
