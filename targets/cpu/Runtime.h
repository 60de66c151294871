//===- Runtime.h - The runtime that artifacts link --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The objects of targets/cpu/runtime, compiled for each architecture when pto
// is built and kept inside the tools, so that they run from anywhere.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_CPU_RUNTIME_H
#define PTO_TARGETS_CPU_RUNTIME_H

#include "targets/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace pto::targets {

struct RuntimeObject {
  const char *arch; ///< LLVM's name of the architecture.
  const char *name;
  llvm::StringRef bytes;
};

/// The objects for the target's architecture; empty if there are none.
llvm::ArrayRef<RuntimeObject> runtimeObjects(const Target &target);

/// Text of pto_abi.h, the first part of each generated header.
llvm::StringRef abiHeader();

} // namespace pto::targets

#endif // PTO_TARGETS_CPU_RUNTIME_H
