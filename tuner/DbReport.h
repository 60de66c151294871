//===- DbReport.h - What pto-db prints of a database ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// list, show and best: one function gathers the answer as JSON, another prints
// that JSON for people, so that the two never differ.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_DBREPORT_H
#define PTO_TUNER_DBREPORT_H

#include "db/Store.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace pto::tuner {

/// All kernels, targets, schedules and regions, with counts of trials.
llvm::Expected<llvm::json::Object> gatherList(db::Store &store);
void printList(const llvm::json::Object &list, llvm::raw_ostream &os);

/// One kernel and its trials: the ok ones by time, then the others as made.
llvm::Expected<llvm::json::Object> gatherShow(db::Store &store,
                                              const db::Kernel &kernel);
void printShow(const llvm::json::Object &show, llvm::raw_ostream &os);

/// All records.
llvm::Expected<llvm::json::Object> gatherBest(db::Store &store);
void printBest(const llvm::json::Object &best, llvm::raw_ostream &os);

} // namespace pto::tuner

#endif // PTO_TUNER_DBREPORT_H
