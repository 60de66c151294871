//===- ToolError.cpp - Failures that know their exit code -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/ToolError.h"
#include "tuner/OutputFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace pto::tuner {

char ToolError::ID;

void ToolError::log(llvm::raw_ostream &out) const { out << text; }

std::error_code ToolError::convertToErrorCode() const {
  return llvm::inconvertibleErrorCode();
}

llvm::Error toolError(ExitCode code, const llvm::Twine &message) {
  return llvm::make_error<ToolError>(code, message.str());
}

int reportError(llvm::StringRef tool, llvm::Error error, ExitCode otherwise) {
  int code = Done;
  llvm::handleAllErrors(
      std::move(error),
      [&](const ToolError &info) {
        llvm::errs() << tool << ": " << info.message() << '\n';
        code = std::max<int>(code, info.getCode());
      },
      [&](const llvm::ErrorInfoBase &info) {
        llvm::errs() << tool << ": " << info.message() << '\n';
        code = std::max<int>(code, otherwise);
      });
  return code;
}

llvm::Error writeTextFile(llvm::StringRef path, llvm::StringRef text) {
  if (path == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    return llvm::Error::success();
  }
  return writeOutputFile(path, [&](llvm::raw_ostream &out) { out << text; });
}

} // namespace pto::tuner
