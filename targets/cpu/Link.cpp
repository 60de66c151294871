//===- Link.cpp - Objects to a shared library -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Inputs reach lld as anonymous files (memfd), so nothing is left in /tmp and
// no temporary name can leak into the output.
//
//===----------------------------------------------------------------------===//

#include "targets/cpu/Link.h"
#include "lld/Common/Driver.h"
#include "targets/cpu/DataObject.h"
#include "targets/cpu/Runtime.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace pto::targets {
namespace {

llvm::Error error(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// Not the objects' fault: the error keeps the system's code.
llvm::Error error(std::error_code code, const llvm::Twine &message) {
  return llvm::createStringError(code, message);
}

/// Anonymous files with names under /proc, closed at the end.
class MemoryFiles {
public:
  ~MemoryFiles() {
    for (int fd : fds)
      close(fd);
  }

  llvm::Error add(llvm::StringRef bytes, std::string &path) {
    return add(
        [&](llvm::raw_ostream &out) {
          out << bytes;
          return llvm::Error::success();
        },
        path);
  }

  llvm::Error add(llvm::function_ref<llvm::Error(llvm::raw_ostream &)> write,
                  std::string &path) {
    int fd = memfd_create("pto", MFD_CLOEXEC);
    if (fd < 0)
      return error(llvm::errnoAsErrorCode(), "cannot create a memory file: " +
                                                 llvm::sys::StrError(errno));
    fds.push_back(fd);
    llvm::raw_fd_ostream out(fd, /*shouldClose=*/false);
    if (llvm::Error failed = write(out))
      return failed;
    out.flush();
    if (out.has_error()) {
      std::error_code code = out.error();
      out.clear_error();
      return error(code, "cannot write a memory file: " + code.message());
    }
    path = "/proc/self/fd/" + std::to_string(fd);
    return llvm::Error::success();
  }

private:
  std::vector<int> fds;
};

llvm::StringRef emulation(const Target &target) {
  llvm::Triple triple(target.triple);
  if (triple.getArch() == llvm::Triple::x86_64)
    return "elf_x86_64";
  if (triple.getArch() == llvm::Triple::aarch64)
    return "aarch64linux";
  return "";
}

/// An object whose symbols stand in for a library's functions.
llvm::Expected<std::string> standIn(llvm::ArrayRef<const char *> functions,
                                    const Target &target) {
  DataSection section;
  section.name = ".text";
  section.executable = true;
  section.alignment = 16;
  for (const char *name : functions) {
    section.symbols.push_back({name, section.size, 16, /*function=*/true});
    section.size += 16;
  }
  std::string bytes;
  llvm::raw_string_ostream out(bytes);
  if (llvm::Error failed = writeDataObject(out, section, target))
    return std::move(failed);
  return bytes;
}

const char *const libcSymbols[] = {
#define X(name) #name,
#include "targets/cpu/LibcSymbols.def"
#undef X
};
const char *const libmSymbols[] = {
#define X(name) #name,
#include "targets/cpu/LibmSymbols.def"
#undef X
};

llvm::Error runLld(const std::vector<std::string> &args) {
  std::vector<const char *> argv;
  for (const std::string &arg : args)
    argv.push_back(arg.c_str());
  std::string messages;
  llvm::raw_string_ostream out(messages);
  lld::Result result =
      lld::lldMain(argv, out, out, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode == 0)
    return llvm::Error::success();
  std::string text =
      ("linking failed: " + llvm::StringRef(messages).trim()).str();
  // lld has only words for it. Memory is what large objects can run out of.
  if (llvm::StringRef(messages).contains(llvm::sys::StrError(ENOMEM)))
    return error(text);
  for (llvm::StringRef words :
       {"failed to open ", "cannot open output file", "failed to write"})
    if (llvm::StringRef(messages).contains(words))
      return error(std::make_error_code(std::errc::io_error), text);
  return error(text);
}

/// A shared library that stands in for another while linking.
llvm::Expected<std::string> linkStandIn(llvm::ArrayRef<const char *> functions,
                                        llvm::StringRef soname,
                                        const Target &target) {
  auto object = standIn(functions, target);
  if (!object)
    return object.takeError();
  MemoryFiles files;
  std::string objectPath;
  if (llvm::Error failed = files.add(*object, objectPath))
    return std::move(failed);
  // lld replaces its output file, so it gets a folder of its own to do so.
  llvm::SmallString<128> folder;
  if (std::error_code code =
          llvm::sys::fs::createUniqueDirectory("pto-link", folder))
    return error(code, "cannot create a temporary folder: " + code.message());
  std::string output = (folder + "/lib").str(), bytes;
  llvm::Error failed =
      runLld({"ld.lld", "-m", emulation(target).str(), "-shared", "-soname",
              soname.str(), "--threads=1", "-o", output, objectPath});
  if (!failed) {
    auto buffer = llvm::MemoryBuffer::getFile(output);
    if (buffer)
      bytes = (*buffer)->getBuffer().str();
    else
      failed = error(buffer.getError(), "cannot read back " + output);
  }
  llvm::sys::fs::remove(output);
  llvm::sys::fs::remove(folder);
  if (failed)
    return std::move(failed);
  return bytes;
}

/// The stand-ins for libm and libc, made once for each architecture.
llvm::Error addStandIns(const Target &target, MemoryFiles &files,
                        std::vector<std::string> &inputs) {
  static std::map<std::string, std::vector<std::string>> made;
  std::vector<std::string> &libraries = made[emulation(target).str()];
  if (libraries.empty()) {
    auto libm = linkStandIn(libmSymbols, "libm.so.6", target);
    if (!libm)
      return libm.takeError();
    auto libc = linkStandIn(libcSymbols, "libc.so.6", target);
    if (!libc)
      return libc.takeError();
    libraries = {std::move(*libm), std::move(*libc)};
  }
  for (const std::string &library : libraries) {
    inputs.emplace_back();
    if (llvm::Error failed = files.add(library, inputs.back()))
      return failed;
  }
  return llvm::Error::success();
}

std::string versionScript(llvm::ArrayRef<std::string> exports) {
  std::string text = "{\n";
  if (!exports.empty())
    text += "  global: " + llvm::join(exports, "; ") + ";\n";
  return text + "  local: *;\n};\n";
}

/// Puts everything that is linked into memory files.
llvm::Error addInputs(llvm::ArrayRef<LinkObject> objects, const Target &target,
                      const LinkOptions &options, MemoryFiles &files,
                      std::vector<std::string> &inputs) {
  auto add = [&](llvm::StringRef bytes) {
    inputs.emplace_back();
    return files.add(bytes, inputs.back());
  };
  for (const LinkObject &object : objects)
    if (llvm::Error failed = add(object.bytes))
      return failed;
  if (options.runtime)
    for (const RuntimeObject &object : runtimeObjects(target))
      if (llvm::Error failed = add(object.bytes))
        return failed;
  if (!options.data)
    return llvm::Error::success();
  inputs.emplace_back();
  return files.add(
      [&](llvm::raw_ostream &out) {
        return writeDataObject(out, *options.data, target);
      },
      inputs.back());
}

/// lld maps its output file: on a full disk that is a SIGBUS, so ask first.
llvm::Error checkSpace(llvm::ArrayRef<LinkObject> objects, llvm::StringRef path,
                       const LinkOptions &options) {
  uint64_t needed = 1 << 20;
  for (const LinkObject &object : objects)
    needed += object.bytes.size();
  if (options.data)
    needed += options.data->size;
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  auto space = llvm::sys::fs::disk_space(folder.empty() ? "." : folder);
  if (space && space->available < needed)
    return error(std::make_error_code(std::errc::no_space_on_device),
                 llvm::formatv("the disk is full: {0:f1} MB needed, {1:f1} MB "
                               "free in {2}",
                               needed / 1e6, space->available / 1e6,
                               folder.empty() ? "." : folder));
  return llvm::Error::success();
}

/// lld removes its output file before it writes it: it gets another name, so
/// that the file there is the old one or the new one, whole.
llvm::Error runLldInto(llvm::StringRef path, std::vector<std::string> args) {
  namespace fs = llvm::sys::fs;
  llvm::SmallString<256> temporary;
  if (std::error_code code =
          fs::createUniqueFile(path + ".%%%%%%.tmp", temporary))
    return error(code, code.message());
  llvm::sys::RemoveFileOnSignal(temporary);
  args.insert(args.end(), {"-o", temporary.str().str()});
  llvm::Error failed = runLld(args);
  if (!failed)
    if (std::error_code code = fs::rename(temporary, path))
      failed = error(code, code.message());
  if (failed)
    fs::remove(temporary);
  llvm::sys::DontRemoveFileOnSignal(temporary);
  return failed;
}

// lld keeps its state in globals.
std::mutex lldMutex;

} // namespace

llvm::Error linkRelocatable(llvm::ArrayRef<LinkObject> objects,
                            llvm::StringRef path, const Target &target,
                            const LinkOptions &options) {
  if (emulation(target).empty())
    return error("cannot link for triple " + target.triple);
  if (llvm::Error failed = checkSpace(objects, path, options))
    return failed;
  std::lock_guard<std::mutex> lock(lldMutex);
  MemoryFiles files;
  std::vector<std::string> inputs;
  if (llvm::Error failed = addInputs(objects, target, options, files, inputs))
    return failed;
  std::vector<std::string> args = {"ld.lld", "-m", emulation(target).str(),
                                   "-r", "--threads=1"};
  args.insert(args.end(), inputs.begin(), inputs.end());
  return runLldInto(path, std::move(args));
}

llvm::Error linkShared(llvm::ArrayRef<LinkObject> objects, llvm::StringRef path,
                       const Target &target, const LinkOptions &options) {
  if (emulation(target).empty())
    return error("cannot link for triple " + target.triple);
  if (llvm::Error failed = checkSpace(objects, path, options))
    return failed;
  std::lock_guard<std::mutex> lock(lldMutex);

  MemoryFiles files;
  std::vector<std::string> inputs;
  if (llvm::Error failed = addInputs(objects, target, options, files, inputs))
    return failed;
  if (llvm::Error failed = addStandIns(target, files, inputs))
    return failed;
  std::string script;
  if (llvm::Error failed = files.add(versionScript(options.exports), script))
    return failed;

  std::vector<std::string> args = {
      "ld.lld", "-m", emulation(target).str(), "-shared",
      // Reproducible, and only what is called for.
      "--build-id=none", "--gc-sections", "--hash-style=gnu", "-z", "defs",
      "-z", "relro", "-z", "now", "-Bsymbolic", "--as-needed",
      "--no-undefined-version", "--threads=1", "--version-script", script};
  if (!options.soname.empty())
    args.insert(args.end(), {"-soname", options.soname});
  args.insert(args.end(), inputs.begin(), inputs.end());
  return runLldInto(path, std::move(args));
}

} // namespace pto::targets
