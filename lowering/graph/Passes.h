//===- Passes.h - The steps of the graph stage ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Each step is a function on a module, in the order in which buildKernels runs
// them, and also a pass `--pto-<name>` so that it can be run and tested alone.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_GRAPH_PASSES_H
#define PTO_LOWERING_GRAPH_PASSES_H

#include "mlir/IR/BuiltinOps.h"

namespace pto::lowering {

/// Named linalg ops become linalg.generic (fill stays), with
/// fastmath<contract> on the multiply and add of contractions.
mlir::LogicalResult generalizeOps(mlir::ModuleOp module);

/// A product with constant weights whose result is only cut into parts becomes
/// one product per part.
mlir::LogicalResult splitProducts(mlir::ModuleOp module);

/// conv/matmul with constant weights, then y = x*a[c]+b[c] (in any number of
/// elementwise ops): a goes into the weights, b into one bias add.
mlir::LogicalResult foldBatchNorm(mlir::ModuleOp module);

/// Channels last from end to end; transposes become indexing maps of their
/// users, weights are stored as their kernels walk them.
mlir::LogicalResult assignLayouts(mlir::ModuleOp module);

/// Unit and reshaped dims between an op and its elementwise users go behind
/// the users, so that the users can be fused.
mlir::LogicalResult sinkReshapes(mlir::ModuleOp module);

/// Everything that depends on constants alone moves to one function
/// @constants. With `evaluate` it is run and replaced by its results.
mlir::LogicalResult extractConstants(mlir::ModuleOp module, bool evaluate);

/// Marks the ops of each kernel with the same `pto.group` and merges its
/// elementwise ops into one. Without `fuse` each op is a group of its own.
mlir::LogicalResult formGroups(mlir::ModuleOp module, bool fuse);

/// Each group becomes a function that writes its results to its last
/// arguments, and a call in @main.
mlir::LogicalResult outlineGroups(mlir::ModuleOp module);

/// Kernels read the sizes of their intermediate tensors off arguments that they
/// use anyway; inputs that only gave a size are dropped.
mlir::LogicalResult localiseSizes(mlir::ModuleOp module);

/// Unit dims of kernels vanish and dims that are always walked together become
/// one (a 1x1 convolution becomes a matmul); @main gets free reshapes.
mlir::LogicalResult collapseKernels(mlir::ModuleOp module);

/// Gives kernels their final names and keys; equal code is kept once.
mlir::LogicalResult nameKernels(mlir::ModuleOp module);

/// Checks the "Kernels" form of lowering/README.md; a diagnostic for each op
/// that does not belong.
mlir::LogicalResult verifyKernels(mlir::ModuleOp module);

/// Registers one pass per step above, and `--pto-build-kernels` for all.
void registerGraphPasses();

} // namespace pto::lowering

#endif // PTO_LOWERING_GRAPH_PASSES_H
