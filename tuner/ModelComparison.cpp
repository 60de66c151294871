//===- ModelComparison.cpp ------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/ModelComparison.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>

using namespace pto;
using namespace pto::tuner;

/// A tuned model differs from the default one by rounding alone.
static constexpr double kMaxDifference = 1e-3;

static bool haveEqualBytes(llvm::StringRef a, llvm::StringRef b) {
  auto x = llvm::MemoryBuffer::getFile(a), y = llvm::MemoryBuffer::getFile(b);
  return x && y && (*x)->getBuffer() == (*y)->getBuffer();
}

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
    // A new name each time: the runner may have the last one loaded.
    options.output = evaluator.newObject();
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
  bool equal = haveEqualBytes(artifacts[0], artifacts[1]);
  // Where code and weights happen to lie changes times by some percent: each
  // artifact is loaded twice, in the order default, tuned, tuned, default.
  for (int i : {1, 0}) {
    artifacts.push_back(artifacts[i] + ".copy.so");
    if (std::error_code ec =
            llvm::sys::fs::copy_file(artifacts[i], artifacts.back())) {
      comparison.problem = "cannot be copied: " + ec.message();
      return comparison;
    }
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
  std::vector<double> before = (*times)[0].samplesNs;
  llvm::append_range(before, (*times)[3].samplesNs);
  std::vector<double> after = (*times)[1].samplesNs;
  llvm::append_range(after, (*times)[2].samplesNs);
  if (equal) {
    llvm::append_range(before, after);
    after = before;
  }
  comparison.defaultNs = *std::min_element(before.begin(), before.end());
  comparison.tunedNs = *std::min_element(after.begin(), after.end());
  comparison.defaultMedianNs = median(std::move(before));
  comparison.tunedMedianNs = median(std::move(after));
  return comparison;
}
