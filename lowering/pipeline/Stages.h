//===- Stages.h - The pipeline's own stages ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The steps of Pipeline.cpp that MLIR does not have. All work on a module of
// func.funcs on memrefs.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_PIPELINE_STAGES_H
#define PTO_LOWERING_PIPELINE_STAGES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace pto::lowering {

/// Removes copies of a buffer onto itself, also where source and destination
/// are different subviews with equal operands.
mlir::LogicalResult eraseSelfCopies(mlir::ModuleOp module);

/// Copies of strided views become linalg.copy, which lowers to loops;
/// memref.copy would call a library. Canonicalisation makes the latter of the
/// former, so this comes last.
mlir::LogicalResult expandStridedCopies(mlir::ModuleOp module);

/// The last chunk of a parallel loop gets a body of its own where its size is
/// another, so that both bodies have static sizes. True if any loop changed.
bool splitParallelTails(mlir::ModuleOp module);

/// Refuses what must not reach code: stack buffers beyond 256 KiB, vectors
/// beyond 4096 elements. The messages start with "too large:".
mlir::LogicalResult checkBuffers(mlir::ModuleOp module);

/// Wraps each function with a body in the C calling convention of
/// lowering/README.md; the function itself becomes private and takes the
/// runtime pointer as its last argument.
mlir::LogicalResult wrapEntries(mlir::ModuleOp module);

/// Outermost scf.forall/scf.parallel without results becomes an outlined body
/// and a call of runtime->parallel_for; inner ones become scf.for.
mlir::LogicalResult lowerParallelLoops(mlir::ModuleOp module);

/// Frees each heap buffer at the end of the block that allocates it.
mlir::LogicalResult freeBuffers(mlir::ModuleOp module);

/// exp, tanh, erf and the like on f32, scalars and vectors, as polynomials.
mlir::LogicalResult approximateMath(mlir::func::FuncOp func);

} // namespace pto::lowering

#endif // PTO_LOWERING_PIPELINE_STAGES_H
