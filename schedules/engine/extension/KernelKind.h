//===- KernelKind.h - What a kernel computes --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SCHEDULES_ENGINE_EXTENSION_KERNELKIND_H
#define PTO_SCHEDULES_ENGINE_EXTENSION_KERNELKIND_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/StringRef.h"

namespace pto::schedules {

/// The one op marked `pto.anchor` in `kernel`; null if there is none or more.
mlir::linalg::LinalgOp anchorOf(mlir::Operation *kernel);

/// The one op marked `pto.root` in `kernel`, else the anchor.
mlir::linalg::LinalgOp rootOf(mlir::Operation *kernel);

/// "matmul", "conv", "depthwise_conv", "pooling", "reduction", "elementwise",
/// "transpose", or "other", from the structure of the kernel's anchor;
/// "rowwise" for a kernel of ops on rows (`pto.rowwise`).
llvm::StringRef kernelKind(mlir::Operation *kernel);

/// True if the anchor's second input is a weight of the kernel (an argument
/// with `pto.role = "weight"`, or a reshape of one).
bool hasWeights(mlir::Operation *kernel);

} // namespace pto::schedules

#endif // PTO_SCHEDULES_ENGINE_EXTENSION_KERNELKIND_H
