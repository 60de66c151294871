//===- Data.h - Inputs that show faults, and the judgement ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Inputs hold no zeros (padding with the wrong value would not show), regions
// that are negative throughout (a maximum padded with zero would not show), and
// are made from a seed. Outputs are poisoned before each run, so that what was
// not written shows.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_DATA_H
#define PTO_TARGETS_RUNNER_DATA_H

#include "targets/runner/Signature.h"

namespace pto::targets {

enum class DataSet {
  Mixed,    ///< Both signs, with whole regions of one sign.
  Negative, ///< Nothing above zero.
  Positive, ///< For logarithms and roots.
};

/// Fills `data` for an argument.
void fillInput(char *data, const ArgumentSpec &argument, DataSet set,
               uint64_t seed);

/// Fills an output with what no kernel computes: a NaN of our own, or a pattern
/// for integers that depends on `seed` (two runs show what was not written).
void poison(char *data, const TensorSpec &tensor, uint64_t seed);

/// How far an output may be from the reference, relative to the larger of the
/// element's own and the output's root-mean-square magnitude. Grows with the
/// rounding errors of a sum of `reductionLength` terms; 0 for integers.
double tolerance(DType type, int64_t reductionLength);

struct Verdict {
  bool equal = true;
  double worst = 0;    ///< Largest error, in the measure of tolerance().
  std::string message; ///< Where and how it differs, for people.
};

/// NaN equals NaN (the poison does not), infinities must agree, integers are
/// exact.
Verdict compareOutput(const char *actual, const char *expected,
                      const TensorSpec &tensor, double tolerance);

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_DATA_H
