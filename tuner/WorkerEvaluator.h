//===- WorkerEvaluator.h - Candidates in worker processes -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// pto-worker compiles, on all cores; pto-runner checks and times, one at a
// time, under the machine-wide lock. Objects live in a temporary folder that
// goes away with this.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_WORKEREVALUATOR_H
#define PTO_TUNER_WORKEREVALUATOR_H

#include "targets/runner/Pool.h"
#include "targets/runner/Timing.h"
#include "targets/runner/TimingLock.h"
#include "tuner/Evaluator.h"
#include <map>

namespace pto::tuner {

struct EvaluatorOptions {
  std::string target = "cpu"; ///< As on the command line.
  std::string isa; ///< For the peak; empty: this CPU's widest.
  std::string tools; ///< Folder of the workers; empty: beside this program.
  unsigned threads = 1;
  unsigned compileJobs = 1;
  uint64_t seed = 0;
  double compileSeconds = 30; ///< Limit per candidate.
  double measureSeconds = 15; ///< Limit per candidate.
  double referenceSeconds = 60;
  int64_t compileMemory = int64_t(6) << 30;
  int64_t runMemory = int64_t(8) << 30;
  targets::TimingPolicy timing;
  std::function<bool()> stop;
};

class WorkerEvaluator : public Evaluator {
public:
  static llvm::Expected<std::unique_ptr<WorkerEvaluator>>
  create(EvaluatorOptions options);
  ~WorkerEvaluator() override;

  llvm::Expected<Peak> peak() override;
  llvm::Expected<MeasureResult> prepare(const KernelSource &kernel) override;
  llvm::Error
  compile(const KernelSource &kernel, llvm::ArrayRef<CandidateRequest> requests,
          llvm::function_ref<void(size_t, CompileResult)> done) override;
  llvm::Expected<MeasureResult> measure(const KernelSource &kernel,
                                        const CompileResult &candidate,
                                        double dropAboveNs) override;
  llvm::Expected<std::vector<MeasureResult>>
  compare(const KernelSource &kernel,
          llvm::ArrayRef<const CompileResult *> candidates) override;
  std::string policy() const override;

  /// Has a worker read the user's schedules for a kernel, for reading can
  /// crash. Not ok: why they cannot be used.
  llvm::Expected<MeasureResult>
  readSchedules(const KernelSource &kernel, llvm::ArrayRef<std::string> files);

  /// Runs artifacts of one model in turns; one result each.
  llvm::Expected<std::vector<MeasureResult>>
  compareModels(llvm::ArrayRef<std::string> artifacts, double seconds);

  /// Sizes of the whole model: what timing rotates through is like it.
  void setModelSizes(int64_t weightBytes, int64_t dataBytes);

  /// A path for a shared object that no other has had.
  std::string newObject();

  /// The folder for objects.
  llvm::StringRef folder() const { return temporary; }

private:
  explicit WorkerEvaluator(EvaluatorOptions options);
  llvm::json::Object runRequest(llvm::StringRef op,
                                const KernelSource &kernel) const;
  std::string referenceFile(const KernelSource &kernel,
                            llvm::StringRef ending) const;

  EvaluatorOptions options;
  std::string temporary;
  targets::TimingLock lock;
  targets::WorkerPool compilers, runners;
  std::map<std::string, targets::KernelSignature> signatures; ///< By hash.
  uint64_t objects = 0;
};

} // namespace pto::tuner

#endif // PTO_TUNER_WORKEREVALUATOR_H
