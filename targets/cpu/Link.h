//===- Link.h - Objects to a shared library ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// LLVM's own lld, in this process: the tuner's workers and pto-compile link the
// same way. The result depends on the objects' bytes alone: no path, time or
// build id gets in. It needs libc and libm and nothing else; those two are
// stood in for while linking, so no sysroot is needed for any target.
//
// Linking resets every llvm::cl option of the process to its default (lld does
// so): read options before.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_CPU_LINK_H
#define PTO_TARGETS_CPU_LINK_H

#include "targets/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace pto::targets {

struct DataSection;

/// An object in memory. The name appears in messages only.
struct LinkObject {
  std::string name;
  llvm::StringRef bytes;
};

struct LinkOptions {
  /// The symbols that the library offers; all others become local.
  std::vector<std::string> exports;
  /// DT_SONAME; empty: none.
  std::string soname;
  /// Links the artifact runtime (targets/cpu/runtime) in.
  bool runtime = false;
  /// Bytes to carry (DataObject.h); null: none.
  const DataSection *data = nullptr;
};

/// Links `objects` into the shared library `path`. Undefined symbols that are
/// neither libc's nor libm's are an error that names them. Safe to call from
/// several threads (one link at a time); leaves no file behind on failure. An
/// error has the system's code if the objects are not to blame (a full disk).
llvm::Error linkShared(llvm::ArrayRef<LinkObject> objects, llvm::StringRef path,
                       const Target &target, const LinkOptions &options);

/// The same parts as one relocatable object, for a static link into a program;
/// `exports` does not apply.
llvm::Error linkRelocatable(llvm::ArrayRef<LinkObject> objects,
                            llvm::StringRef path, const Target &target,
                            const LinkOptions &options);

} // namespace pto::targets

#endif // PTO_TARGETS_CPU_LINK_H
