//===- Allocation.h - Which kernel gets the next minute ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A model has many kernels and one budget. The next slice goes to the kernel
// where it is likely to save the most time of the whole model: by its share,
// by how fast it has improved of late, and, while little was spent on it, by
// what it could still gain at most.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SEARCH_ALLOCATION_H
#define PTO_SEARCH_ALLOCATION_H

#include <cstdint>
#include <optional>
#include <vector>

namespace pto::search {

struct AllocationOptions {
  /// Every kernel gets its default and this many trials before any gets more.
  uint64_t floorTrials = 6;
  /// Gains below this fraction are noise.
  double minGain = 0.01;
  /// A kernel is at its end after this many trials without a gain, or as many
  /// as it had before its last gain, whichever is more.
  uint64_t patience = 96;
};

/// One kernel, as far as time is concerned.
struct TaskStatus {
  double calls = 1;   ///< How often the model runs it.
  double boundNs = 0; ///< It cannot be faster (roofline); 0 if unknown.
  double defaultNs = 0;
  double bestNs = 0;      ///< 0 before the first success.
  double referenceNs = 0; ///< Best at the last gain that was not noise.
  uint64_t trials = 0;
  uint64_t trialsAtGain = 0; ///< Trials when it last improved.
  double seconds = 0;        ///< Spent on it.
  double rate = 0;           ///< Recent relative gain per second, smoothed.
  bool exhausted = false;    ///< Nothing left to try.
};

/// What a slice brought.
struct SliceResult {
  uint64_t trials = 0;
  double seconds = 0;
  double bestNs = 0; ///< Best of the task so far; 0 if nothing worked yet.
  bool exhausted = false;
};

class Allocation {
public:
  explicit Allocation(AllocationOptions options = {}) : options(options) {}

  /// Returns the task's number. `defaultNs` is 0 if the default failed or is
  /// not known yet.
  unsigned addTask(double calls, double defaultNs, double boundNs = 0);

  /// The task that gets the next slice; nothing when none is likely to gain.
  std::optional<unsigned> next() const;
  void report(unsigned task, const SliceResult &slice);

  const TaskStatus &getTask(unsigned task) const { return tasks[task]; }
  /// The kernels' part of the whole model, with the best so far.
  double modelNs() const;
  /// The task's part of modelNs().
  double share(unsigned task) const;
  /// No gain is expected from more time on this task.
  bool isDone(unsigned task) const;

private:
  /// Nanoseconds of the model that a second on this task is likely to save.
  double expectedGain(const TaskStatus &task) const;

  AllocationOptions options;
  std::vector<TaskStatus> tasks;
};

} // namespace pto::search

#endif // PTO_SEARCH_ALLOCATION_H
