//===- Evaluator.h - How a tuning run learns of a candidate -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Compiles and measures candidates. WorkerEvaluator does so in processes; tests
// script the answers. Failures are outcomes; only what stops the whole run (no
// worker can be started, the disk is full) is an error.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_EVALUATOR_H
#define PTO_TUNER_EVALUATOR_H

#include "db/Record.h"
#include "targets/runner/Signature.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace pto::tuner {

/// A kernel that can be measured.
struct KernelSource {
  std::string name; ///< For people.
  std::string hash; ///< Kernel hash.
  std::string ir;   ///< Module text with @kernel.
};

/// One candidate: a schedule with values for its knobs.
struct CandidateRequest {
  std::string scheduleName;
  std::string scheduleText;
  /// Knob name and value as MLIR text.
  std::vector<std::pair<std::string, std::string>> knobs;
};

struct CompileResult {
  db::Outcome outcome = db::Outcome::Ok;
  std::string message;
  std::string object;     ///< Path of the shared object.
  std::string objectHash; ///< Of its code; equal code, equal hash.
  std::string text;       ///< The schedule with the knobs filled in.
  targets::CallSpec call;
  double compileMs = 0;
  /// The run is stopping: this is no result.
  bool cancelled = false;
};

struct MeasureResult {
  db::Outcome outcome = db::Outcome::Ok;
  std::string message;
  std::vector<double> samplesNs;
  double error = 0;
  bool cancelled = false;
};

/// The machine's roof.
struct Peak {
  double gflops = 0;       ///< With the run's threads.
  double gflopsSingle = 0; ///< With one.
  double gbytes = 0;       ///< Bandwidth with the run's threads.
  std::string isa;
};

class Evaluator {
public:
  virtual ~Evaluator() = default;

  virtual llvm::Expected<Peak> peak() = 0;

  /// Compiles and runs the unscheduled kernel, whose outputs judge the others.
  /// The outcome is not ok where that failed: the kernel cannot be tuned.
  virtual llvm::Expected<MeasureResult> prepare(const KernelSource &kernel) = 0;

  /// Compiles candidates of one kernel side by side; `done(i, result)` as each
  /// is ready.
  virtual llvm::Error
  compile(const KernelSource &kernel, llvm::ArrayRef<CandidateRequest> requests,
          llvm::function_ref<void(size_t, CompileResult)> done) = 0;

  /// Checks and times one candidate, alone on the machine. One that is slower
  /// than `dropAboveNs` at first sight (0: never) gets a single sample.
  virtual llvm::Expected<MeasureResult> measure(const KernelSource &kernel,
                                                const CompileResult &candidate,
                                                double dropAboveNs) = 0;

  /// Times candidates in turns; one result each, with equally many samples.
  /// All fail if one does.
  virtual llvm::Expected<std::vector<MeasureResult>>
  compare(const KernelSource &kernel,
          llvm::ArrayRef<const CompileResult *> candidates) = 0;

  /// Text that names how times are taken; equal text, comparable times.
  virtual std::string policy() const = 0;
};

} // namespace pto::tuner

#endif // PTO_TUNER_EVALUATOR_H
