//===- Packing.h - Operand layouts, and work done before run time -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// packOperand stores an operand in panels of `tile` elements along one loop
// ([N/tile][rest...][tile]) by rewriting the op's indexing map to
// (n floordiv tile, rest, n mod tile). splitPrepack then moves whatever depends
// on weights alone into @kernel_prepack, which runs when a model is compiled.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SCHEDULES_ENGINE_EXTENSION_PACKING_H
#define PTO_SCHEDULES_ENGINE_EXTENSION_PACKING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/Error.h"

namespace pto::schedules {

/// Packs input `operand` of `op` along `loop` (an index into op's loops). The
/// operand must be indexed by plain loop dims; a ragged last panel is padded
/// with zeros. Returns the new op, or why it cannot be done.
llvm::Expected<mlir::linalg::GenericOp>
packOperand(mlir::RewriterBase &rewriter, mlir::linalg::GenericOp op,
            unsigned operand, unsigned loop, int64_t tile);

/// Splits `kernel` (lowering/README.md, "Scheduled kernels"). Without anything
/// to move, nothing changes.
llvm::Error splitPrepack(mlir::RewriterBase &rewriter,
                         mlir::func::FuncOp kernel);

} // namespace pto::schedules

#endif // PTO_SCHEDULES_ENGINE_EXTENSION_PACKING_H
