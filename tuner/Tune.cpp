//===- Tune.cpp - The tuning run ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// run(), in call order:
//   addNames         target, kernels and schedules get their rows
//   peak             the machine's roof, once
//   start            per kernel: resume (stored trials), measureDefault,
//                    measureUserScripts, addSeeds (neighbours' winners, steps
//                    from the default)
//   search           Allocation picks a kernel, Strategy proposes a batch,
//                    tryPoints compiles it and judges each candidate
//   confirm          winner against default in turns, then the record
//
// Every trial is committed before the next one starts, so a killed run loses
// at most the batch in flight.
//
//===----------------------------------------------------------------------===//
#include "tuner/Tune.h"
#include "tuner/TextTable.h"
#include <algorithm>
#include <chrono>

using namespace pto;
using namespace pto::tuner;

/// Slower than this multiple of the best: no chance, one sample is enough.
static constexpr double kDropFactor = 2.5;
/// Times that beat the measured roof by more than this are not believed. Twice
/// the roof happens honestly: when its measurement shared the core with another
/// process's hyper-thread.
static constexpr double kRoofMargin = 2.5;
/// How much faster than the default a winner must be when both are timed in
/// turns; less is noise, and the default is what people know.
static constexpr double kWinMargin = 0.99;
/// Seconds that comparing winner and default of one kernel takes, and what it
/// takes more when this run has not compiled them.
static constexpr double kConfirmSeconds = 0.7, kRecompileSeconds = 1.5;
/// How many neighbours' winners are tried.
static constexpr unsigned kNeighbours = 2;

static int64_t unixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

TuningRun::TuningRun(TuneOptions o, Evaluator &evaluator, db::Store *store,
                     Progress &progress)
    : options(std::move(o)), evaluator(evaluator), store(store),
      progress(progress), budget(options.budgetSeconds, options.clock),
      maker(db::Maker::current(evaluator.policy())) {}

/// For searching: what confirming needs at the end is set aside.
double TuningRun::secondsLeft() const {
  double reserve = options.reserveSeconds;
  for (const auto &task : result.tasks)
    if (needsConfirmation(*task))
      reserve += kConfirmSeconds +
                 (task->compiled.count(task->best->trial) &&
                          task->compiled.count(task->byDefault->trial)
                      ? 0
                      : kRecompileSeconds);
  // A budget that is mostly reserve would measure nothing.
  reserve = std::min(reserve, 0.3 * budget.total());
  return std::max(0.0, budget.remaining() - reserve);
}

llvm::Expected<TuneResult> TuningRun::run(std::vector<TaskSpec> specs) {
  for (TaskSpec &spec : specs) {
    db::Key key;
    key.kernelHash = spec.kernel.hash;
    key.targetFingerprint = options.target.fingerprint;
    key.threads = options.threads;
    key.dtypePolicy = options.dtypePolicy;
    result.tasks.push_back(
        std::make_unique<TuneTask>(std::move(spec), std::move(key)));
  }
  // The heaviest first: a short budget is spent where it matters.
  llvm::sort(result.tasks, [](const auto &a, const auto &b) {
    auto weight = [](const TuneTask &t) {
      return t.spec.calls * double(std::max(t.spec.flops, t.spec.bytes));
    };
    double wa = weight(*a), wb = weight(*b);
    return wa != wb ? wa > wb : a->key.kernelHash < b->key.kernelHash;
  });
  if (llvm::Error error = addNames())
    return std::move(error);
  if (llvm::Error error = measurePeak())
    return std::move(error);
  for (auto &task : result.tasks)
    if (llvm::Error error = start(*task))
      return std::move(error);
  if (llvm::Error error = search())
    return std::move(error);
  // What gains most comes first: time may run out.
  std::vector<TuneTask *> order;
  for (auto &task : result.tasks)
    order.push_back(task.get());
  auto gain = [](const TuneTask *t) {
    return t->best && t->byDefault
               ? t->spec.calls * (t->byDefault->bestNs - t->best->bestNs)
               : 0;
  };
  llvm::sort(order, [&](const TuneTask *a, const TuneTask *b) {
    double x = gain(a), y = gain(b);
    return x != y ? x > y : a->key.kernelHash < b->key.kernelHash;
  });
  for (TuneTask *task : order)
    if (llvm::Error error = confirm(*task))
      return std::move(error);
  if (!stopping())
    if (llvm::Error error = measurePeak())
      return std::move(error);
  progress.finish();
  result.seconds = budget.elapsed();
  result.stopped = stopping();
  return std::move(result);
}

/// Other load lowers what is measured, never raises it: the highest counts.
llvm::Error TuningRun::measurePeak() {
  progress.phase("measuring the machine's peak", secondsLeft());
  auto peak = evaluator.peak();
  if (!peak)
    return peak.takeError();
  Peak &best = result.peak;
  best.gflops = std::max(best.gflops, peak->gflops);
  best.gflopsSingle = std::max(best.gflopsSingle, peak->gflopsSingle);
  best.gbytes = std::max(best.gbytes, peak->gbytes);
  if (!peak->isa.empty())
    best.isa = peak->isa;
  return llvm::Error::success();
}

llvm::Error TuningRun::addNames() {
  if (!store)
    return llvm::Error::success();
  if (auto id = store->addTarget(options.target); !id)
    return id.takeError();
  for (auto &task : result.tasks) {
    db::Kernel kernel;
    kernel.hash = task->spec.kernel.hash;
    kernel.name = task->spec.kernel.name;
    kernel.op = task->spec.op;
    kernel.flops = task->spec.flops;
    kernel.bytes = task->spec.bytes;
    kernel.features = task->spec.features;
    kernel.ir = task->spec.kernel.ir;
    if (auto id = store->addKernel(kernel); !id)
      return id.takeError();
    for (auto [i, branch] : llvm::enumerate(task->spec.branches))
      if (auto id = store->addSchedule(
              {task->scheduleHashes[i], branch.name, branch.text});
          !id)
        return id.takeError();
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Starting a kernel
//===----------------------------------------------------------------------===//

llvm::Error TuningRun::start(TuneTask &task) {
  search::StrategyOptions o;
  o.seed = options.seed ^ std::hash<std::string>()(task.key.kernelHash);
  o.expectedTrials = options.maxTrials
                         ? options.maxTrials
                         : uint64_t(4 * budget.total() / result.tasks.size());
  auto strategy = search::makeStrategy(options.strategy, task.space, o);
  if (!strategy)
    return strategy.takeError();
  task.strategy = std::move(*strategy);
  if (llvm::Error error = resume(task))
    return error;
  if (stopping() || secondsLeft() <= 0)
    return llvm::Error::success();
  if (llvm::Error error = measureDefault(task))
    return error;
  if (!task.unusable.empty())
    return llvm::Error::success();
  if (llvm::Error error = measureUserScripts(task))
    return error;
  return addSeeds(task);
}

/// What a trial taught, be it new or stored.
void TuningRun::learn(TuneTask &task, const search::Point &point,
                      const db::Trial &trial) {
  bool ok = trial.outcome == db::Outcome::Ok;
  task.strategy->observe(point, ok ? std::optional<double>(trial.bestNs)
                                   : std::nullopt);
  if (ok && (!task.best || trial.bestNs < task.best->bestNs))
    task.best = Measured{point, trial.bestNs, trial.id};
}

llvm::Error TuningRun::resume(TuneTask &task) {
  if (!store)
    return llvm::Error::success();
  db::TrialFilter filter;
  filter.kernelHash = task.key.kernelHash;
  filter.targetFingerprint = task.key.targetFingerprint;
  filter.threads = task.key.threads;
  filter.dtypePolicy = task.key.dtypePolicy;
  auto trials = store->trials(filter);
  if (!trials)
    return trials.takeError();
  for (const db::Trial &trial : *trials) {
    if (trial.maker.llvm != maker.llvm || trial.maker.pto != maker.pto ||
        trial.maker.policy != maker.policy)
      continue;
    auto branch = llvm::find(task.scheduleHashes, trial.scheduleHash);
    if (branch == task.scheduleHashes.end())
      continue; // A script that is not given this time.
    if (trial.purpose == db::Purpose::Confirm) {
      task.compared.insert(trial.scheduleHash + trial.knobs);
      continue;
    }
    auto point =
        task.space.fromJson(branch - task.scheduleHashes.begin(), trial.knobs);
    if (!point) {
      llvm::consumeError(point.takeError()); // Its knobs have changed since.
      continue;
    }
    ++task.resumed;
    learn(task, *point, trial);
  }
  return llvm::Error::success();
}

/// Like the compiler: the first schedule that works with its own values.
llvm::Error TuningRun::measureDefault(TuneTask &task) {
  for (unsigned b = 0; b < task.spec.branches.size(); ++b) {
    if (task.spec.branches[b].fromUser)
      continue;
    search::Point point = task.space.defaultPoint(b);
    if (task.space.refusal(point))
      continue;
    auto found = findTrial(task, point);
    if (!found)
      return found.takeError();
    const std::optional<db::Trial> &known = *found;
    if (known && known->outcome == db::Outcome::Ok) {
      task.byDefault = Measured{point, known->bestNs, known->id};
      return llvm::Error::success();
    }
    if (known)
      continue;
    if (llvm::Error error = tryPoints(task, {point}, db::Purpose::Default))
      return error;
    if (!task.unusable.empty() || stopping())
      return llvm::Error::success();
    if (task.byDefault)
      return llvm::Error::success();
  }
  return llvm::Error::success();
}

/// Whatever the limits are: the user wants to know what becomes of them.
llvm::Error TuningRun::measureUserScripts(TuneTask &task) {
  std::vector<search::Point> points;
  for (unsigned b = 0; b < task.spec.branches.size(); ++b) {
    if (!task.spec.branches[b].fromUser)
      continue;
    search::Point point = task.space.defaultPoint(b);
    auto known = findTrial(task, point);
    if (!known)
      return known.takeError();
    if (!*known)
      points.push_back(std::move(point));
  }
  if (points.empty())
    return llvm::Error::success();
  return tryPoints(task, points, db::Purpose::Search);
}

llvm::Expected<std::optional<db::Trial>>
TuningRun::findTrial(TuneTask &task, const search::Point &point) {
  if (!store)
    return std::nullopt;
  return store->findTrial(task.key, task.scheduleHashes[point.branch],
                          task.space.toJson(point), maker);
}

llvm::Error TuningRun::addSeeds(TuneTask &task) {
  std::vector<search::Point> seeds;
  if (store) {
    db::Kernel kernel;
    kernel.hash = task.key.kernelHash;
    kernel.op = task.spec.op;
    kernel.features = task.spec.features;
    auto near = store->nearest(kernel, task.key, kNeighbours);
    if (!near)
      return near.takeError();
    for (const db::Near &n : *near) {
      auto branch = llvm::find(task.scheduleHashes, n.record.scheduleHash);
      if (branch == task.scheduleHashes.end())
        continue;
      auto point = task.space.adapt(branch - task.scheduleHashes.begin(),
                                    n.record.knobs);
      if (point)
        seeds.push_back(std::move(*point));
      else
        llvm::consumeError(point.takeError());
    }
  }
  // Other schedules' own values, but for the last resort of each kernel.
  for (unsigned b = 0; b + 1 < task.spec.branches.size(); ++b)
    if (!task.spec.branches[b].fromUser)
      seeds.push_back(task.space.defaultPoint(b));
  // The default with one knob changed by a step: the defaults are good guesses,
  // so what is better is near more often than not.
  if (task.byDefault) {
    const search::Point &start = task.byDefault->point;
    llvm::ArrayRef<search::Knob> knobs =
        task.space.getBranches()[start.branch].knobs;
    for (auto [i, knob] : llvm::enumerate(knobs))
      for (int step : {1, -1}) {
        int64_t choice = int64_t(start.choices[i]) + step;
        if (choice < 0 || choice >= int64_t(knob.options.size()))
          continue;
        search::Point neighbour = start;
        neighbour.choices[i] = unsigned(choice);
        seeds.push_back(std::move(neighbour));
      }
  }
  task.strategy->addSeeds(seeds);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

llvm::Error TuningRun::prepare(TuneTask &task) {
  if (task.prepared || !task.unusable.empty())
    return llvm::Error::success();
  progress.phase(task.spec.kernel.name + ": running the reference",
                 secondsLeft());
  auto reference = evaluator.prepare(task.spec.kernel);
  if (!reference)
    return reference.takeError();
  if (reference->cancelled)
    return llvm::Error::success();
  if (reference->outcome != db::Outcome::Ok) {
    task.unusable = "its unscheduled lowering failed (" +
                    db::toString(reference->outcome).str() +
                    "): " + reference->message;
    progress.note("warning: kernel " + task.spec.kernel.name +
                  " is not tuned: " + task.unusable);
    return llvm::Error::success();
  }
  task.prepared = true;
  return llvm::Error::success();
}

llvm::Error TuningRun::tryPoints(TuneTask &task,
                                 llvm::ArrayRef<search::Point> points,
                                 db::Purpose purpose) {
  if (llvm::Error error = prepare(task))
    return error;
  if (!task.prepared)
    return llvm::Error::success();
  std::vector<CandidateRequest> requests;
  for (const search::Point &point : points)
    requests.push_back(task.request(point));
  int64_t started = unixMs();
  std::vector<CompileResult> compiled(points.size());
  if (llvm::Error error = evaluator.compile(
          task.spec.kernel, requests,
          [&](size_t i, CompileResult r) { compiled[i] = std::move(r); }))
    return error;
  for (auto [i, point] : llvm::enumerate(points)) {
    if (compiled[i].cancelled || stopping())
      continue; // Not tried: the next run does.
    if (llvm::Error error =
            judge(task, point, std::move(compiled[i]), purpose, started))
      return error;
  }
  return llvm::Error::success();
}

bool TuningRun::isImplausible(const TuneTask &task, double ns) const {
  double roof =
      kRoofMargin *
      std::max(result.peak.gflops, result.peak.gflopsSingle * options.threads);
  return roof > 0 && task.spec.flops > 0 && task.spec.flops / ns > roof;
}

llvm::Error TuningRun::judge(TuneTask &task, const search::Point &point,
                             CompileResult candidate, db::Purpose purpose,
                             int64_t startedMs) {
  db::Trial trial;
  trial.key = task.key;
  trial.scheduleHash = task.scheduleHashes[point.branch];
  trial.knobs = task.space.toJson(point);
  trial.purpose = purpose;
  trial.maker = maker;
  trial.startedMs = startedMs;
  trial.compileMs = candidate.compileMs;
  trial.objectHash = candidate.objectHash;
  trial.outcome = candidate.outcome;
  trial.message = candidate.message;

  std::optional<db::Trial> twin;
  if (candidate.outcome == db::Outcome::Ok && store) {
    auto found = store->findObject(task.key, candidate.objectHash, maker);
    if (!found)
      return found.takeError();
    twin = std::move(*found);
  }
  if (twin) { // Equal code was measured before.
    trial.outcome = twin->outcome;
    trial.message = twin->message;
    trial.error = twin->error;
    if (twin->outcome == db::Outcome::Ok)
      trial.setSamples(twin->samplesNs);
  } else if (candidate.outcome == db::Outcome::Ok) {
    double drop = task.best ? kDropFactor * task.best->bestNs : 0;
    auto measured = evaluator.measure(task.spec.kernel, candidate, drop);
    if (!measured)
      return measured.takeError();
    if (measured->cancelled)
      return llvm::Error::success();
    trial.outcome = measured->outcome;
    trial.message = measured->message;
    trial.error = measured->error;
    if (trial.outcome == db::Outcome::Ok) {
      trial.setSamples(measured->samplesNs);
      if (isImplausible(task, trial.bestNs))
        if (llvm::Error error = measurePeak())
          return error;
      if (isImplausible(task, trial.bestNs)) {
        trial.message =
            formatTime(trial.bestNs) + " is below what the measured peak of " +
            std::to_string(int(result.peak.gflopsSingle * options.threads)) +
            " GFLOP/s allows: the computation cannot be complete";
        trial.outcome = db::Outcome::WrongResult;
        trial.bestNs = trial.medianNs = 0;
        trial.samplesNs.clear();
      }
    }
  }
  if (store) {
    auto id = store->insertTrial(trial);
    if (!id)
      return id.takeError();
    trial.id = *id;
  } else {
    trial.id = -int64_t(task.trials) - 1; // Unique within the run.
  }
  ++task.trials;
  ++result.outcomes[trial.outcome];
  learn(task, point, trial);
  if (trial.outcome == db::Outcome::Ok) {
    if (purpose == db::Purpose::Default)
      task.byDefault = Measured{point, trial.bestNs, trial.id};
    bool leads = task.best->trial == trial.id;
    if (leads || purpose == db::Purpose::Default) {
      // Kept for the confirmation; a former leader is not needed any more.
      for (auto it = task.compiled.begin(); it != task.compiled.end();)
        it = task.byDefault && it->first == task.byDefault->trial
                 ? std::next(it)
                 : task.compiled.erase(it);
      task.compiled[trial.id] = candidate;
    }
    // A run that is killed leaves its best so far for the compiler.
    if (leads && store)
      if (llvm::Error error = putRecord(
              task, *task.best, candidate.text, trial.bestNs,
              task.byDefault ? std::optional<double>(task.byDefault->bestNs)
                             : std::nullopt,
              /*replace=*/false))
        return error;
  }
  progress.trial(task, point, trial, result.peak, secondsLeft());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

llvm::Error TuningRun::search() {
  search::Allocation allocation;
  std::vector<TuneTask *> tasks;
  for (auto &task : result.tasks) {
    if (!task->unusable.empty())
      continue;
    double bound =
        result.peak.gflops > 0 ? task->spec.flops / result.peak.gflops : 0;
    allocation.addTask(
        task->spec.calls,
        task->byDefault ? task->byDefault->bestNs : task->best->bestNs, bound);
    tasks.push_back(task.get());
    // What a former run found out counts as its slice.
    if (task->resumed)
      allocation.report(tasks.size() - 1,
                        {task->resumed, 0.2 * task->resumed,
                         task->best ? task->best->bestNs : 0, false});
  }
  while (!stopping() && secondsLeft() > 0) {
    std::optional<unsigned> next = allocation.next();
    if (!next)
      break;
    TuneTask &task = *tasks[*next];
    uint64_t count = options.batch;
    if (options.maxTrials)
      count = std::min(count, options.maxTrials -
                                  std::min(task.searched, options.maxTrials));
    std::vector<search::Point> points;
    if (count)
      points = task.strategy->propose(count);
    double start = budget.elapsed();
    uint64_t before = task.trials;
    task.searched += points.size();
    if (!points.empty())
      if (llvm::Error error = tryPoints(task, points, db::Purpose::Search))
        return error;
    search::SliceResult slice;
    slice.trials = task.trials - before;
    slice.seconds = budget.elapsed() - start;
    slice.bestNs = task.best ? task.best->bestNs : 0;
    slice.exhausted = points.empty() || !task.unusable.empty();
    allocation.report(*next, slice);
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Winners
//===----------------------------------------------------------------------===//

llvm::Error TuningRun::putRecord(TuneTask &task, const Measured &winner,
                                 const std::string &text, double timeNs,
                                 std::optional<double> defaultNs,
                                 bool replace) {
  db::Record record;
  record.key = task.key;
  record.trial = winner.trial;
  record.scheduleHash = task.scheduleHashes[winner.point.branch];
  record.knobs = task.space.toJson(winner.point);
  record.text = text;
  record.timeNs = timeNs;
  record.defaultNs = defaultNs;
  record.maker = maker;
  auto stored = store->putRecord(record, replace ? db::Store::Put::Replace
                                                 : db::Store::Put::IfBetter);
  return stored ? llvm::Error::success() : stored.takeError();
}

bool TuningRun::wasCompared(const TuneTask &task) const {
  return task.compared.count(task.scheduleHashes[task.best->point.branch] +
                             task.space.toJson(task.best->point));
}

bool TuningRun::needsConfirmation(const TuneTask &task) const {
  return task.best && task.byDefault &&
         !(task.best->point == task.byDefault->point) && !wasCompared(task);
}

llvm::Expected<CompileResult> TuningRun::compileOne(TuneTask &task,
                                                    const search::Point &p) {
  CompileResult result;
  if (llvm::Error error =
          evaluator.compile(task.spec.kernel, {task.request(p)},
                            [&](size_t, CompileResult r) { result = r; }))
    return std::move(error);
  return result;
}

llvm::Error TuningRun::revert(TuneTask &task, llvm::StringRef why) {
  if (!task.byDefault)
    return llvm::Error::success();
  auto compiled = compileOne(task, task.byDefault->point);
  if (!compiled)
    return compiled.takeError();
  if (compiled->cancelled || compiled->outcome != db::Outcome::Ok)
    return llvm::Error::success();
  task.best = task.byDefault;
  task.tunedNs = task.defaultNs;
  task.note = why.str();
  if (!store)
    return llvm::Error::success();
  return putRecord(task, *task.best, compiled->text, task.tunedNs,
                   task.defaultNs, /*replace=*/true);
}

llvm::Error TuningRun::confirm(TuneTask &task) {
  if (!task.best)
    return llvm::Error::success();
  task.tunedNs = task.best->bestNs;
  task.defaultNs = task.byDefault ? task.byDefault->bestNs : 0;
  if (task.byDefault && store && wasCompared(task)) {
    // By a former run, and nothing better was found since.
    auto known = store->getRecord(task.key, maker);
    if (!known)
      return known.takeError();
    auto isRecords = [&](const Measured &m) {
      return known->record->trial == m.trial;
    };
    if (known->record && known->record->defaultNs &&
        (isRecords(*task.best) || isRecords(*task.byDefault))) {
      if (isRecords(*task.byDefault))
        task.best = task.byDefault;
      task.tunedNs = known->record->timeNs;
      task.defaultNs = *known->record->defaultNs;
      task.confirmed = true;
      return llvm::Error::success();
    }
  }
  // In a hurry, or nothing to compare: the search's figures stand.
  if (stopping() || !needsConfirmation(task))
    return llvm::Error::success();
  // Too little to be more than noise, or no time left to find out.
  bool tiny = task.best->bestNs >= kWinMargin * task.byDefault->bestNs;
  if (tiny || budget.remaining() <
                  std::min(options.reserveSeconds, 0.2 * budget.total()))
    return revert(task, tiny ? "the default is as fast"
                             : "no time was left to confirm the winner");
  if (llvm::Error error = prepare(task))
    return error;
  if (!task.prepared)
    return llvm::Error::success();
  progress.phase(task.spec.kernel.name + ": confirming the winner",
                 budget.remaining());
  CompileResult rivals[2];
  const Measured *points[2] = {&*task.byDefault, &*task.best};
  for (int i = 0; i < 2; ++i) {
    auto kept = task.compiled.find(points[i]->trial);
    if (kept != task.compiled.end()) {
      rivals[i] = kept->second;
      continue;
    }
    auto again = compileOne(task, points[i]->point);
    if (!again)
      return again.takeError();
    rivals[i] = std::move(*again);
    if (rivals[i].cancelled || rivals[i].outcome != db::Outcome::Ok)
      return llvm::Error::success();
  }
  auto times = evaluator.compare(task.spec.kernel, {&rivals[0], &rivals[1]});
  if (!times)
    return times.takeError();
  for (const MeasureResult &m : *times)
    if (m.cancelled || m.outcome != db::Outcome::Ok || m.samplesNs.empty())
      return llvm::Error::success();

  db::Trial trials[2];
  for (int i = 0; i < 2; ++i) {
    db::Trial &t = trials[i];
    t.key = task.key;
    t.scheduleHash = task.scheduleHashes[points[i]->point.branch];
    t.knobs = task.space.toJson(points[i]->point);
    t.purpose = db::Purpose::Confirm;
    t.maker = maker;
    t.objectHash = rivals[i].objectHash;
    t.compileMs = rivals[i].compileMs;
    t.setSamples((*times)[i].samplesNs);
    if (!store)
      continue;
    auto id = store->insertTrial(t);
    if (!id)
      return id.takeError();
    t.id = *id;
  }
  task.confirmed = true;
  task.defaultNs = trials[0].bestNs;
  bool wins = trials[1].bestNs < kWinMargin * trials[0].bestNs;
  int winner = wins ? 1 : 0;
  task.tunedNs = trials[winner].bestNs;
  if (!wins)
    task.note = "the default is as fast when timed in turns";
  Measured final = *points[winner];
  task.best = final;
  if (store)
    // The search's trial stays the record's: a confirmation times, it does not
    // choose. Its figures replace the ones taken while searching.
    return putRecord(task, final, rivals[winner].text, task.tunedNs,
                     task.defaultNs, /*replace=*/true);
  return llvm::Error::success();
}
