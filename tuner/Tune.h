//===- Tune.h - The tuning run ----------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Takes the kernels of a model, shares the time among them, proposes, compiles,
// checks and measures candidates, commits each trial at once, confirms the
// winners, and stores them as records. Knows no MLIR: spaces come in as data,
// candidates go out as text (Evaluator.h).
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_TUNE_H
#define PTO_TUNER_TUNE_H

#include "search/Allocation.h"
#include "search/Budget.h"
#include "tuner/Progress.h"
#include "tuner/TuneTask.h"

namespace pto::tuner {

struct TuneOptions {
  double budgetSeconds = 600;
  unsigned threads = 1;
  uint64_t seed = 0;
  /// New trials per kernel, beside the default and the user's scripts; 0: no
  /// limit.
  uint64_t maxTrials = 0;
  std::string strategy = "evolution";
  /// Candidates compiled side by side before they are measured one by one.
  unsigned batch = 8;
  /// Of the budget, kept for what comes after the run (the whole model).
  double reserveSeconds = 0;
  db::TargetInfo target;
  std::string dtypePolicy = "exact";
  search::Budget::Clock clock = search::Budget::steadyClock();
  /// True once the user wants to stop. May be null.
  std::function<bool()> stop;
};

struct TuneResult {
  std::vector<std::unique_ptr<TuneTask>> tasks;
  Peak peak;
  std::map<db::Outcome, uint64_t> outcomes; ///< New trials.
  double seconds = 0;
  bool stopped = false; ///< By the user.
};

class TuningRun {
public:
  /// `store` may be null: nothing is remembered.
  TuningRun(TuneOptions options, Evaluator &evaluator, db::Store *store,
            Progress &progress);

  llvm::Expected<TuneResult> run(std::vector<TaskSpec> specs);

  /// Makes the default a kernel's record after all: in the whole model its
  /// winner did not hold.
  llvm::Error revert(TuneTask &task, llvm::StringRef why);

private:
  llvm::Error addNames();
  llvm::Error measurePeak();
  llvm::Error start(TuneTask &task);
  llvm::Error resume(TuneTask &task);
  llvm::Error measureDefault(TuneTask &task);
  llvm::Error measureUserScripts(TuneTask &task);
  llvm::Error addSeeds(TuneTask &task);
  llvm::Expected<std::optional<db::Trial>>
  findTrial(TuneTask &task, const search::Point &point);
  llvm::Error search();
  llvm::Error confirm(TuneTask &task);
  llvm::Error putRecord(TuneTask &task, const Measured &winner,
                        const std::string &text, double timeNs,
                        std::optional<double> defaultNs, bool replace);

  /// Compiles, measures and stores; gives the ok ones' times.
  llvm::Error tryPoints(TuneTask &task, llvm::ArrayRef<search::Point> points,
                        db::Purpose purpose);
  llvm::Error judge(TuneTask &task, const search::Point &point,
                    CompileResult candidate, db::Purpose purpose,
                    int64_t startedMs);
  llvm::Error prepare(TuneTask &task);
  llvm::Expected<CompileResult> compileOne(TuneTask &task,
                                           const search::Point &point);
  void learn(TuneTask &task, const search::Point &point,
             const db::Trial &trial);
  /// An earlier run has compared the best with the default.
  bool wasCompared(const TuneTask &task) const;
  bool needsConfirmation(const TuneTask &task) const;
  bool isImplausible(const TuneTask &task, double ns) const;

  bool stopping() const { return options.stop && options.stop(); }
  double secondsLeft() const;

  TuneOptions options;
  Evaluator &evaluator;
  db::Store *store;
  Progress &progress;
  search::Budget budget;
  db::Maker maker;
  TuneResult result;
};

} // namespace pto::tuner

#endif // PTO_TUNER_TUNE_H
