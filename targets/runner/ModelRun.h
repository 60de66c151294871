//===- ModelRun.h - Whole compiled models, timed in turns -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_MODELRUN_H
#define PTO_TARGETS_RUNNER_MODELRUN_H

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace pto::targets {

struct ModelTimes {
  std::vector<std::vector<double>> samplesNs; ///< One run each, by model.
  /// Largest |difference| of any output from the first model's, over that
  /// output's largest magnitude.
  double difference = 0;
};

/// Runs artifacts of one model (made by pto-compile) on equal seeded inputs, in
/// turns, for about `seconds`. Sizes that an artifact leaves open are 1.
llvm::Expected<ModelTimes>
compareModels(const std::vector<std::string> &artifacts, unsigned threads,
              double seconds, uint64_t seed);

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_MODELRUN_H
