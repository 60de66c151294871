//===- pto-tune.cpp - Searches schedules for a model's kernels ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Options, signals and messages. The work: ModelTasks.h (what to tune), Tune.h
// (the run), ModelComparison.h (the whole model), TuneReport.h.
//
//===----------------------------------------------------------------------===//
#include "tuner/FileChecks.h"
#include "tuner/ModelComparison.h"
#include "tuner/ModelTasks.h"
#include "tuner/Shapes.h"
#include "tuner/TensorFile.h"
#include "tuner/ToolError.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <csignal>
#include <unistd.h>

using namespace llvm;
using namespace pto;
using namespace pto::tuner;

namespace {

const char *const overview =
    "Searches for the fastest schedules of a model's kernels on this machine, "
    "and stores\nthem in a database that pto-compile reads.\n";

const char *const moreHelp =
    "\nEXAMPLES:\n"
    "  pto-tune model.onnx --budget=10m           # then: pto-compile "
    "model.onnx -o model.so\n"
    "  pto-tune model.onnx --shape x=1x3x224x224  # sizes that the model "
    "leaves open\n"
    "  pto-tune model.onnx --schedule=mine.mlir:conv3x3  # try a script of "
    "your own\n"
    "  pto-tune gemm.mlir --threads=1 --budget=2m\n"
    "  pto-db pto.db list                         # what was found\n"
    "\nThe same command again goes on where the last one stopped (Ctrl-C, "
    "kill, power):\neach trial is stored at once, and none is made twice. "
    "Every candidate is compiled and\nrun in a process of its own, and its "
    "numbers are compared with the unscheduled kernel's.\n"
    "\nA script has a matcher (@match) and a schedule (@__transform_main); "
    "open knobs\n(transform.tune.knob) are searched. One without matcher is "
    "tried on every kernel, or on\nthose whose name begins with KERNEL.\n"
    "\nEXIT STATUS: 0 done; 2 bad usage, model or schedule; 3 the environment "
    "failed (disk,\npermission, workers).\n";

/// Made in main, after libLLVM's own options are out of the way.
struct Options {
  cl::OptionCategory category{"pto-tune options"};
  cl::opt<std::string> model{cl::Positional, cl::Required,
                             cl::desc("MODEL (.onnx, or .mlir with linalg)"),
                             cl::cat(category)};
  cl::opt<std::string> target{
      "target", cl::init("cpu"), cl::value_desc("NAME[,key=value]"),
      cl::cat(category),
      cl::desc("cpu (this machine, the default), or cpu,arch=X with code that "
               "this machine can run")};
  cl::opt<std::string> budget{
      "budget", cl::init("10m"), cl::value_desc("TIME"), cl::cat(category),
      cl::desc("Time for everything: 90s, 10m, 2h (default: 10m)")};
  cl::opt<std::string> db{
      "db", cl::init("pto.db"), cl::value_desc("FILE|none"), cl::cat(category),
      cl::desc("Database, made when missing (default: pto.db)")};
  cl::list<std::string> shapes{
      "shape", cl::value_desc("NAME=AxB"), cl::cat(category),
      cl::desc("Sizes of an input with dynamic dims; repeat for more inputs; "
               "naming one again starts another set, tuned as well")};
  cl::list<std::string> data{
      "data", cl::value_desc("DIR"), cl::cat(category),
      cl::desc("Take the sizes from an ONNX test_data_set folder; repeatable, "
               "each is a set of its own")};
  cl::opt<unsigned> threads{
      "threads", cl::init(0), cl::value_desc("N"), cl::cat(category),
      cl::desc("Threads that a kernel may use (default: physical cores)")};
  cl::opt<uint64_t> seed{"seed", cl::init(0), cl::value_desc("N"),
                         cl::cat(category),
                         cl::desc("Of the search and the inputs (default: 0)")};
  cl::list<std::string> schedules{
      "schedule", cl::value_desc("FILE[:KERNEL]"), cl::cat(category),
      cl::desc("A script of yours, measured beside pto's own; repeatable")};
  cl::opt<uint64_t> trials{
      "trials", cl::init(0), cl::value_desc("N"), cl::cat(category),
      cl::desc("New trials per kernel at most (default: no limit)")};
  cl::opt<std::string> strategy{"strategy", cl::init("evolution"),
                                cl::value_desc("NAME"), cl::cat(category),
                                cl::desc("evolution (the default) or random")};
  cl::opt<std::string> json{"json", cl::value_desc("FILE"), cl::cat(category),
                            cl::desc("Write the report as JSON")};
  cl::extrahelp more{moreHelp};
};

/// The options' values. lld, which runs in this process, resets all cl::opts.
struct Arguments {
  explicit Arguments(const Options &o)
      : model(o.model), target(o.target), budget(o.budget), db(o.db),
        strategy(o.strategy), json(o.json),
        shapes(o.shapes.begin(), o.shapes.end()),
        schedules(o.schedules.begin(), o.schedules.end()),
        data(o.data.begin(), o.data.end()), threads(o.threads), seed(o.seed),
        trials(o.trials) {}
  std::string model, target, budget, db, strategy, json;
  std::vector<std::string> shapes, schedules, data;
  unsigned threads;
  uint64_t seed, trials;
};

/// A tuned model may not be slower than this; less is noise.
constexpr double kSlower = 1.01;
/// Kernels that gain less than this are the first suspects if it is.
constexpr double kSmallGain = 1.05;

volatile std::sig_atomic_t interrupts = 0;

/// The first asks for a clean end. The second ends at once: all finished trials
/// are stored, and workers die with their manager.
void onSignal(int) {
  interrupts = interrupts + 1;
  if (interrupts > 1)
    ::_exit(130);
  const char text[] = "\nstopping: storing what was found (again: at once)\n";
  (void)!::write(2, text, sizeof text - 1);
}

void handleSignals() {
  struct sigaction action = {};
  action.sa_handler = onSignal;
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaction(signal, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

bool stopRequested() { return interrupts > 0; }

/// The shapes of FOLDER/input_J.pb by the model's names.
Expected<ShapeSet> readSizes(StringRef model, StringRef folder) {
  if (!sys::fs::is_directory(folder))
    return toolError(BadInput, "--data: " + folder + ": no such folder");
  auto tensors = readTensorFolder(folder, "input");
  if (!tensors)
    return toolError(BadInput, "--data: " + toString(tensors.takeError()));
  if (tensors->empty())
    return toolError(BadInput, "--data: " + folder + ": no input_0.pb");
  auto names = inputNames(model);
  if (!names)
    return toolError(BadInput, toString(names.takeError()));
  ShapeSet set;
  for (auto [i, tensor] : enumerate(*tensors)) {
    // The data may name its tensors otherwise: then the order counts.
    std::string name = tensor.name;
    if (!is_contained(*names, name)) {
      if (i >= names->size())
        return toolError(BadInput, "--data: " + folder +
                                       " holds more inputs than the model has");
      name = (*names)[i];
    }
    set[name].assign(tensor.shape.begin(), tensor.shape.end());
  }
  return set;
}

/// What ends a run: the store knows its exit codes; all else is a worker that
/// could not do its work (Evaluator.h).
Error runError(Error error) {
  bool ofStore = error.isA<db::StoreError>();
  std::string message;
  int code = db::describe(std::move(error), message);
  return toolError(ofStore ? ExitCode(code) : EnvironmentFailed, message);
}

class Tool {
public:
  explicit Tool(Arguments options) : options(std::move(options)) {}

  Error run() {
    if (Error error = readOptions())
      return error;
    database = options.db;
    if (database != "none")
      if (Error error = openStore())
        return error;
    EvaluatorOptions e;
    e.target = options.target;
    e.isa = target.isa;
    e.threads = threads;
    e.compileJobs = targets::parseTarget("cpu")->cores;
    e.seed = options.seed;
    e.stop = stopRequested;
    auto made = WorkerEvaluator::create(std::move(e));
    if (!made)
      return toolError(EnvironmentFailed, toString(made.takeError()));
    evaluator = std::move(*made);
    // Without a database, one that goes away with the run.
    if (database == "none") {
      database = (evaluator->folder() + "/tune.db").str();
      if (Error error = openStore())
        return error;
    }
    if (Error error = readModel())
      return error;
    return tune();
  }

private:
  Error readOptions() {
    auto seconds = search::parseDuration(options.budget);
    if (!seconds)
      return toolError(BadInput, "--budget: " + toString(seconds.takeError()));
    budget.emplace(*seconds);
    auto parsed = targets::parseTarget(options.target);
    if (!parsed)
      return toolError(BadInput, "--target: " + toString(parsed.takeError()));
    target = std::move(*parsed);
    if (!target.isHost)
      return toolError(BadInput, "--target=" + options.target +
                                     ": this machine cannot run such code, so "
                                     "nothing can be measured\ntune on a "
                                     "machine of that kind, with its database");
    threads = options.threads ? options.threads : target.cores;
    auto sets = parseShapes(options.shapes);
    if (!sets)
      return sets.takeError();
    shapes = std::move(*sets);
    if (!options.data.empty() && !shapes.empty())
      return toolError(BadInput, "--shape and --data both give sizes: use one");
    for (const std::string &text : options.schedules) {
      auto user = parseUserSchedule(text);
      if (!user)
        return user.takeError();
      userSchedules.push_back(std::move(*user));
    }
    if (!is_contained(search::strategyNames(), StringRef(options.strategy)))
      return toolError(BadInput, "--strategy=" + options.strategy +
                                     ": known are " +
                                     join(search::strategyNames(), ", "));
    if (Error error = checkReadable(options.model))
      return error;
    if (!options.json.empty())
      if (Error error = checkWritable(options.json))
        return error;
    for (const std::string &folder : options.data) {
      auto set = readSizes(options.model, folder);
      if (!set)
        return set.takeError();
      shapes.push_back(std::move(*set));
    }
    return Error::success();
  }

  Error openStore() {
    auto opened = db::Store::open(database, db::Store::Mode::Create);
    if (!opened)
      return runError(opened.takeError());
    store = std::move(*opened);
    return Error::success();
  }

  Error readModel() {
    std::vector<ShapeSet> sets = shapes;
    if (sets.empty())
      sets.emplace_back();
    auto check = [&](const KernelSource &kernel, StringRef file) {
      return evaluator->readSchedules(kernel, {file.str()});
    };
    for (const ShapeSet &set : sets)
      if (Error error = collectTasks(options.model, set, target, threads,
                                     userSchedules, check, model))
        return toolError(BadInput, toString(std::move(error)));
    for (const std::string &warning : model.warnings)
      errs() << "pto-tune: warning: " << warning << "\n";
    if (model.tasks.empty() && !stopRequested())
      return toolError(BadInput,
                       options.model + ": has no kernel that can be tuned");
    for (const UserSchedule &user : userSchedules) {
      bool used = any_of(model.tasks, [&](const TaskSpec &t) {
        return any_of(t.branches, [&](const BranchSpec &b) {
          return b.fromUser && b.name == user.file;
        });
      });
      if (used || stopRequested())
        continue;
      std::string names;
      for (const TaskSpec &t : model.tasks)
        names += "\n  " + t.kernel.name;
      return toolError(BadInput,
                       "--schedule: " + user.file +
                           " fits none of the model's kernels:" + names);
    }
    evaluator->setModelSizes(model.weightBytes, model.dataBytes);
    errs() << formatv("pto-tune: {0}: {1} distinct kernels, {2} thread{3}, {4} "
                      "for everything\n",
                      model.model, model.tasks.size(), threads,
                      threads == 1 ? "" : "s",
                      search::formatDuration(budget->total()));
    return Error::success();
  }

  /// Kernels by themselves have no whole model.
  bool isWholeModel() const {
    return model.weightBytes > 0 || model.tasks.size() > 1 ||
           !StringRef(options.model).ends_with(".mlir");
  }

  Error tune() {
    TuneOptions o;
    double whole = isWholeModel() ? 4 + 0.4 * model.tasks.size() : 0;
    o.budgetSeconds = std::max(0.1, budget->remaining());
    o.reserveSeconds = whole;
    o.threads = threads;
    o.seed = options.seed;
    o.maxTrials = options.trials;
    o.strategy = options.strategy;
    o.batch = std::max(4u, 2 * targets::parseTarget("cpu")->cores);
    o.target.fingerprint = target.fingerprint();
    o.target.name = target.name;
    o.target.facts = facts();
    o.stop = stopRequested;
    auto progress = makeConsoleProgress();
    TuningRun run(std::move(o), *evaluator, store.get(), *progress);
    auto result = run.run(std::move(model.tasks));
    if (!result)
      return runError(result.takeError());
    ModelComparison comparison;
    if (isWholeModel()) {
      auto compared = compareModel(run, *result, *progress);
      if (!compared)
        return runError(compared.takeError());
      comparison = std::move(*compared);
    }
    progress->finish();
    result->seconds = budget->elapsed();
    ReportFacts about{model.model, options.target, target.fingerprint(),
                      threads};
    printReport(outs(), *result, about, comparison);
    outs().flush();
    if (options.json.empty())
      return Error::success();
    return writeTextFile(
        options.json,
        formatv("{0:2}\n", json::Value(reportJson(*result, about, comparison)))
            .str());
  }

  /// Kernels alone can mislead. If the model is not faster with its winners,
  /// those that gain little go first, then all of them.
  Expected<ModelComparison> compareModel(TuningRun &run, TuneResult &result,
                                         Progress &progress) {
    ModelComparison comparison;
    std::vector<double> thresholds{HUGE_VAL, kSmallGain};
    while (true) {
      if (stopRequested()) {
        comparison.problem = "not timed: stopped early";
        return comparison;
      }
      progress.phase("timing the whole model", budget->remaining());
      double before = budget->elapsed();
      double seconds = std::clamp(budget->remaining() / 4, 0.3, 1.5);
      comparison =
          compareWholeModel(compileOptions(), database, *evaluator, seconds);
      if (comparison.tunedNs <= kSlower * comparison.defaultNs)
        return comparison;
      unsigned reverted = 0;
      while (!reverted && !thresholds.empty()) {
        auto taken = takeBack(run, result, thresholds.back());
        if (!taken)
          return taken.takeError();
        reverted = *taken;
        thresholds.pop_back();
      }
      if (!reverted)
        return comparison; // Equal code: noise.
      // No time to see whether that was enough: all of them, to be sure.
      bool noTime = budget->remaining() < budget->elapsed() - before;
      if (noTime) {
        auto taken = takeBack(run, result, HUGE_VAL);
        if (!taken)
          return taken.takeError();
        reverted += *taken;
      }
      progress.note(formatv("the model is slower with its winners ({0:f2}x): "
                            "{1} of them taken back",
                            comparison.defaultNs / comparison.tunedNs,
                            reverted));
      if (noTime) {
        comparison.tunedNs = comparison.defaultNs;
        comparison.tunedMedianNs = comparison.defaultMedianNs;
        return comparison;
      }
    }
  }

  /// Makes the default the record of all kernels whose winner gained less than
  /// `gain`; how many they are.
  Expected<unsigned> takeBack(TuningRun &run, TuneResult &result, double gain) {
    unsigned count = 0;
    for (auto &task : result.tasks) {
      if (!task->best || !task->byDefault ||
          task->best->point == task->byDefault->point ||
          task->defaultNs >= gain * task->tunedNs)
        continue;
      if (Error error = run.revert(*task, "slower in the whole model"))
        return std::move(error);
      ++count;
    }
    return count;
  }

  CompileOptions compileOptions() const {
    CompileOptions c;
    c.model = options.model;
    c.target = target;
    c.threads = threads;
    c.pinned = true; // What is measured is what was tuned.
    if (!shapes.empty())
      c.shapes = {shapes.front()};
    return c;
  }

  std::string facts() const {
    std::string text;
    raw_string_ostream(text)
        << json::Value(json::Object{{"isa", target.isa},
                                    {"cpu", target.cpu},
                                    {"model", target.model},
                                    {"cores", int64_t(target.cores)},
                                    {"vector_bits", int64_t(target.vectorBits)},
                                    {"l1_bytes", target.l1Bytes},
                                    {"l2_bytes", target.l2Bytes},
                                    {"l3_bytes", target.l3Bytes}});
    return text;
  }

  const Arguments options;
  targets::Target target;
  unsigned threads = 1;
  std::optional<search::Budget> budget;
  std::vector<ShapeSet> shapes;
  std::vector<UserSchedule> userSchedules;
  // In this order: the evaluator removes its folder last.
  std::unique_ptr<WorkerEvaluator> evaluator;
  std::string database; ///< Its file.
  std::unique_ptr<db::Store> store;
  ModelTasks model;
};

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  handleLimits("pto-tune");
  cl::ResetCommandLineParser();
  Options options;
  cl::SetVersionPrinter([](raw_ostream &os) {
    os << "pto " PTO_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
  });
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &errs()))
    return BadInput;
  handleSignals();
  if (Error error = Tool(Arguments(options)).run())
    return reportError("pto-tune", std::move(error));
  return finishOutput("pto-tune", Done);
}
