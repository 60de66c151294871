//===- TuneTask.cpp -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/TuneTask.h"

using namespace pto;
using namespace pto::tuner;

static std::string valueText(const search::Value &value) {
  if (const int64_t *n = std::get_if<int64_t>(&value))
    return std::to_string(*n);
  return std::get<std::string>(value);
}

TuneTask::TuneTask(TaskSpec s, db::Key k)
    : spec(std::move(s)), key(std::move(k)) {
  for (const BranchSpec &b : spec.branches) {
    search::Branch branch;
    branch.name = b.name;
    branch.knobs = b.knobs;
    if (b.refuse)
      // Knobs are unique by name, so choices can be read back by name.
      branch.constraint =
          [&b](const search::Assignment &a) -> std::optional<std::string> {
        std::vector<size_t> choices;
        for (const search::Knob &knob : b.knobs) {
          const search::Value *value = a.find(knob.name);
          choices.push_back(value ? llvm::find(knob.options, *value) -
                                        knob.options.begin()
                                  : knob.defaultChoice);
        }
        std::string reason = b.refuse(choices);
        if (reason.empty())
          return std::nullopt;
        return reason;
      };
    space.addBranch(std::move(branch));
    scheduleHashes.push_back(db::hashText(b.text));
  }
}

CandidateRequest TuneTask::request(const search::Point &point) const {
  const BranchSpec &branch = spec.branches[point.branch];
  CandidateRequest r;
  r.scheduleName = branch.name;
  r.scheduleText = branch.text;
  for (auto [i, knob] : llvm::enumerate(branch.knobs))
    r.knobs.emplace_back(knob.name, valueText(space.valueOf(point, i)));
  return r;
}

std::string TuneTask::describe(const search::Point &point) const {
  std::string text = spec.branches[point.branch].name;
  for (auto &[name, value] : request(point).knobs)
    text += " " + name + "=" + value;
  return text;
}
