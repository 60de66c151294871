//===- ModelTasks.h - What of a model is to be tuned ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reads a model, forms its kernels, and lists the distinct ones with the
// schedules that fit. The one part of pto-tune that holds MLIR in its own
// process; the user's scripts are read here only after a worker has survived
// that.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_MODELTASKS_H
#define PTO_TUNER_MODELTASKS_H

#include "targets/Target.h"
#include "tuner/TuneTask.h"
#include "tuner/UserSchedule.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace pto::tuner {

struct ModelTasks {
  std::string model; ///< For people.
  std::vector<TaskSpec> tasks;
  int64_t weightBytes = 0; ///< Of all weights of the model.
  int64_t dataBytes = 0;   ///< Of what is alive at once, roughly.
  std::vector<std::string> warnings;
};

/// Has a worker read `file` for `kernel`; not ok: it cannot be read, and the
/// kernel's trial will say why.
using CheckScript = llvm::function_ref<llvm::Expected<MeasureResult>(
    const KernelSource &kernel, llvm::StringRef file)>;

/// The names of the model's inputs, in order.
llvm::Expected<std::vector<std::string>> inputNames(llvm::StringRef path);

/// One set of shapes; call again for the next. Kernels that several sets share
/// count once, with the calls of all.
llvm::Error
collectTasks(llvm::StringRef path,
             const llvm::StringMap<llvm::SmallVector<int64_t>> &shapes,
             const targets::Target &target, unsigned threads,
             llvm::ArrayRef<UserSchedule> userSchedules, CheckScript check,
             ModelTasks &result);

} // namespace pto::tuner

#endif // PTO_TUNER_MODELTASKS_H
