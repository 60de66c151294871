//===- Compile.h - A model to an artifact -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What pto-compile does, as a function: read the model, form kernels, compile
// each under its schedule, pack weights, lower @main, link. No search here.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_COMPILE_H
#define PTO_TUNER_COMPILE_H

#include "targets/Target.h"
#include "tuner/KernelCompiler.h"
#include "tuner/Shapes.h"
#include "tuner/UserSchedule.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace pto::tuner {

enum class OutputKind { SharedLibrary, Object, Assembly, LlvmIr, Mlir };

/// By the file's ending: .so .o .s .ll .mlir; an error for any other.
llvm::Expected<OutputKind> outputKindOf(llvm::StringRef path);

struct CompileOptions {
  std::string model;  ///< .onnx or .mlir.
  std::string output; ///< Its ending says what to make.
  std::string name;   ///< C prefix; empty: the model's name.
  targets::Target target;
  unsigned threads = 0; ///< Limit per run; 0: the target's cores.
  unsigned jobs = 0;    ///< Kernels compiled side by side; 0: this machine's.
  bool optimize = true; ///< -O2; false: -O0, no fusion and no schedules.
  /// Each gets a version of its own, taken by runs with these shapes.
  std::vector<ShapeSet> shapes;
  /// No general version: dims that nothing determines are 1.
  bool pinned = false;
  std::string db = "none";             ///< File of records, or "none".
  std::vector<UserSchedule> schedules; ///< Instead of the database's.
  bool requireTuned = false;  ///< Fail unless every kernel has a record.
  bool weightsBeside = false; ///< MODEL.weights, also below 1 GiB.
  std::string saveTemps;      ///< Folder for the IR of each stage; empty: none.
};

struct KernelReport {
  std::string name, hash;
  std::string version; ///< The first that has it.
  unsigned calls = 0;
  ScheduleChoice choice;
};

struct VersionReport {
  std::string shape; ///< "x=1x3,y=4", or "general".
  size_t calls = 0;
  int64_t arenaBytes = 0; ///< Of sizes known when compiling.
  /// What the version adds to those before it.
  int64_t addedWeightBytes = 0;
};

struct CompileReport {
  std::string model, output, header, weightsFile;
  std::vector<KernelReport> kernels;
  std::vector<VersionReport> versions;
  std::vector<std::string> warnings;
  int64_t arenaBytes = 0, weightsBytes = 0;
  double seconds = 0;
};

llvm::Expected<CompileReport> compileModel(const CompileOptions &options);

} // namespace pto::tuner

#endif // PTO_TUNER_COMPILE_H
