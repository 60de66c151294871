//===- Weights.h - A model's constants as bytes -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Gathers the constants of @main into one block, each 64-byte aligned, in the
// order of use; equal bytes are kept once. The bytes are referred to where they
// are (resources of the MLIR context), not copied.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_MAIN_WEIGHTS_H
#define PTO_LOWERING_MAIN_WEIGHTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <deque>
#include <map>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace pto::lowering {

class Weights {
public:
  struct Entry {
    int64_t offset = 0;
    llvm::ArrayRef<char> bytes;
  };

  /// The offset of `value`'s dense row-major bytes; booleans take a byte each.
  llvm::Expected<int64_t> add(mlir::ElementsAttr value);

  int64_t size() const { return end; }
  const std::vector<Entry> &entries() const { return all; }

  /// Identifies the contents: file and artifact must agree.
  uint64_t id() const;

  /// Writes MODEL.weights (pto_weights_header, then the block).
  void writeFile(llvm::raw_ostream &out) const;

private:
  llvm::DenseMap<mlir::Attribute, int64_t> offsets;
  std::map<std::pair<uint64_t, uint64_t>, std::vector<size_t>> byHash;
  std::vector<Entry> all;
  std::deque<llvm::SmallVector<char, 0>> expanded; ///< splats, booleans
  int64_t end = 0;
};

} // namespace pto::lowering

#endif // PTO_LOWERING_MAIN_WEIGHTS_H
