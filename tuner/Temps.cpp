//===- Temps.cpp - --save-temps -------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/Temps.h"
#include "mlir/IR/OperationSupport.h"
#include "tuner/ToolError.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace pto::tuner {

llvm::Error Temps::open() {
  if (!enabled())
    return llvm::Error::success();
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return toolError(EnvironmentFailed, "cannot create the folder " + folder +
                                            ": " + code.message());
  return llvm::Error::success();
}

llvm::Error Temps::save(unsigned stage, const llvm::Twine &name,
                        mlir::ModuleOp module) {
  if (!enabled())
    return llvm::Error::success();
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, mlir::OpPrintingFlags()
                        .elideLargeElementsAttrs(64)
                        .elideLargeResourceString(64));
  out << '\n';
  return save(stage, name, text);
}

llvm::Error Temps::save(unsigned stage, const llvm::Twine &name,
                        llvm::StringRef text) {
  if (!enabled())
    return llvm::Error::success();
  std::string path = llvm::formatv("{0}/{1:2}-{2}", folder,
                                   llvm::format("%02u", stage), name.str());
  return writeTextFile(path, text);
}

} // namespace pto::tuner
