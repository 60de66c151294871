//===- TuneReport.h - What a tuning run has brought -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_TUNEREPORT_H
#define PTO_TUNER_TUNEREPORT_H

#include "tuner/Tune.h"
#include "llvm/Support/JSON.h"

namespace pto::tuner {

/// The whole model with default schedules and with the winners, in turns.
struct ModelComparison {
  double defaultNs = 0, tunedNs = 0;             ///< Least.
  double defaultMedianNs = 0, tunedMedianNs = 0; ///< Median.
  std::string problem; ///< Why there are no figures; empty if there are.
};

struct ReportFacts {
  std::string model, target, fingerprint;
  unsigned threads = 1;
  std::string dtypePolicy = "exact";
};

/// The table for people.
void printReport(llvm::raw_ostream &os, const TuneResult &result,
                 const ReportFacts &facts, const ModelComparison &model);

/// The same for machines (contracts: pto-tune's JSON).
llvm::json::Object reportJson(const TuneResult &result,
                              const ReportFacts &facts,
                              const ModelComparison &model);

} // namespace pto::tuner

#endif // PTO_TUNER_TUNEREPORT_H
