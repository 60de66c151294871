//===- Graph.h - From one @main to kernels and calls ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Turns an imported module into kernels plus a @main that only calls them
// (both forms: lowering/README.md). In order: fold (constants, batch
// normalisation), layout (NHWC, transposes cancelled), fuse (elementwise ops
// into their anchor), outline (one function per kernel; equal code is shared).
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_GRAPH_GRAPH_H
#define PTO_LOWERING_GRAPH_GRAPH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace pto::lowering {

struct GraphOptions {
  /// No fusion and no layout change: every linalg op is a kernel of its own.
  bool optimize = true;
};

/// Rewrites `module` in place. Fails with located diagnostics.
mlir::LogicalResult buildKernels(mlir::ModuleOp module,
                                 const GraphOptions &options);

/// The kernel's canonical text (locations and names removed): what both hashes
/// cover, and what the database stores.
std::string canonicalText(mlir::func::FuncOp kernel, bool withConstants);

/// Hex of a 128-bit hash of canonicalText. The code hash includes inline
/// constants; the kernel hash leaves out their values (contracts: keys).
std::string codeHash(mlir::func::FuncOp kernel);
std::string kernelHash(mlir::func::FuncOp kernel);

} // namespace pto::lowering

#endif // PTO_LOWERING_GRAPH_GRAPH_H
