//===- Pool.h - A set of equal workers --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Hands jobs to workers, each with its time limit, and replaces the workers
// that die. One thread: the parent-death signal that ties workers to their
// manager is bound to the thread that forked them.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_POOL_H
#define PTO_TARGETS_RUNNER_POOL_H

#include "targets/runner/Worker.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>

namespace pto::targets {

struct Job {
  llvm::json::Object request;
  std::chrono::milliseconds limit{10000};
};

class WorkerPool {
public:
  /// `stop`, if given, is polled while waiting: once it is true, what runs is
  /// killed and everything unfinished is Cancelled.
  WorkerPool(WorkerCommand command, unsigned count,
             std::function<bool()> stop = nullptr);

  /// Starts workers ahead of need (up to `count`).
  void warmUp(unsigned count);

  /// Runs all jobs; `done(i, reply)` is called once per job, in the order in
  /// which they end, from this thread.
  void run(std::vector<Job> jobs, llvm::function_ref<void(size_t, Reply)> done);

  /// Runs one job.
  Reply run(Job job);

  /// Kills all workers; the next run starts new ones.
  void killAll();

  unsigned size() const { return workers.size(); }

private:
  WorkerCommand command;
  std::function<bool()> stop;
  std::vector<std::unique_ptr<Worker>> workers;
};

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_POOL_H
