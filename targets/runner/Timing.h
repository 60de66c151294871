//===- Timing.h - How long a candidate takes, as the model finds it -*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Inside a model, a kernel finds its weights where the rest of the model has
// left them: out of the near caches. Timing therefore rotates through copies of
// weights and of activations whose sizes are those of the whole model.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_TIMING_H
#define PTO_TARGETS_RUNNER_TIMING_H

#include "targets/runner/Clock.h"
#include "targets/runner/Verify.h"

namespace pto::targets {

struct TimingPolicy {
  int64_t coldWeightBytes = 32 << 20; ///< Of weights in rotation.
  int64_t coldDataBytes = 4 << 20;    ///< Of inputs and outputs in rotation.
  /// Calls per sample are chosen for it. Short: on a busy machine, the least
  /// time comes from a sample that nothing interrupted.
  double minSampleNs = 2e5;
  /// No further sample after it; up to kPatience times as long while the
  /// samples of a candidate that may win are not stable.
  double maxTotalNs = 150e6;
  static constexpr double kPatience = 4;
  unsigned samples = 15;
  unsigned minSamples = 3; ///< Even where maxTotalNs forbids.
  /// A candidate slower than this in its first sample cannot win: no more are
  /// taken. 0: never.
  double dropAboveNs = 0;

  llvm::json::Object toJson() const;
  static TimingPolicy fromJson(const llvm::json::Object &o);
};

/// On a busy machine most samples are interrupted; the least one can be relied
/// on once two others come close.
bool isStable(const std::vector<double> &samples);

/// Copies of one tensor, used in turn.
class Copies {
public:
  Copies() = default;
  /// Copies `source` as often as `coldBytes` asks for. `stagger` shifts the
  /// start, lest all tensors begin at the same offset in a page.
  Copies(const char *source, size_t bytes, int64_t coldBytes, unsigned stagger);
  ~Copies();
  Copies(Copies &&other) noexcept;
  Copies &operator=(Copies &&other) noexcept;

  unsigned count() const { return n; }
  char *at(uint64_t turn) const { return first + turn % n * stride; }
  explicit operator bool() const { return region != nullptr; }

private:
  char *region = nullptr;
  char *first = nullptr;
  size_t mapped = 0, stride = 0;
  unsigned n = 0;
};

/// The raw arguments' copies, shared by all candidates of a kernel.
class TimingData {
public:
  TimingData(const KernelData &data, const TimingPolicy &policy);

  /// The copies of raw argument `i`, made on first use.
  llvm::Expected<Copies *> argument(unsigned i);

  const KernelData &data;
  TimingPolicy policy;

private:
  std::vector<Copies> copies;
  int64_t weightBytes = 0, dataBytes = 0; ///< Of one copy of everything.
};

/// One candidate, ready to be timed.
class TimedKernel {
public:
  static llvm::Expected<TimedKernel> prepare(const LoadedKernel &kernel,
                                             const CallSpec &call,
                                             TimingData &data,
                                             pto_runtime *runtime);

  /// Calls the kernel `calls` times; ns per call.
  double sample(uint64_t calls);
  /// Warms up and finds how many calls make a sample.
  uint64_t calibrate();
  /// calibrate, then samples by the policy.
  std::vector<double> measure();
  /// Poisons one copy of the outputs, runs once more, and judges the result.
  CheckResult checkAgain();

private:
  TimedKernel(const LoadedKernel &kernel, TimingData &data,
              pto_runtime *runtime)
      : kernel(kernel), data(&data), runtime(runtime) {}
  void setArguments(uint64_t turn);

  const LoadedKernel &kernel;
  TimingData *data;
  pto_runtime *runtime;
  std::vector<Copies> packed;     ///< Of prepack's results.
  std::vector<Copies *> operands; ///< In call order.
  std::vector<int> rawIndex;      ///< Of each operand; -1 for packed ones.
  std::vector<void *> arguments;
  uint64_t turn = 0;
};

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_TIMING_H
