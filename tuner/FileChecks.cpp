//===- FileChecks.cpp - Files that a tool is about to use -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/FileChecks.h"
#include "tuner/ToolError.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <cstring>
#include <unistd.h>

namespace pto::tuner {

namespace fs = llvm::sys::fs;

llvm::Error checkReadable(llvm::StringRef path) {
  if (fs::is_directory(path))
    return toolError(BadInput, path + ": is a folder, not a file");
  int fd;
  std::error_code code = fs::openFileForRead(path, fd);
  if (!code) {
    llvm::sys::Process::SafelyCloseFileDescriptor(fd);
    return llvm::Error::success();
  }
  if (code == std::errc::no_such_file_or_directory)
    return toolError(BadInput, path + ": no such file");
  return toolError(EnvironmentFailed,
                   path + ": cannot be read: " + code.message() +
                       "\ncheck its permissions");
}

llvm::Error checkWritable(llvm::StringRef path) {
  if (path == "-")
    return llvm::Error::success();
  auto failure = [&](const llvm::Twine &why) {
    return toolError(EnvironmentFailed, "cannot write " + path + ": " + why);
  };
  if (fs::is_directory(path))
    return failure("it is a folder");
  if (fs::exists(path))
    if (std::error_code code = fs::access(path, fs::AccessMode::Write))
      return failure(code.message());
  if (fs::exists(path) && !fs::is_regular_file(path))
    return llvm::Error::success(); // A device, a pipe.
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  std::string folder = parent.empty() ? "." : parent.str();
  if (!fs::is_directory(folder))
    return failure("there is no folder " + folder);
  if (std::error_code code = fs::access(folder, fs::AccessMode::Write))
    return failure(code.message());
  return llvm::Error::success();
}

/// There is no memory: fixed storage only.
static void outOfMemory(void *tool, const char *, bool) {
  const char *name = static_cast<const char *>(tool);
  const char message[] = ": out of memory\n";
  (void)!::write(2, name, std::strlen(name));
  (void)!::write(2, message, sizeof message - 1);
  llvm::sys::RunInterruptHandlers(); // Removes unfinished files.
  ::_exit(EnvironmentFailed);
}

void handleLimits(const char *tool) {
  std::signal(SIGXFSZ, SIG_IGN);
  llvm::install_bad_alloc_error_handler(outOfMemory, const_cast<char *>(tool));
}

int finishOutput(llvm::StringRef tool, int code) {
  llvm::raw_fd_ostream &out = llvm::outs();
  out.flush();
  std::error_code failed = out.error();
  if (!failed)
    return code;
  out.clear_error(); // Or its destructor ends the process.
  llvm::errs() << tool << ": cannot write to stdout: " << failed.message()
               << '\n';
  return EnvironmentFailed;
}

} // namespace pto::tuner
