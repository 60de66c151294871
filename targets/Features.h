//===- Features.h - CPU features that generated code may use ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Views of targets/cpu/runtime/pto_features.h, the table that the compiler and
// the artifact's own check share.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_FEATURES_H
#define PTO_TARGETS_FEATURES_H

#include "targets/Target.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace pto::targets {

/// The table's features that `target` has, in the table's order.
std::vector<std::string> codeFeatures(const Target &target);

/// The same as a mask: bit i is row i of the table of the target's
/// architecture.
uint64_t codeFeatureMask(const Target &target);

/// The bit of an x86 feature, by LLVM's name, in such a mask; 0 if the table
/// has none of that name.
uint64_t x86FeatureBit(llvm::StringRef name);

/// True if code generated for `target` runs on `host`.
bool runsOn(const Target &target, const Target &host);

} // namespace pto::targets

#endif // PTO_TARGETS_FEATURES_H
