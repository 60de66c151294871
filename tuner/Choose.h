//===- Choose.h - Which schedule a kernel gets ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The rule of production builds: the record with exactly the kernel's key if
// there is one that applies, else the default schedule, else none. Each step
// down leaves a reason.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_CHOOSE_H
#define PTO_TUNER_CHOOSE_H

#include "tuner/KernelCompiler.h"

namespace pto::tuner {

/// Fills in each job's choice from the database at `path` ("none": no
/// database). A missing file means no records; `notice` then says so.
llvm::Error chooseRecords(llvm::StringRef path, const targets::Target &target,
                          unsigned threads, std::vector<KernelJob> &jobs,
                          std::string &notice);

/// Applies the choice's record, else the default schedule (ScheduleKernel).
llvm::Error applyChoice(mlir::OwningOpRef<mlir::ModuleOp> &module,
                        const targets::Target &target, unsigned threads,
                        ScheduleChoice &choice);

} // namespace pto::tuner

#endif // PTO_TUNER_CHOOSE_H
