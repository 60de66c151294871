//===- Target.h - What pto knows of a device --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A target is a name plus facts: what code to generate (triple, cpu, features)
// and what shapes the search space (vector width, registers, caches, cores).
// The host's facts are detected, never assumed; cross targets come from the
// description files in targets/cpu/*.toml. Nothing here depends on MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_TARGET_H
#define PTO_TARGETS_TARGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace pto::targets {

struct Target {
  std::string name;          ///< Family: "cpu".
  std::string triple;        ///< LLVM triple, e.g. "x86_64-unknown-linux-gnu".
  std::string cpu;           ///< LLVM CPU name, e.g. "sapphirerapids".
  std::string features;      ///< LLVM feature string, sorted: "+avx2,+fma,...".
  std::string isa;           ///< "avx512", "avx2", "neon", or "generic".
  std::string model;         ///< Core model as the OS names it; for people.
  unsigned vectorBits = 128; ///< Preferred native vector width.
  unsigned vectorRegisters = 16; ///< Architectural vector registers.
  int64_t l1Bytes = 32 << 10;    ///< L1 data cache of a core.
  int64_t l2Bytes = 256 << 10;   ///< L2 cache that a core can use.
  int64_t l3Bytes = 0;           ///< Shared last-level cache, 0 if none.
  unsigned lineBytes = 64;
  unsigned cores = 1;  ///< Physical cores available to this process.
  bool isHost = false; ///< Code for it runs here.

  /// Stable text naming everything that a record depends on: ISA features in
  /// use, cache sizes, core model. Equal fingerprints may share records.
  std::string fingerprint() const;
};

/// Parses "cpu" (this machine) or "cpu,arch=x86-64-v3" (also "x86-64-v4",
/// "armv8-a"). An unknown name or key is an error that lists the known ones.
llvm::Expected<Target> parseTarget(llvm::StringRef spec);

} // namespace pto::targets

#endif // PTO_TARGETS_TARGET_H
