//===- DbReport.cpp - What pto-db prints of a database --------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/DbReport.h"
#include "tuner/TextTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include <map>
#include <tuple>

using namespace llvm;
using namespace pto::db;

namespace pto::tuner {
namespace {

/// A database text as JSON; text that is none (an edited row) as a string.
json::Value parsed(StringRef text) {
  Expected<json::Value> value = json::parse(text);
  if (value)
    return std::move(*value);
  consumeError(value.takeError());
  return json::fixUTF8(text);
}

std::string printed(const json::Value *value) {
  if (!value)
    return "";
  if (std::optional<StringRef> text = value->getAsString())
    return text->str();
  std::string result;
  raw_string_ostream(result) << *value;
  return result;
}

std::string cell(const json::Object &row, StringRef name) {
  return printed(row.get(name));
}

std::string timeCell(const json::Object &row, StringRef name) {
  std::optional<double> ns = row.getNumber(name);
  return ns ? formatTime(*ns) : "-";
}

std::string fixed(double value, int decimals) {
  std::string text;
  raw_string_ostream(text) << format("%.*f", decimals, value);
  return text;
}

/// {"tile_m":8,"order":"mn"} as tile_m=8 order=mn.
std::string knobCell(const json::Object &row) {
  const json::Object *knobs = row.getObject("knobs");
  if (!knobs)
    return cell(row, "knobs");
  std::map<std::string, std::string> sorted;
  for (const auto &[name, value] : *knobs)
    sorted[StringRef(name).str()] = printed(&value);
  std::string text;
  for (const auto &[name, value] : sorted)
    text += (text.empty() ? "" : " ") + name + "=" + value;
  return text.empty() ? "-" : text;
}

const json::Array &rowsOf(const json::Object &object, StringRef name) {
  static const json::Array none;
  const json::Array *rows = object.getArray(name);
  return rows ? *rows : none;
}

using Names = StringMap<std::string>;

Expected<Names> scheduleNames(Store &store) {
  Expected<std::vector<Schedule>> schedules = store.schedules();
  if (!schedules)
    return schedules.takeError();
  Names names;
  for (const Schedule &schedule : *schedules)
    names[schedule.hash] = schedule.name;
  return names;
}

void putTimes(json::Object &row, int64_t flops, double ns) {
  if (flops > 0)
    row["gflops"] = flops / ns; // flop/ns is Gflop/s
}

json::Object trialRow(const Trial &trial, const Kernel &kernel,
                      const Names &schedules) {
  json::Object row{{"id", trial.id},
                   {"purpose", toString(trial.purpose)},
                   {"outcome", toString(trial.outcome)},
                   {"evidence", toString(trial.evidence)},
                   {"schedule", schedules.lookup(trial.scheduleHash)},
                   {"schedule_hash", trial.scheduleHash},
                   {"knobs", parsed(trial.knobs)},
                   {"threads", trial.key.threads},
                   {"dtype_policy", trial.key.dtypePolicy},
                   {"target", trial.key.targetFingerprint},
                   {"compile_ms", trial.compileMs},
                   {"message", trial.message},
                   {"llvm", trial.maker.llvm},
                   {"pto", trial.maker.pto},
                   {"policy", trial.maker.policy},
                   {"started_ms", trial.startedMs}};
  if (trial.error)
    row["error"] = *trial.error;
  if (trial.outcome == Outcome::Ok) {
    row["best_ns"] = trial.bestNs;
    row["median_ns"] = trial.medianNs;
    row["samples_ns"] = json::Array(trial.samplesNs);
    putTimes(row, kernel.flops, trial.bestNs);
  }
  return row;
}

json::Object kernelRow(const Kernel &kernel) {
  return json::Object{
      {"hash", kernel.hash},   {"name", kernel.name},
      {"op", kernel.op},       {"flops", kernel.flops},
      {"bytes", kernel.bytes}, {"features", parsed(kernel.features)}};
}

} // namespace

//===----------------------------------------------------------------------===//
// list
//===----------------------------------------------------------------------===//

Expected<json::Object> gatherList(Store &store) {
  Expected<std::vector<Kernel>> kernels = store.kernels();
  if (!kernels)
    return kernels.takeError();
  Expected<std::vector<Trial>> trials = store.trials();
  if (!trials)
    return trials.takeError();
  Expected<std::vector<Record>> records = store.records();
  if (!records)
    return records.takeError();
  Expected<std::vector<TargetInfo>> targets = store.targets();
  if (!targets)
    return targets.takeError();
  Expected<std::vector<Schedule>> schedules = store.schedules();
  if (!schedules)
    return schedules.takeError();
  Expected<std::vector<Region>> regions = store.regions();
  if (!regions)
    return regions.takeError();

  StringMap<std::pair<int64_t, int64_t>> ofKernel; // all, ok
  StringMap<int64_t> ofSchedule, ofTarget, recordsOf;
  std::map<Outcome, int64_t> byOutcome;
  for (const Trial &trial : *trials) {
    auto &[all, ok] = ofKernel[trial.key.kernelHash];
    ++all;
    ok += trial.outcome == Outcome::Ok;
    ++ofSchedule[trial.scheduleHash];
    ++ofTarget[trial.key.targetFingerprint];
    ++byOutcome[trial.outcome];
  }
  for (const Record &record : *records)
    ++recordsOf[record.key.kernelHash];

  json::Array kernelRows, targetRows, scheduleRows, regionRows;
  for (const Kernel &kernel : *kernels) {
    json::Object row = kernelRow(kernel);
    auto [all, ok] = ofKernel.lookup(kernel.hash);
    row["trials"] = all;
    row["ok"] = ok;
    row["records"] = recordsOf.lookup(kernel.hash);
    kernelRows.push_back(std::move(row));
  }
  for (const TargetInfo &target : *targets)
    targetRows.push_back(
        json::Object{{"name", target.name},
                     {"fingerprint", target.fingerprint},
                     {"facts", parsed(target.facts)},
                     {"trials", ofTarget.lookup(target.fingerprint)}});
  for (const Schedule &schedule : *schedules)
    scheduleRows.push_back(
        json::Object{{"name", schedule.name},
                     {"hash", schedule.hash},
                     {"trials", ofSchedule.lookup(schedule.hash)}});
  for (const Region &region : *regions) {
    json::Array variants;
    for (const Variant &variant : region.variants)
      variants.push_back(json::Object{
          {"name", variant.name}, {"kernels", json::Array(variant.kernels)}});
    regionRows.push_back(
        json::Object{{"name", region.name},
                     {"hash", region.hash},
                     {"variants", std::move(variants)},
                     {"records", recordsOf.lookup(region.hash)}});
  }
  json::Object outcomes;
  for (auto [outcome, count] : byOutcome)
    outcomes[toString(outcome)] = count;
  return json::Object{{"kernels", std::move(kernelRows)},
                      {"targets", std::move(targetRows)},
                      {"schedules", std::move(scheduleRows)},
                      {"regions", std::move(regionRows)},
                      {"trials_by_outcome", std::move(outcomes)},
                      {"records", int64_t(records->size())}};
}

void printList(const json::Object &list, raw_ostream &os) {
  TextTable kernels(
      {"kernel", "hash", "op", ">Mflop", ">trials", ">ok", ">records"});
  for (const json::Value &value : rowsOf(list, "kernels")) {
    const json::Object &row = *value.getAsObject();
    kernels.add({cell(row, "name"), cell(row, "hash").substr(0, 12),
                 cell(row, "op"),
                 fixed(row.getNumber("flops").value_or(0) / 1e6, 2),
                 cell(row, "trials"), cell(row, "ok"), cell(row, "records")});
  }
  kernels.print(os);
  if (!rowsOf(list, "regions").empty()) {
    TextTable regions({"region", "hash", ">variants", ">records"});
    for (const json::Value &value : rowsOf(list, "regions")) {
      const json::Object &row = *value.getAsObject();
      regions.add({cell(row, "name"), cell(row, "hash").substr(0, 12),
                   std::to_string(rowsOf(row, "variants").size()),
                   cell(row, "records")});
    }
    regions.print(os << '\n');
  }
  TextTable schedules({"schedule", "hash", ">trials"});
  for (const json::Value &value : rowsOf(list, "schedules")) {
    const json::Object &row = *value.getAsObject();
    schedules.add({cell(row, "name"), cell(row, "hash").substr(0, 12),
                   cell(row, "trials")});
  }
  schedules.print(os << '\n');
  TextTable targets({"target", ">trials", "fingerprint"});
  for (const json::Value &value : rowsOf(list, "targets")) {
    const json::Object &row = *value.getAsObject();
    targets.add(
        {cell(row, "name"), cell(row, "trials"), cell(row, "fingerprint")});
  }
  targets.print(os << '\n');
  os << "\ntrials:";
  const json::Object *outcomes = list.getObject("trials_by_outcome");
  for (Outcome outcome : allOutcomes())
    if (const json::Value *count = outcomes->get(toString(outcome)))
      os << ' ' << printed(count) << ' ' << toString(outcome);
  if (outcomes->empty())
    os << " none";
  os << "; records: " << cell(list, "records") << '\n';
}

//===----------------------------------------------------------------------===//
// show
//===----------------------------------------------------------------------===//

Expected<json::Object> gatherShow(Store &store, const Kernel &kernel) {
  TrialFilter filter;
  filter.kernelHash = kernel.hash;
  Expected<std::vector<Trial>> trials = store.trials(filter);
  if (!trials)
    return trials.takeError();
  Expected<Names> names = scheduleNames(store);
  if (!names)
    return names.takeError();
  llvm::sort(*trials, [](const Trial &a, const Trial &b) {
    auto rank = [](const Trial &t) {
      bool failed = t.outcome != Outcome::Ok;
      return std::tuple(failed, t.key.targetFingerprint, t.key.threads,
                        failed ? Evidence::Measured : t.evidence, t.bestNs,
                        t.id);
    };
    return rank(a) < rank(b);
  });
  json::Array rows;
  for (const Trial &trial : *trials)
    rows.push_back(trialRow(trial, kernel, *names));
  json::Object show = kernelRow(kernel);
  show["trials"] = std::move(rows);
  return show;
}

void printShow(const json::Object &show, raw_ostream &os) {
  os << "kernel " << cell(show, "name") << " (" << cell(show, "op") << ")\n"
     << "  hash      " << cell(show, "hash") << "\n  flops     "
     << cell(show, "flops") << ", bytes " << cell(show, "bytes")
     << "\n  features  " << cell(show, "features") << "\n\n";
  TextTable table({">trial", "outcome", ">best", ">median", "evidence",
                   ">GFLOP/s", ">threads", ">compile", "purpose", "schedule",
                   "knobs", "message"});
  for (const json::Value &value : rowsOf(show, "trials")) {
    const json::Object &row = *value.getAsObject();
    std::optional<double> gflops = row.getNumber("gflops");
    bool ok = row.getString("outcome") == toString(Outcome::Ok);
    StringRef message = row.getString("message").value_or("");
    table.add({cell(row, "id"), cell(row, "outcome"), timeCell(row, "best_ns"),
               timeCell(row, "median_ns"), ok ? cell(row, "evidence") : "-",
               gflops ? fixed(*gflops, 1) : "-", cell(row, "threads"),
               fixed(row.getNumber("compile_ms").value_or(0), 0) + " ms",
               cell(row, "purpose"), cell(row, "schedule"), knobCell(row),
               message.split('\n').first.take_front(100).str()});
  }
  table.print(os);
}

//===----------------------------------------------------------------------===//
// best
//===----------------------------------------------------------------------===//

Expected<json::Object> gatherBest(Store &store) {
  Expected<std::vector<Record>> records = store.records();
  if (!records)
    return records.takeError();
  Expected<std::vector<Kernel>> kernels = store.kernels();
  if (!kernels)
    return kernels.takeError();
  Expected<std::vector<Region>> regions = store.regions();
  if (!regions)
    return regions.takeError();
  Expected<Names> schedules = scheduleNames(store);
  if (!schedules)
    return schedules.takeError();
  StringMap<const Kernel *> kernelOf;
  for (const Kernel &kernel : *kernels)
    kernelOf[kernel.hash] = &kernel;
  StringMap<std::string> regionNames;
  for (const Region &region : *regions)
    regionNames[region.hash] = region.name;

  json::Array rows;
  for (const Record &record : *records) {
    const Kernel *kernel = kernelOf.lookup(record.key.kernelHash);
    json::Object row{
        {"kernel",
         kernel ? kernel->name : regionNames.lookup(record.key.kernelHash)},
        {"hash", record.key.kernelHash},
        {"target", record.key.targetFingerprint},
        {"threads", record.key.threads},
        {"dtype_policy", record.key.dtypePolicy},
        {"evidence", toString(record.evidence)},
        {"time_ns", record.timeNs},
        {"llvm", record.maker.llvm},
        {"pto", record.maker.pto},
        {"policy", record.maker.policy},
        {"created_ms", record.createdMs}};
    if (record.defaultNs)
      row["default_ns"] = *record.defaultNs;
    if (record.isRegion) {
      row["variant"] = record.variant;
    } else {
      row["trial"] = record.trial;
      row["schedule"] = schedules->lookup(record.scheduleHash);
      row["schedule_hash"] = record.scheduleHash;
      row["knobs"] = parsed(record.knobs);
    }
    if (kernel)
      putTimes(row, kernel->flops, record.timeNs);
    rows.push_back(std::move(row));
  }
  return json::Object{{"records", std::move(rows)}};
}

void printBest(const json::Object &best, raw_ostream &os) {
  if (rowsOf(best, "records").empty()) {
    os << "no records\n";
    return;
  }
  TextTable table({"kernel", "hash", ">threads", "dtypes", ">time", ">default",
                   ">speed-up", ">GFLOP/s", "evidence", "schedule", "knobs",
                   "made with"});
  for (const json::Value &value : rowsOf(best, "records")) {
    const json::Object &row = *value.getAsObject();
    std::optional<double> gflops = row.getNumber("gflops");
    std::optional<double> was = row.getNumber("default_ns");
    double now = row.getNumber("time_ns").value_or(0);
    bool region = row.get("variant");
    table.add(
        {cell(row, "kernel"), cell(row, "hash").substr(0, 12),
         cell(row, "threads"), cell(row, "dtype_policy"),
         timeCell(row, "time_ns"), timeCell(row, "default_ns"),
         was && now > 0 ? fixed(*was / now, 2) + "x" : "-",
         gflops ? fixed(*gflops, 1) : "-", cell(row, "evidence"),
         region ? "variant " + cell(row, "variant") : cell(row, "schedule"),
         region ? "-" : knobCell(row),
         "pto " + cell(row, "pto") + ", LLVM " + cell(row, "llvm")});
  }
  table.print(os);
}

} // namespace pto::tuner
