//===- UserSchedule.cpp - The --schedule option ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/UserSchedule.h"
#include "tuner/ToolError.h"
#include "llvm/Support/FileSystem.h"

namespace pto::tuner {

llvm::Expected<UserSchedule> parseUserSchedule(llvm::StringRef option) {
  UserSchedule user{option.str(), ""};
  if (!llvm::sys::fs::exists(option)) {
    auto [file, kernel] = option.rsplit(':');
    user = {file.str(), kernel.str()};
  }
  if (!llvm::sys::fs::exists(user.file))
    return toolError(BadInput, "--schedule: " + user.file + ": no such file");
  return user;
}

} // namespace pto::tuner
