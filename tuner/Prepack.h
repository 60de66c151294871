//===- Prepack.h - Weights in the form that the kernels want ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A schedule can split off the part of a kernel that depends on weights alone.
// It runs here, once for each distinct set of weights, and @main's calls get
// the packed weights as constants in place of the raw ones.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_PREPACK_H
#define PTO_TUNER_PREPACK_H

#include "tuner/KernelCompiler.h"

namespace pto::tuner {

/// True if each call of `symbol` in @main of `module` passes constants for the
/// arguments that `kernel`'s prepack part reads.
bool canPrepack(mlir::ModuleOp module, const CompiledKernel &kernel);

/// Rewrites the calls in @main, and the kernels' declarations, to the compiled
/// kernels' arguments.
llvm::Error applyPrepack(mlir::ModuleOp module,
                         llvm::ArrayRef<const CompiledKernel *> kernels);

} // namespace pto::tuner

#endif // PTO_TUNER_PREPACK_H
