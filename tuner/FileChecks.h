//===- FileChecks.h - Files that a tool is about to use ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Asked early: what cannot be read or written is said before the work, not
// after it, and with the right exit code.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_FILECHECKS_H
#define PTO_TUNER_FILECHECKS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace pto::tuner {

/// Is there a file that can be read? Missing is bad input; permissions are the
/// environment's.
llvm::Error checkReadable(llvm::StringRef path);

/// Can a file be written there ("-": yes)? Nothing is written.
llvm::Error checkWritable(llvm::StringRef path);

/// A limit of the machine's ends `tool` with a message and exit code 3, not
/// with a signal: a write beyond `ulimit -f` is an error like any other, and so
/// is memory that is not there. Call after InitLLVM.
void handleLimits(const char *tool);

/// Ends a tool whose answer is on stdout: `code`, or 3 with a message if the
/// answer could not be written.
int finishOutput(llvm::StringRef tool, int code);

} // namespace pto::tuner

#endif // PTO_TUNER_FILECHECKS_H
