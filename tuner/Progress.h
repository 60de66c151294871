//===- Progress.h - What a tuning run says while it runs --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Tune.cpp reports events; ConsoleProgress shows them on stderr: one line that
// is rewritten on a terminal, one line per event elsewhere.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_PROGRESS_H
#define PTO_TUNER_PROGRESS_H

#include "tuner/TuneTask.h"

namespace pto::tuner {

class Progress {
public:
  virtual ~Progress() = default;
  /// A line that stays.
  virtual void note(const llvm::Twine &text) {}
  /// A trial has ended.
  virtual void trial(const TuneTask &task, const search::Point &point,
                     const db::Trial &result, const Peak &peak,
                     double secondsLeft) {}
  /// Something that takes a while.
  virtual void phase(const llvm::Twine &text, double secondsLeft) {}
  virtual void finish() {}
};

std::unique_ptr<Progress> makeConsoleProgress();

} // namespace pto::tuner

#endif // PTO_TUNER_PROGRESS_H
