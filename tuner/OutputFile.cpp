//===- OutputFile.cpp - Files that are whole or not there -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/OutputFile.h"
#include "tuner/ToolError.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

namespace pto::tuner {

static llvm::Error failure(llvm::StringRef path, std::error_code code) {
  return toolError(EnvironmentFailed,
                   "cannot write " + path + ": " + code.message());
}

static std::error_code
finish(llvm::raw_fd_ostream &out,
       llvm::function_ref<void(llvm::raw_ostream &)> write) {
  write(out);
  out.close();
  std::error_code code = out.error();
  out.clear_error();
  return code;
}

llvm::Error
writeOutputFile(llvm::StringRef path,
                llvm::function_ref<void(llvm::raw_ostream &)> write) {
  namespace fs = llvm::sys::fs;
  fs::file_status status;
  std::error_code missing = fs::status(path, status);
  if (!missing && !fs::is_regular_file(status)) {
    std::error_code code;
    llvm::raw_fd_ostream out(path, code);
    if (!code)
      code = finish(out, write);
    return code ? failure(path, code) : llvm::Error::success();
  }
  // A file that may not be written is not replaced either.
  if (!missing && fs::access(path, fs::AccessMode::Write))
    return failure(path, std::make_error_code(std::errc::permission_denied));
  // Through a link, its target is replaced.
  llvm::SmallString<256> target(path), temporary;
  if (!missing)
    (void)fs::real_path(path, target);
  int fd;
  if (std::error_code code =
          fs::createUniqueFile(target + ".%%%%%%.tmp", fd, temporary,
                               fs::OF_None, fs::all_read | fs::all_write))
    return failure(path, code);
  llvm::sys::RemoveFileOnSignal(temporary);
  llvm::raw_fd_ostream out(fd, /*shouldClose=*/true);
  std::error_code code = finish(out, write);
  if (!code)
    code = fs::rename(temporary, target);
  if (code)
    fs::remove(temporary);
  llvm::sys::DontRemoveFileOnSignal(temporary);
  return code ? failure(path, code) : llvm::Error::success();
}

} // namespace pto::tuner
