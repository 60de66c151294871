//===- DataObject.h - Bytes as a linkable object ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Writes a relocatable ELF object with one section of given bytes and symbols
// in it: how weights reach an artifact without passing through a compiler.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_CPU_DATAOBJECT_H
#define PTO_TARGETS_CPU_DATAOBJECT_H

#include "targets/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace pto::targets {

/// Bytes at an offset of the section; gaps are zero.
struct DataChunk {
  uint64_t offset = 0;
  llvm::ArrayRef<char> bytes;
};

struct DataSymbol {
  std::string name;
  uint64_t offset = 0;
  uint64_t size = 0;
  bool function = false; ///< STT_FUNC instead of STT_OBJECT.
};

struct DataSection {
  std::string name;                ///< For example ".pto.weights".
  uint64_t size = 0;               ///< At least the end of the last chunk.
  uint64_t alignment = 64;         ///< A power of two.
  bool executable = false;         ///< Flags are alloc (+ exec); never write.
  std::vector<DataChunk> chunks;   ///< In order of offset, not overlapping.
  std::vector<DataSymbol> symbols; ///< Global, default visibility.
};

/// Writes the object to `out`, section contents streamed, not copied.
llvm::Error writeDataObject(llvm::raw_ostream &out, const DataSection &section,
                            const Target &target);

} // namespace pto::targets

#endif // PTO_TARGETS_CPU_DATAOBJECT_H
