//===- TuneReport.cpp -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/TuneReport.h"
#include "search/Budget.h"
#include "tuner/TextTable.h"
#include "llvm/Support/FormatVariadic.h"

using namespace pto;
using namespace pto::tuner;
namespace json = llvm::json;

namespace {
/// Sums over all kernels, with the calls that the model makes.
struct Sums {
  double before = 0, after = 0;
};
} // namespace

/// Time to reckon with when the default did not work.
static double beforeNs(const TuneTask &task) {
  return task.defaultNs > 0 ? task.defaultNs : task.tunedNs;
}

static Sums sumsOf(const TuneResult &result) {
  Sums sums;
  for (const auto &task : result.tasks) {
    sums.before += task->spec.calls * beforeNs(*task);
    sums.after += task->spec.calls * task->tunedNs;
  }
  return sums;
}

static double gflops(const TuneTask &task) {
  return task.tunedNs > 0 ? task.spec.flops / task.tunedNs : 0;
}

static double percentOfPeak(const TuneTask &task, const Peak &peak) {
  return peak.gflops > 0 ? 100 * gflops(task) / peak.gflops : 0;
}

void pto::tuner::printReport(llvm::raw_ostream &os, const TuneResult &result,
                             const ReportFacts &facts,
                             const ModelComparison &model) {
  Sums sums = sumsOf(result);
  TextTable table({"kernel", ">calls", ">share", ">default", ">tuned",
                   ">speed-up", ">GFLOP/s", ">% of peak", "evidence",
                   "schedule"});
  std::vector<const TuneTask *> tasks;
  for (const auto &task : result.tasks)
    tasks.push_back(task.get());
  llvm::sort(tasks, [](const TuneTask *a, const TuneTask *b) {
    double x = a->spec.calls * beforeNs(*a), y = b->spec.calls * beforeNs(*b);
    return x != y ? x > y : a->key.kernelHash < b->key.kernelHash;
  });
  for (const TuneTask *task : tasks) {
    std::vector<std::string> row{task->spec.kernel.name,
                                 llvm::formatv("{0}", task->spec.calls).str()};
    if (task->tunedNs <= 0) {
      row.insert(row.end(), {"-", "-", "-", "-", "-", "-", "-",
                             task->unusable.empty() ? "not measured"
                                                    : "cannot be measured"});
      table.add(std::move(row));
      continue;
    }
    row.push_back(llvm::formatv("{0:f1}%", 100 * task->spec.calls *
                                               beforeNs(*task) / sums.before));
    row.push_back(task->defaultNs > 0 ? formatTime(task->defaultNs) : "-");
    row.push_back(formatTime(task->tunedNs));
    row.push_back(llvm::formatv("{0:f2}x", beforeNs(*task) / task->tunedNs));
    row.push_back(llvm::formatv("{0:f1}", gflops(*task)));
    row.push_back(llvm::formatv("{0:f0}", percentOfPeak(*task, result.peak)));
    row.push_back(db::toString(task->evidence).str());
    row.push_back(task->best ? task->describe(task->best->point) : "");
    table.add(std::move(row));
  }
  table.print(os);

  os << llvm::formatv("\npeak (measured): {0:f0} GFLOP/s with {1} thread{2} "
                      "({3}), {4:f1} GB/s\n",
                      result.peak.gflops, facts.threads,
                      facts.threads == 1 ? "" : "s", result.peak.isa,
                      result.peak.gbytes);
  if (sums.after > 0)
    os << llvm::formatv("sum of the kernels (measured): {0} -> {1}, {2:f2}x\n",
                        formatTime(sums.before), formatTime(sums.after),
                        sums.before / sums.after);
  if (model.tunedNs > 0)
    os << llvm::formatv("whole model (measured): {0} -> {1}, {2:f2}x\n",
                        formatTime(model.defaultNs), formatTime(model.tunedNs),
                        model.defaultNs / model.tunedNs);
  else if (!model.problem.empty())
    os << "whole model: " << model.problem << "\n";
  os << "trials:";
  uint64_t all = 0;
  for (auto [outcome, count] : result.outcomes)
    all += count;
  os << " " << all << " new";
  for (auto [outcome, count] : result.outcomes)
    if (count)
      os << ", " << count << " " << db::toString(outcome);
  uint64_t resumed = 0;
  for (const auto &task : result.tasks)
    resumed += task->resumed;
  if (resumed)
    os << "; " << resumed << " from earlier runs";
  os << "\ntime: " << search::formatDuration(result.seconds)
     << (result.stopped ? " (stopped early)" : "") << "\n";
}

json::Object pto::tuner::reportJson(const TuneResult &result,
                                    const ReportFacts &facts,
                                    const ModelComparison &model) {
  Sums sums = sumsOf(result);
  json::Array kernels;
  for (const auto &task : result.tasks) {
    json::Object k{{"name", task->spec.kernel.name},
                   {"key", task->key.kernelHash},
                   {"calls", task->spec.calls},
                   {"share", sums.before > 0 ? task->spec.calls *
                                                   beforeNs(*task) / sums.before
                                             : 0},
                   {"flops", task->spec.flops},
                   {"trials", int64_t(task->trials)},
                   {"trials_before", int64_t(task->resumed)}};
    if (task->tunedNs > 0) {
      k["tuned_ms"] = task->tunedNs / 1e6;
      k["gflops"] = gflops(*task);
      k["percent_of_peak"] = percentOfPeak(*task, result.peak);
      k["evidence"] = db::toString(task->evidence).str();
      k["confirmed"] = task->confirmed;
    }
    if (task->defaultNs > 0)
      k["default_ms"] = task->defaultNs / 1e6;
    if (task->best) {
      k["schedule"] = task->spec.branches[task->best->point.branch].name;
      json::Object knobs;
      for (auto &[name, value] : task->request(task->best->point).knobs)
        knobs[name] = value;
      k["knobs"] = std::move(knobs);
    }
    if (!task->unusable.empty())
      k["unusable"] = json::fixUTF8(task->unusable);
    if (!task->note.empty())
      k["note"] = task->note;
    kernels.push_back(std::move(k));
  }
  json::Object outcomes;
  for (db::Outcome outcome : db::allOutcomes()) {
    auto it = result.outcomes.find(outcome);
    outcomes[db::toString(outcome)] =
        int64_t(it == result.outcomes.end() ? 0 : it->second);
  }
  json::Object whole{{"sum_default_ms", sums.before / 1e6},
                     {"sum_tuned_ms", sums.after / 1e6},
                     {"evidence", "measured"}};
  if (model.tunedNs > 0) {
    whole["default_ms"] = model.defaultNs / 1e6;
    whole["tuned_ms"] = model.tunedNs / 1e6;
    whole["default_median_ms"] = model.defaultMedianNs / 1e6;
    whole["tuned_median_ms"] = model.tunedMedianNs / 1e6;
  } else if (!model.problem.empty()) {
    whole["problem"] = json::fixUTF8(model.problem);
  }
  return json::Object{{"model", facts.model},
                      {"target", facts.target},
                      {"fingerprint", facts.fingerprint},
                      {"threads", facts.threads},
                      {"dtype_policy", facts.dtypePolicy},
                      {"peak", json::Object{{"gflops", result.peak.gflops},
                                            {"gbytes", result.peak.gbytes},
                                            {"isa", result.peak.isa},
                                            {"evidence", "measured"}}},
                      {"kernels", std::move(kernels)},
                      {"whole_model", std::move(whole)},
                      {"trials", std::move(outcomes)},
                      {"seconds", result.seconds},
                      {"stopped", result.stopped}};
}
