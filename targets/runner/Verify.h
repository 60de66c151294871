//===- Verify.h - Does a candidate compute the right numbers? ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Holds one kernel's inputs and its reference outputs (from the unscheduled
// lowering), and compares candidates against them.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_VERIFY_H
#define PTO_TARGETS_RUNNER_VERIFY_H

#include "targets/runner/Buffer.h"
#include "targets/runner/Data.h"
#include "targets/runner/LoadedKernel.h"

namespace pto::targets {

/// What a check found. Anything but "" in `problem` is a wrong result.
struct CheckResult {
  std::string problem;
  double worstError = 0;
  double tolerance = 0;
  double firstRunNs = 0; ///< Of the first data set's run: cold, but a bound.
  bool partial = false;  ///< Checked on the first data set alone.
};

class KernelData {
public:
  /// Above this many operations the reference (scalar code) is too slow to run
  /// three times: the positive data set is left out.
  static constexpr int64_t kThreeSetsFlops = 20'000'000;

  KernelData(KernelSignature signature, uint64_t seed);

  const KernelSignature &signature() const { return sig; }
  /// Input argument `i` of the mixed data set.
  const GuardedBuffer &input(unsigned i) const { return sets[0].inputs[i]; }

  /// Runs the reference on all data sets, and keeps its outputs here and in
  /// `cacheFile`.
  llvm::Error computeReference(const CandidateSpec &reference,
                               llvm::StringRef cacheFile);
  /// Reads outputs that computeReference() has written, perhaps in a worker
  /// that has died since.
  llvm::Error loadReference(llvm::StringRef cacheFile);

  /// Runs a candidate on all data sets; on the first alone if that takes longer
  /// than `hopelessNs` (0: never), for there is no use in such a candidate.
  llvm::Expected<CheckResult> check(const LoadedKernel &kernel,
                                    const CallSpec &call, pto_runtime *runtime,
                                    double hopelessNs = 0) const;

  /// Compares outputs (mixed set) that a timed run left; `outputs` are in the
  /// order of the raw arguments, null for inputs.
  CheckResult judge(llvm::ArrayRef<const char *> outputs,
                    unsigned set = 0) const;

private:
  struct Set {
    DataSet kind;
    Placement placement;
    std::vector<GuardedBuffer> inputs; ///< Empty buffers for outputs.
    std::vector<uint64_t> inputHashes;
    std::vector<std::vector<char>> expected; ///< Empty for inputs.
  };
  llvm::Expected<CheckResult> runSet(const LoadedKernel &kernel,
                                     const CallSpec &call, pto_runtime *runtime,
                                     const Set &set,
                                     std::vector<std::vector<char>> *results,
                                     unsigned index) const;

  KernelSignature sig;
  std::vector<Set> sets;
};

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_VERIFY_H
