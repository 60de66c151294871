//===- Main.h - From the list of calls to an artifact's code ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The last step of a model: @main (form "kernels" of lowering/README.md), whose
// tensors become pointers into the caller's buffers, the weights and one arena,
// and whose calls become calls in the kernels' C convention. Beside it goes the
// data that the runtime (targets/cpu/runtime) needs: signature, steps, limits.
//
//   MemoryPlan.h   offsets in the arena
//   LowerMain.cpp  @main itself
//   Describe.h     the tables and the exported functions
//   Weights.h      constants as bytes
//   Header.h       MODEL.h
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_MAIN_MAIN_H
#define PTO_LOWERING_MAIN_MAIN_H

#include "lowering/main/Weights.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "targets/Target.h"
#include <string>
#include <vector>

namespace pto::lowering {

struct MainOptions {
  std::string prefix;      ///< C prefix of the exported functions.
  unsigned threads = 1;    ///< Limit that the kernels were compiled for.
  std::string weightsFile; ///< Name of MODEL.weights; empty: weights inside.
  std::string version;     ///< Of pto and LLVM, for people.
};

/// An input or an output of the model.
struct ValueInfo {
  std::string name;
  int32_t dtype = 0;             ///< pto_abi.h's number.
  std::vector<int64_t> shape;    ///< -1: known at run time.
  std::vector<std::string> dims; ///< Names of such sizes; empty: none has one.
};

/// One kernel call of @main.
struct StepInfo {
  std::string kernel;
  double flops = 0; ///< 0: unknown.
  double bytes = 0; ///< Of all arguments, once each; 0: unknown.
};

/// The code for some shapes of the inputs.
struct VersionInfo {
  std::string symbol;                       ///< Of its main.
  std::vector<std::vector<int64_t>> shapes; ///< One per input; -1: any size.
  size_t firstStep = 0, stepCount = 0;
  int64_t arenaBytes = 0;   ///< The part whose size is known when compiling.
  int64_t addedWeights = 0; ///< Bytes that no version before has.
};

struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< LLVM dialect.
  Weights weights;
  std::string model;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<VersionInfo> versions;
  std::vector<StepInfo> steps;      ///< Of all versions.
  std::vector<std::string> exports; ///< Symbols that the library offers.
};

/// The weights' symbol in the object that carries them.
inline constexpr const char *weightsSymbol = "pto_weights_data";

/// Lowers @main of each module; they are versions of one model for different
/// shapes, of which a run takes the first that fits. The modules stay as they
/// are. Fails with located diagnostics.
mlir::FailureOr<Program> lowerMain(llvm::ArrayRef<mlir::ModuleOp> versions,
                                   const targets::Target &target,
                                   const MainOptions &options);

/// A C identifier made of `name`.
std::string sanitiseName(llvm::StringRef name);

} // namespace pto::lowering

#endif // PTO_LOWERING_MAIN_MAIN_H
