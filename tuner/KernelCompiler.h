//===- KernelCompiler.h - One kernel, from its text to an object -*- C++ -*-==//
//
// SPDX-License-Identifier: Apache-2.0
//
// Each kernel compiles in an MLIR context of its own, so that kernels compile
// side by side and one kernel's result never depends on another's.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_KERNELCOMPILER_H
#define PTO_TUNER_KERNELCOMPILER_H

#include "mlir/IR/BuiltinOps.h"
#include "targets/Target.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace pto::tuner {

/// How a kernel's schedule was found, for people and for --json.
struct ScheduleChoice {
  std::string source =
      "none";         ///< "user", "record", "nearest", "default", "none".
  std::string name;   ///< Of the schedule.
  std::string text;   ///< With its knobs filled in.
  std::string reason; ///< Why not something better.
  std::string knobs;  ///< "nearest": the neighbour's values, JSON.
};

/// Applies a schedule to `module`, which holds one kernel, @kernel, in place or
/// by replacing it. `choice` comes in with what the database said.
using ScheduleKernel = std::function<llvm::Error(
    mlir::OwningOpRef<mlir::ModuleOp> &module, const targets::Target &target,
    unsigned threads, ScheduleChoice &choice)>;

struct KernelJob {
  std::string symbol; ///< In the artifact.
  std::string hash;   ///< kernelHash, for the database.
  std::string text;   ///< Module with @kernel.
  ScheduleChoice choice;
  std::string op, features; ///< Its place among others (KernelFeatures.h).
};

struct KernelOptions {
  const targets::Target *target = nullptr;
  unsigned threads = 1;
  unsigned optLevel = 3;
  bool assembly = false, llvmIr = false;
  bool keepStages = false;
  /// Null: no schedule.
  ScheduleKernel schedule;
};

/// Where an argument of the compiled kernel comes from.
struct ArgumentSource {
  bool prepacked = false;
  unsigned index = 0; ///< Of the raw kernel's argument, or of prepack's result.
};

struct CompiledKernel {
  std::string symbol;
  llvm::SmallVector<char, 0> object; ///< Or assembly, or LLVM IR.
  ScheduleChoice choice;

  /// Empty: the raw kernel's arguments.
  std::vector<ArgumentSource> arguments;
  std::vector<std::string> argumentTypes;

  /// The part that depends on weights alone, as code for this machine, under
  /// `prepackSymbol`: raw weights in, packed weights out. Empty: none.
  llvm::SmallVector<char, 0> prepackObject;
  std::string prepackSymbol;
  std::vector<unsigned> prepackInputs;   ///< Raw arguments.
  std::vector<std::string> prepackTypes; ///< Of its results.

  /// With keepStages: (stage, text).
  std::vector<std::pair<std::string, std::string>> stages;
};

/// A schedule whose result cannot be lowered is dropped, with a reason, for the
/// plain kernel; only a kernel that does not compile either way is an error.
llvm::Expected<CompiledKernel> compileKernel(const KernelJob &job,
                                             const KernelOptions &options);

/// Compiles all jobs, `workers` at a time. The result's order is the jobs'; the
/// error is the first job's that failed.
llvm::Expected<std::vector<CompiledKernel>>
compileKernels(const std::vector<KernelJob> &jobs, const KernelOptions &options,
               unsigned workers);

} // namespace pto::tuner

#endif // PTO_TUNER_KERNELCOMPILER_H
