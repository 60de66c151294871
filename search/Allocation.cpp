//===- Allocation.cpp - Which kernel gets the next minute -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "search/Allocation.h"

#include <algorithm>
#include <cmath>

namespace pto::search {
namespace {

/// Seconds over which past gains are forgotten by half: about ten slices.
constexpr double halfLifeSeconds = 20;
/// Of what a kernel could still gain, the part hoped for when as much time
/// again is spent on it. Ansor (OSDI'20 §6) hopes for all of it.
constexpr double hope = 0.25;
/// Without a bound, a kernel may still become twice as fast.
constexpr double unknownBound = 0.5;

/// Time per call to reckon with.
double timeOf(const TaskStatus &task) {
  return task.bestNs > 0 ? task.bestNs : task.defaultNs;
}

} // namespace

unsigned Allocation::addTask(double calls, double defaultNs, double boundNs) {
  TaskStatus task;
  task.calls = calls;
  task.defaultNs = defaultNs;
  task.bestNs = task.referenceNs = defaultNs;
  task.boundNs = boundNs;
  tasks.push_back(task);
  return tasks.size() - 1;
}

void Allocation::report(unsigned index, const SliceResult &slice) {
  TaskStatus &task = tasks[index];
  task.trials += slice.trials;
  task.seconds += slice.seconds;
  task.exhausted |= slice.exhausted;
  double gain = 0; // relative
  if (slice.bestNs > 0) {
    bool first = task.bestNs <= 0;
    task.bestNs = first ? slice.bestNs : std::min(task.bestNs, slice.bestNs);
    // Small gains count once they have added up.
    if (!first)
      gain = 1 - task.bestNs / task.referenceNs;
    if (first || gain >= options.minGain) {
      task.trialsAtGain = task.trials;
      task.referenceNs = task.bestNs;
    } else {
      gain = 0;
    }
  }
  if (slice.seconds > 0) {
    double keep = std::exp2(-slice.seconds / halfLifeSeconds);
    task.rate = keep * task.rate + (1 - keep) * gain / slice.seconds;
  }
}

bool Allocation::isDone(unsigned index) const {
  const TaskStatus &task = tasks[index];
  if (task.exhausted)
    return true;
  if (task.trials < options.floorTrials)
    return false;
  uint64_t since = task.trials - task.trialsAtGain;
  return since >= std::max(options.patience, task.trialsAtGain);
}

double Allocation::expectedGain(const TaskStatus &task) const {
  double time = timeOf(task);
  double bound =
      task.boundNs > 0 ? std::min(task.boundNs, time) : unknownBound * time;
  double room = time - bound;
  double recent = std::min(task.rate * time, room);
  // The more was spent, the less the next second changes; even less when what
  // was spent of late brought nothing.
  double fresh = double(options.floorTrials + task.trialsAtGain) /
                 (options.floorTrials + task.trials);
  double possible = hope * room * fresh / std::max(task.seconds, 1.0);
  return task.calls * std::max(recent, possible);
}

std::optional<unsigned> Allocation::next() const {
  // The floor first, the greatest share first: a budget that is too small for
  // all is spent where it matters.
  std::optional<unsigned> best;
  double most = -1;
  for (bool floor : {true, false}) {
    for (unsigned i = 0; i < tasks.size(); ++i) {
      const TaskStatus &task = tasks[i];
      if (isDone(i) || (floor && task.trials >= options.floorTrials))
        continue;
      double score = floor ? task.calls * timeOf(task) : expectedGain(task);
      if (score > most) {
        most = score;
        best = i;
      }
    }
    if (best)
      return best;
  }
  return std::nullopt;
}

double Allocation::modelNs() const {
  double sum = 0;
  for (const TaskStatus &task : tasks)
    sum += task.calls * timeOf(task);
  return sum;
}

double Allocation::share(unsigned index) const {
  double all = modelNs();
  return all > 0 ? tasks[index].calls * timeOf(tasks[index]) / all : 0;
}

} // namespace pto::search
