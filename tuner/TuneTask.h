//===- TuneTask.h - One kernel of a tuning run ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What is to be tuned (TaskSpec), and how far that is (TuneTask): the space
// over all schedules that fit, the search, the default's time, the best so far.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_TUNETASK_H
#define PTO_TUNER_TUNETASK_H

#include "db/Store.h"
#include "search/Strategy.h"
#include "tuner/Evaluator.h"
#include <map>
#include <set>

namespace pto::tuner {

/// A schedule that fits the kernel.
struct BranchSpec {
  std::string name;
  std::string text;
  std::vector<search::Knob> knobs;
  /// Why these choices (an index into each knob's options) make no sense
  /// together; empty if they do. May be null.
  std::function<std::string(llvm::ArrayRef<size_t>)> refuse;
  bool fromUser = false; ///< Measured in any case.
};

/// A kernel of the model.
struct TaskSpec {
  KernelSource kernel;
  std::string op = "other";    ///< Kind of the anchor.
  std::string features = "{}"; ///< JSON, for neighbours.
  int64_t flops = 0, bytes = 0;
  double calls = 1; ///< How often the model runs it.
  /// In the order of preference: the first that works is the default.
  std::vector<BranchSpec> branches;
};

/// A point that was tried and works.
struct Measured {
  search::Point point;
  double bestNs = 0;
  int64_t trial = 0; ///< Its id in the database; 0 without one.
};

class TuneTask {
public:
  TuneTask(TaskSpec spec, db::Key key);
  TuneTask(const TuneTask &) = delete;

  const TaskSpec spec;
  const db::Key key;
  search::Space space;
  std::vector<std::string> scheduleHashes; ///< By branch.
  std::unique_ptr<search::Strategy> strategy;

  std::optional<Measured> byDefault, best;
  /// Candidates that were compiled in this run and may be compared at the end.
  std::map<int64_t, CompileResult> compiled;

  /// Schedule hash + knobs of what earlier runs have confirmed.
  std::set<std::string> compared;

  uint64_t trials = 0;   ///< New ones in this run.
  uint64_t searched = 0; ///< Of those, proposed by the search.
  uint64_t resumed = 0;  ///< Found in the database.
  bool prepared = false; ///< The reference's outputs are there.
  std::string unusable;  ///< Why the kernel cannot be tuned.
  std::string note;      ///< What the user should know about the result.

  /// Set when the winner was timed against the default.
  bool confirmed = false;
  double defaultNs = 0, tunedNs = 0; ///< Figures of the report.
  db::Evidence evidence = db::Evidence::Measured;

  CandidateRequest request(const search::Point &point) const;
  /// "matmul/packed rows=12 panel=32": for people.
  std::string describe(const search::Point &point) const;
};

} // namespace pto::tuner

#endif // PTO_TUNER_TUNETASK_H
