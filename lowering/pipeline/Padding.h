//===- Padding.h - Windows that reach over the edge, without a copy -*- C++
//-*-//
//
// SPDX-License-Identifier: Apache-2.0
//
// A padded operand arrives as a buffer that is filled and then has the source
// copied into its middle. A reduction for which the fill value is neutral (0
// under a sum of products, -inf under a maximum) may read the source directly
// and leave the taps outside it out. resolvePadding finds such operands; the
// micro-kernel leaves out the taps (microkernel/Edges.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_PIPELINE_PADDING_H
#define PTO_LOWERING_PIPELINE_PADDING_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <optional>

namespace pto::lowering {

/// One axis of the source: index = a * o + b * k + c - low, valid in
/// [0, extent), for a parallel loop o and a reduction loop k of the op.
struct PaddedAxis {
  unsigned axis = 0;
  unsigned parallelLoop = 0, reductionLoop = 0;
  int64_t a = 1, b = 1, c = 0;
  int64_t low = 0, extent = 0;
  /// Where the op's view of the padded buffer starts along the axis.
  mlir::OpFoldResult offset;
};

struct Padding {
  mlir::OpOperand *operand = nullptr; ///< Of the op, the padded buffer.
  mlir::Value source;                 ///< What the pad was copied from.
  mlir::SmallVector<PaddedAxis> axes; ///< Those that are padded.
  /// Start of the view minus low pad, for every axis of the source.
  mlir::SmallVector<std::pair<mlir::OpFoldResult, int64_t>> shift;
  mlir::memref::AllocOp buffer;
};

/// The padded operand of `op` (at most one), if every condition holds.
std::optional<Padding> resolvePadding(mlir::linalg::LinalgOp op);

/// Erases the padded buffer with its fill and copy if nothing reads it now.
void eraseUnreadPadding(mlir::RewriterBase &rewriter,
                        mlir::memref::AllocOp buffer);

} // namespace pto::lowering

#endif // PTO_LOWERING_PIPELINE_PADDING_H
