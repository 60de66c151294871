//===- Import.h - ONNX to linalg --------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reads an ONNX file and gives a module in the "imported" form of
// lowering/README.md. The onnx library checks the model, infers shapes and
// inlines functions; one table maps each op to its builder (Ops.h), one file
// per op family holds the builders.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_ONNX_IMPORT_H
#define PTO_LOWERING_ONNX_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace pto::lowering {

struct ImportOptions {
  /// Sizes for an input's dynamic dims: input name -> full shape. A static dim
  /// that disagrees is an error, and so is a name that is no input.
  llvm::StringMap<llvm::SmallVector<int64_t>> shapes;
  /// Dynamic dims that nothing determines become 1 (with a warning in
  /// `warnings`) instead of staying `?`.
  bool pinDynamicDims = true;
};

/// Imports the model at `path`. Unreadable, truncated or invalid files and
/// unsupported ops (all of them, each with node name, op, domain, opset and
/// reason) come back as one error; nothing is printed.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importOnnx(mlir::MLIRContext &context, llvm::StringRef path,
           const ImportOptions &options,
           llvm::SmallVectorImpl<std::string> *warnings = nullptr);

} // namespace pto::lowering

#endif // PTO_LOWERING_ONNX_IMPORT_H
