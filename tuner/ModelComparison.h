//===- ModelComparison.h - The whole model, before and after ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_MODELCOMPARISON_H
#define PTO_TUNER_MODELCOMPARISON_H

#include "tuner/Compile.h"
#include "tuner/TuneReport.h"
#include "tuner/WorkerEvaluator.h"

namespace pto::tuner {

/// Compiles the model with default schedules and with the records of the
/// database `db`, and times both in turns in a runner. A failure is told in
/// `problem`: the kernels' results stand without it.
ModelComparison compareWholeModel(const CompileOptions &model,
                                  llvm::StringRef db,
                                  WorkerEvaluator &evaluator, double seconds);

} // namespace pto::tuner

#endif // PTO_TUNER_MODELCOMPARISON_H
