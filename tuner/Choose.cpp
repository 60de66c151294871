//===- Choose.cpp - Which schedule a kernel gets --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/Choose.h"
#include "db/Store.h"
#include "mlir/Parser/Parser.h"
#include "schedules/engine/Engine.h"
#include "tuner/ToolError.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace pto::tuner {
namespace {

llvm::Error asToolError(llvm::Error error) {
  std::string message;
  int code = db::describe(std::move(error), message);
  return toolError(static_cast<ExitCode>(code), message);
}

bool isMissingFile(llvm::Error &error) {
  bool missing = false;
  llvm::visitErrors(error, [&](const llvm::ErrorInfoBase &info) {
    missing |= info.isA<db::StoreError>() &&
               static_cast<const db::StoreError &>(info).getKind() ==
                   db::StoreError::Kind::Missing;
  });
  return missing;
}

/// Beyond this distance (doublings of sizes, summed) a kernel's own defaults
/// are the better guess.
constexpr double kNear = 3;

llvm::Error chooseNearest(db::Store &store, const db::Key &key,
                          KernelJob &job) {
  if (job.op.empty())
    return llvm::Error::success();
  db::Kernel kernel;
  kernel.hash = job.hash;
  kernel.op = job.op;
  kernel.features = job.features;
  auto near = store.nearest(kernel, key, 4);
  if (!near)
    return near.takeError();
  for (const db::Near &n : *near) {
    if (n.distance > kNear || n.record.key.threads != key.threads)
      continue;
    auto schedule = store.getSchedule(n.record.scheduleHash);
    if (!schedule)
      return schedule.takeError();
    if (!*schedule)
      continue;
    job.choice.source = "nearest";
    job.choice.name = (*schedule)->name;
    job.choice.knobs = n.record.knobs;
    return llvm::Error::success();
  }
  return llvm::Error::success();
}

/// Values from different sources may ask for more registers than there are:
/// fewer rows then.
void limitRows(const schedules::Space &space, schedules::KnobValues &values) {
  std::vector<size_t> point;
  std::optional<size_t> rows;
  for (auto [i, knob] : llvm::enumerate(space.knobs)) {
    auto at = llvm::find(knob.options, values[i].second);
    if (at == knob.options.end())
      return;
    point.push_back(at - knob.options.begin());
    if (knob.name == "rows")
      rows = i;
  }
  while (rows && point[*rows] > 0 && !space.refuse(point).empty())
    values[*rows].second = space.knobs[*rows].options[--point[*rows]];
}

/// The neighbour's values where they are options for this kernel, else this
/// kernel's defaults.
schedules::KnobValues adapt(const schedules::Space &space,
                            llvm::StringRef knobs) {
  auto parsed = llvm::json::parse(knobs);
  const llvm::json::Object *values = nullptr;
  if (parsed)
    values = parsed->getAsObject();
  else
    llvm::consumeError(parsed.takeError());
  schedules::KnobValues result = space.defaults();
  for (size_t i = 0; values && i < space.knobs.size(); ++i) {
    const llvm::json::Value *value = values->get(space.knobs[i].name);
    if (!value)
      continue;
    std::string text;
    if (auto number = value->getAsInteger())
      text = std::to_string(*number);
    else if (auto string = value->getAsString())
      text = string->str();
    if (llvm::is_contained(space.knobs[i].options, text))
      result[i].second = text;
  }
  limitRows(space, result);
  return result;
}

/// Applies the nearest record's schedule; false, with a reason, if it does not
/// fit.
llvm::Expected<bool> applyNearest(OwningOpRef<ModuleOp> &module,
                                  const targets::Target &target,
                                  unsigned threads, ScheduleChoice &choice) {
  auto spaces = schedules::findSpaces(*module, target, threads);
  if (!spaces)
    return spaces.takeError();
  for (const schedules::Space &space : *spaces) {
    if (space.schedule != choice.name)
      continue;
    auto text = schedules::fillKnobs(module->getContext(), space.text,
                                     adapt(space, choice.knobs), choice.name);
    if (!text)
      return text.takeError();
    OwningOpRef<ModuleOp> copy = module->clone();
    schedules::Applied applied =
        schedules::applySchedule(*copy, *text, choice.name);
    if (applied.outcome == "ok") {
      module = std::move(copy);
      choice.text = *text;
      return true;
    }
  }
  return false;
}

} // namespace

llvm::Error chooseRecords(llvm::StringRef path, const targets::Target &target,
                          unsigned threads, std::vector<KernelJob> &jobs,
                          std::string &notice) {
  auto setReason = [&](const std::string &reason) {
    for (KernelJob &job : jobs)
      job.choice.reason = reason;
  };
  if (path == "none") {
    setReason("no database (--db=none)");
    return llvm::Error::success();
  }
  auto store = db::Store::open(path, db::Store::Mode::ReadOnly);
  if (!store) {
    llvm::Error error = store.takeError();
    if (!isMissingFile(error))
      return asToolError(std::move(error));
    llvm::consumeError(std::move(error));
    setReason(("no database " + path).str());
    notice = ("no database " + path + ": default schedules; pto-tune makes one")
                 .str();
    return llvm::Error::success();
  }

  db::Maker maker = db::Maker::current("");
  for (KernelJob &job : jobs) {
    db::Key key;
    key.kernelHash = job.hash;
    key.targetFingerprint = target.fingerprint();
    key.threads = threads;
    auto lookup = (*store)->getRecord(key, maker);
    if (!lookup)
      return asToolError(lookup.takeError());
    if (!lookup->record) {
      job.choice.reason = lookup->reason;
      if (llvm::Error error = chooseNearest(**store, key, job))
        return asToolError(std::move(error));
      continue;
    }
    job.choice.source = "record";
    job.choice.text = lookup->record->text;
    job.choice.name = lookup->record->scheduleHash;
    auto schedule = (*store)->getSchedule(lookup->record->scheduleHash);
    if (!schedule)
      return asToolError(schedule.takeError());
    if (*schedule)
      job.choice.name = (*schedule)->name;
  }
  return llvm::Error::success();
}

llvm::Error chooseUserSchedules(llvm::ArrayRef<UserSchedule> schedules,
                                MLIRContext &context,
                                const targets::Target &target, unsigned threads,
                                std::vector<KernelJob> &jobs) {
  for (const UserSchedule &user : schedules) {
    bool used = false;
    std::string names;
    for (KernelJob &job : jobs) {
      names += "\n  " + job.symbol;
      if (!llvm::StringRef(job.symbol).starts_with(user.kernel))
        continue;
      auto kernel = parseSourceString<ModuleOp>(job.text, &context);
      if (!kernel)
        return toolError(BadInput, job.symbol + ": its kernel cannot be read");
      auto spaces =
          schedules::findSpaces(*kernel, target, threads, {user.file});
      if (!spaces)
        return toolError(BadInput, llvm::toString(spaces.takeError()));
      for (const schedules::Space &space : *spaces) {
        if (space.schedule != user.file)
          continue;
        auto text = schedules::fillKnobs(&context, space.text, space.defaults(),
                                         user.file);
        if (!text)
          return toolError(BadInput, llvm::toString(text.takeError()));
        job.choice = {"user", user.file, *text, "", ""};
        used = true;
      }
    }
    if (!used)
      return toolError(BadInput,
                       "--schedule: " + user.file +
                           " fits none of the model's kernels:" + names);
  }
  return llvm::Error::success();
}

llvm::Error applyChoice(OwningOpRef<ModuleOp> &module,
                        const targets::Target &target, unsigned threads,
                        ScheduleChoice &choice) {
  if (choice.source == "user") {
    schedules::Applied applied =
        schedules::applySchedule(*module, choice.text, choice.name);
    if (applied.outcome == "ok")
      return llvm::Error::success();
    return toolError(BadInput, "--schedule: " + choice.name +
                                   " does not apply (" + applied.outcome +
                                   "): " + applied.message);
  }
  if (choice.source == "record") {
    OwningOpRef<ModuleOp> copy = module->clone();
    schedules::Applied applied =
        schedules::applySchedule(*copy, choice.text, choice.name);
    if (applied.outcome == "ok") {
      module = std::move(copy);
      return llvm::Error::success();
    }
    choice.reason = "its record does not apply any more (" + applied.outcome +
                    "): " + applied.message;
  }
  if (choice.source == "nearest") {
    auto applied = applyNearest(module, target, threads, choice);
    if (!applied)
      return applied.takeError();
    if (*applied)
      return llvm::Error::success();
  }
  auto scheduled = schedules::scheduleByDefault(*module, target, threads);
  if (!scheduled)
    return scheduled.takeError();
  module = std::move(scheduled->module);
  choice.source = scheduled->schedule.empty() ? "none" : "default";
  choice.name = scheduled->schedule;
  choice.text = scheduled->text;
  return llvm::Error::success();
}

} // namespace pto::tuner
