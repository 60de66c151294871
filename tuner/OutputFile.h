//===- OutputFile.h - Files that are whole or not there ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// On a full disk, or when the tool is killed, a reader must not find half of a
// result under its name, nor lose the one that was there before.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_OUTPUTFILE_H
#define PTO_TUNER_OUTPUTFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace pto::tuner {

/// Writes beside `path` and renames. What is no regular file (a pipe, a device)
/// is written to as it is. Failures carry EnvironmentFailed.
llvm::Error
writeOutputFile(llvm::StringRef path,
                llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace pto::tuner

#endif // PTO_TUNER_OUTPUTFILE_H
