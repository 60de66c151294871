//===- ModelComparison.cpp ------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/ModelComparison.h"
#include "lowering/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "schedules/engine/Engine.h"
#include <algorithm>

using namespace mlir;
using namespace pto;
using namespace pto::tuner;

/// A tuned model differs from the default one by rounding alone.
static constexpr double kMaxDifference = 1e-3;

/// The winner's script if there is one, else the default schedule.
static llvm::Error applyChoice(OwningOpRef<ModuleOp> &module,
                               const targets::Target &target, unsigned threads,
                               ScheduleChoice &choice) {
  if (!choice.text.empty()) {
    schedules::Applied applied =
        schedules::applySchedule(*module, choice.text, choice.name);
    if (applied.outcome == "ok")
      return llvm::Error::success();
    return llvm::createStringError("%s: %s", choice.name.c_str(),
                                   applied.message.c_str());
  }
  auto scheduled = schedules::scheduleByDefault(*module, target, threads);
  if (!scheduled)
    return scheduled.takeError();
  module = std::move(scheduled->module);
  choice.source = "default";
  choice.name = scheduled->schedule;
  choice.text = scheduled->text;
  return llvm::Error::success();
}

/// Gives each kernel its winner, with the knobs filled in.
static llvm::Error chooseWinners(ModuleOp module, std::vector<KernelJob> &jobs,
                                 const TuneResult &result) {
  for (KernelJob &job : jobs) {
    auto kernel = module.lookupSymbol<func::FuncOp>(job.symbol);
    if (!kernel)
      continue;
    std::string hash = lowering::kernelHash(kernel);
    for (const auto &task : result.tasks) {
      if (task->key.kernelHash != hash || !task->best)
        continue;
      CandidateRequest winner = task->request(task->best->point);
      schedules::KnobValues values(winner.knobs.begin(), winner.knobs.end());
      auto text = schedules::fillKnobs(module.getContext(), winner.scheduleText,
                                       values, winner.scheduleName);
      if (!text)
        return text.takeError();
      job.choice.source = "record";
      job.choice.name = winner.scheduleName;
      job.choice.text = std::move(*text);
    }
  }
  return llvm::Error::success();
}

static double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

ModelComparison tuner::compareWholeModel(const CompileOptions &model,
                                         const TuneResult &result,
                                         WorkerEvaluator &evaluator,
                                         double seconds) {
  ModelComparison comparison;
  std::vector<std::string> artifacts;
  for (bool tuned : {false, true}) {
    CompileOptions options = model;
    options.output =
        (evaluator.folder() + (tuned ? "/tuned.so" : "/default.so")).str();
    options.name = "model";
    options.schedule = applyChoice;
    options.lookUp = nullptr;
    if (tuned)
      options.lookUp = [&](ModuleOp module, std::vector<KernelJob> &jobs) {
        return chooseWinners(module, jobs, result);
      };
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
