//===- Choose.h - Which schedule a kernel gets ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The rule of production builds: the record with exactly the kernel's key if
// there is one that applies, else the schedule and knobs of the nearest record
// for the same target and threads, as far as they are options for this kernel,
// else the default schedule, else none. Each step down leaves a reason.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_CHOOSE_H
#define PTO_TUNER_CHOOSE_H

#include "tuner/KernelCompiler.h"
#include "tuner/UserSchedule.h"

namespace pto::tuner {

/// Fills in each job's choice from the database at `path` ("none": no
/// database). A missing file means no records; `notice` then says so.
llvm::Error chooseRecords(llvm::StringRef path, const targets::Target &target,
                          unsigned threads, std::vector<KernelJob> &jobs,
                          std::string &notice);

/// Overrides the choices of the kernels that a script of the user's is for (its
/// KERNEL, its @match); open knobs get their defaults. A script that is for no
/// kernel is an error, and so is one that cannot be read.
llvm::Error chooseUserSchedules(llvm::ArrayRef<UserSchedule> schedules,
                                mlir::MLIRContext &context,
                                const targets::Target &target, unsigned threads,
                                std::vector<KernelJob> &jobs);

/// Applies the choice's record, else the default schedule (ScheduleKernel). A
/// script of the user's applies, or it is an error.
llvm::Error applyChoice(mlir::OwningOpRef<mlir::ModuleOp> &module,
                        const targets::Target &target, unsigned threads,
                        ScheduleChoice &choice);

} // namespace pto::tuner

#endif // PTO_TUNER_CHOOSE_H
