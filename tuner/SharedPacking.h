//===- SharedPacking.h - One packed copy of each weight ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Versions of a model for different shapes read the same weights. If their
// kernels pack them alike, the artifact holds one copy: the version that comes
// later asks for the schedule and the panels that the earlier one took.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_SHAREDPACKING_H
#define PTO_TUNER_SHAREDPACKING_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "tuner/KernelCompiler.h"
#include <map>

namespace pto::tuner {

class SharedPacking {
public:
  /// Remembers how `kernels` of @main in `module` packed their weights. To be
  /// called before the calls get packed weights (Prepack.h).
  void learn(mlir::ModuleOp module,
             llvm::ArrayRef<const CompiledKernel *> kernels);

  /// Gives jobs of @main in `module`, which have no choice of their own yet,
  /// what was learnt about their weights as nearest neighbour.
  void suggest(mlir::ModuleOp module, llvm::ArrayRef<KernelJob *> jobs) const;

private:
  std::map<std::string, ScheduleChoice> byWeights;
};

} // namespace pto::tuner

#endif // PTO_TUNER_SHAREDPACKING_H
