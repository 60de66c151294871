//===- RunService.h - Requests that a runner answers ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Requests (JSON), all with "op":
//
//   reference  kernel, candidate (the unscheduled lowering), cache
//              -> outputs for all data sets, kept in the file `cache`
//   measure    kernel, candidate, cache, threads, timing
//              -> samples_ns, error, tolerance
//   compare    kernel, candidates, cache, threads, timing, rounds, seconds
//              -> samples_ns: one array per candidate, taken in turns, for
//              about
//                 so long, and so many rounds if that fits twice the time
//   models     artifacts (paths), threads, seconds
//              -> samples_ns: one array per artifact, taken in turns;
//              difference
//   peak       threads -> gflops, gflops_single, gbytes
//
// `kernel` is {id, seed, signature}; ids tell kernels apart, and a runner keeps
// the data of the last one. Every answer has "outcome" and "message" in the
// words of db/Record.h.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_RUNSERVICE_H
#define PTO_TARGETS_RUNNER_RUNSERVICE_H

#include "targets/runner/Runtime.h"
#include "targets/runner/Timing.h"

namespace pto::targets {

class RunService {
public:
  llvm::json::Object handle(const llvm::json::Object &request);

private:
  llvm::json::Object reference(const llvm::json::Object &request);
  llvm::json::Object measure(const llvm::json::Object &request);
  llvm::json::Object compare(const llvm::json::Object &request);
  llvm::json::Object models(const llvm::json::Object &request);
  llvm::json::Object peak(const llvm::json::Object &request);

  /// Makes the request's kernel the current one.
  llvm::Error select(const llvm::json::Object &request, bool needReference);
  pto_runtime *runtimeFor(const llvm::json::Object &request);
  TimingData &timingFor(const TimingPolicy &policy);

  std::string current;
  std::unique_ptr<KernelData> data;
  bool haveReference = false;
  std::unique_ptr<TimingData> timing;
  RuntimePtr runtime;
  unsigned threads = 0;
};

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_RUNSERVICE_H
