//===- UserSchedule.h - The --schedule option -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_USERSCHEDULE_H
#define PTO_TUNER_USERSCHEDULE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace pto::tuner {

/// A script of the user's: FILE or FILE:KERNEL.
struct UserSchedule {
  std::string file;
  std::string kernel; ///< A kernel's name or its beginning; empty: all.
};

/// A file whose name holds a colon is still found. Fails if there is no file.
llvm::Expected<UserSchedule> parseUserSchedule(llvm::StringRef option);

} // namespace pto::tuner

#endif // PTO_TUNER_USERSCHEDULE_H
