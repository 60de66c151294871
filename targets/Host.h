//===- Host.h - Facts of the machine that runs pto --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Instruction set from LLVM, caches and cores from hwloc. Cores are those that
// this process may use: the affinity mask and the cgroup's CPU quota count.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_HOST_H
#define PTO_TARGETS_HOST_H

#include "targets/Target.h"

namespace pto::targets {

/// Detects this machine. Never fails: what cannot be read keeps its default.
Target detectHost();

} // namespace pto::targets

#endif // PTO_TARGETS_HOST_H
