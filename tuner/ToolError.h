//===- ToolError.h - Failures that know their exit code ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Exit codes of all of pto's tools (0 done, 1 the answer is no, 2 bad usage or
// input, 3 the environment failed) travel with the message, from the place that
// knows what went wrong to main.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_TOOLERROR_H
#define PTO_TUNER_TOOLERROR_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace pto::tuner {

enum ExitCode { Done = 0, AnswerIsNo = 1, BadInput = 2, EnvironmentFailed = 3 };

class ToolError : public llvm::ErrorInfo<ToolError> {
public:
  static char ID;
  ToolError(ExitCode code, std::string message)
      : code(code), text(std::move(message)) {}

  ExitCode getCode() const { return code; }
  void log(llvm::raw_ostream &out) const override;
  std::error_code convertToErrorCode() const override;

private:
  ExitCode code;
  std::string text;
};

/// First line: what and where. Then, where possible: what to do.
llvm::Error toolError(ExitCode code, const llvm::Twine &message);

/// Prints "TOOL: message" to stderr and gives the exit code; errors of other
/// kinds count as `otherwise`.
int reportError(llvm::StringRef tool, llvm::Error error,
                ExitCode otherwise = BadInput);

/// Writes `text` to the file at `path` ("-": stdout).
llvm::Error writeTextFile(llvm::StringRef path, llvm::StringRef text);

} // namespace pto::tuner

#endif // PTO_TUNER_TOOLERROR_H
