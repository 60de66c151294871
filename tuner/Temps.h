//===- Temps.h - --save-temps -----------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Writes the IR of each stage to numbered files, so that a folder listing reads
// in the order of the flow. Weights are elided.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_TEMPS_H
#define PTO_TUNER_TEMPS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <string>

namespace pto::tuner {

class Temps {
public:
  /// Empty: write nothing.
  explicit Temps(std::string folder) : folder(std::move(folder)) {}

  bool enabled() const { return !folder.empty(); }
  llvm::Error open();
  /// Writes NN-name.
  llvm::Error save(unsigned stage, const llvm::Twine &name,
                   mlir::ModuleOp module);
  llvm::Error save(unsigned stage, const llvm::Twine &name,
                   llvm::StringRef text);

private:
  std::string folder;
};

} // namespace pto::tuner

#endif // PTO_TUNER_TEMPS_H
