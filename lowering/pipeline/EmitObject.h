//===- EmitObject.h - LLVM's side of code generation ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The pieces of emitObject that in-process evaluation (Evaluate.cpp) shares.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_PIPELINE_EMITOBJECT_H
#define PTO_LOWERING_PIPELINE_EMITOBJECT_H

#include "mlir/IR/BuiltinOps.h"
#include "targets/Target.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
} // namespace llvm

namespace pto::lowering {

/// `optLevel` is LLVM's -O level, 0 to 3.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const targets::Target &target, unsigned optLevel);

/// Translates and optimises; target attributes are set on every function.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVM(mlir::ModuleOp module, llvm::LLVMContext &context,
                const targets::Target &target, llvm::TargetMachine &machine,
                unsigned optLevel);

} // namespace pto::lowering

#endif // PTO_LOWERING_PIPELINE_EMITOBJECT_H
