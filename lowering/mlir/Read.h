//===- Read.h - Models given as MLIR ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reads a .mlir file (text or bytecode) with linalg or TOSA on tensors, as
// torch-mlir writes it, and gives the "imported" form of lowering/README.md.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_MLIR_READ_H
#define PTO_LOWERING_MLIR_READ_H

#include "lowering/onnx/Import.h"

namespace pto::lowering {

/// Reads the module at `path`. One that is in the "kernels" form already comes
/// back as it is. Else the model is @main, or else the only public
/// function, which is renamed. Arguments without `pto.name` are called input0,
/// input1, ...; results output0, ... . Options mean what they mean for ONNX.
/// A file that does not parse and ops outside linalg, tensor, arith and math
/// (all of them) come back as one error; nothing is printed.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
readMlir(mlir::MLIRContext &context, llvm::StringRef path,
         const ImportOptions &options,
         llvm::SmallVectorImpl<std::string> *warnings = nullptr);

} // namespace pto::lowering

#endif // PTO_LOWERING_MLIR_READ_H
