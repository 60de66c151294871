//===- ModelComparison.cpp ------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/ModelComparison.h"
#include <algorithm>

using namespace pto;
using namespace pto::tuner;

/// A tuned model differs from the default one by rounding alone.
static constexpr double kMaxDifference = 1e-3;

static double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

ModelComparison tuner::compareWholeModel(const CompileOptions &model,
                                         llvm::StringRef db,
                                         WorkerEvaluator &evaluator,
                                         double seconds) {
  ModelComparison comparison;
  std::vector<std::string> artifacts;
  for (bool tuned : {false, true}) {
    CompileOptions options = model;
    options.output =
        (evaluator.folder() + (tuned ? "/tuned.so" : "/default.so")).str();
    options.name = "model";
    options.db = tuned ? db.str() : "none";
    auto report = compileModel(options);
    if (!report) {
      comparison.problem =
          "cannot be compiled: " + toString(report.takeError());
      return comparison;
    }
    artifacts.push_back(options.output);
  }
  auto times = evaluator.compareModels(artifacts, seconds);
  if (!times) {
    comparison.problem = toString(times.takeError());
    return comparison;
  }
  for (const MeasureResult &m : *times)
    if (m.outcome != db::Outcome::Ok || m.samplesNs.empty()) {
      comparison.problem = m.cancelled ? "stopped" : m.message;
      return comparison;
    }
  if ((*times)[0].error > kMaxDifference) {
    comparison.problem =
        "the tuned model's outputs differ from the default's by " +
        std::to_string((*times)[0].error) + " of the largest magnitude";
    return comparison;
  }
  auto least = [](const std::vector<double> &v) {
    return *std::min_element(v.begin(), v.end());
  };
  comparison.defaultNs = least((*times)[0].samplesNs);
  comparison.tunedNs = least((*times)[1].samplesNs);
  comparison.defaultMedianNs = median((*times)[0].samplesNs);
  comparison.tunedMedianNs = median((*times)[1].samplesNs);
  return comparison;
}
