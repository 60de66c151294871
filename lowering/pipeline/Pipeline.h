//===- Pipeline.h - From a scheduled kernel to an object file ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The pass order lives here, in one place. Input: a module with @kernel (and
// perhaps @kernel_prepack) on tensors, vectors or memrefs, however far a
// schedule took it; a kernel without any schedule is fine too (scalar loops).
// Output: LLVM dialect, then an ELF object that follows the calling convention
// of lowering/README.md.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_PIPELINE_PIPELINE_H
#define PTO_LOWERING_PIPELINE_PIPELINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "targets/Target.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

namespace pto::lowering {

/// Registers every dialect, extension, interface and pass that pto uses. The
/// one file that includes MLIR's InitAll headers.
void registerAll(mlir::DialectRegistry &registry);

/// Lowers every function of `module` to the LLVM dialect, in place. Functions
/// with `pto.entry = "symbol"` (or @kernel and @kernel_prepack, which get it
/// by default) are wrapped in the C calling convention under that symbol.
mlir::LogicalResult lowerToLLVM(mlir::ModuleOp module,
                                const targets::Target &target);

/// Registers `--pto-lower-to-llvm` (lowerToLLVM for this machine).
void registerPipelinePasses();

struct ObjectOptions {
  unsigned optLevel = 3; ///< LLVM's -O level.
  bool assembly = false; ///< Text assembly instead of an object.
  bool llvmIr = false;   ///< Optimised LLVM IR as text.
};

/// LLVM dialect -> optimised object (or text) for `target`. Deterministic.
llvm::Expected<llvm::SmallVector<char, 0>>
emitObject(mlir::ModuleOp llvmModule, const targets::Target &target,
           const ObjectOptions &options = {});

/// Runs `constants` (no arguments, tensor results; any linalg on tensors
/// inside) in this process and returns its results as dense resources.
/// The host's own code generation is used, whatever the target.
llvm::Expected<llvm::SmallVector<mlir::ElementsAttr>>
evaluateConstants(mlir::func::FuncOp constants);

} // namespace pto::lowering

#endif // PTO_LOWERING_PIPELINE_PIPELINE_H
