//===- pto-run.cpp - Run, check and time a compiled model -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "targets/Features.h"
#include "targets/Host.h"
#include "targets/cpu/Peak.h"
#include "tuner/Artifact.h"
#include "tuner/Compare.h"
#include "tuner/FileChecks.h"
#include "tuner/Shapes.h"
#include "tuner/ToolError.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

using namespace llvm;
using namespace pto;
using namespace pto::tuner;

namespace {

const char *const overview =
    "Runs a model that pto-compile made: checks its numbers, times it, or says "
    "what it is.\n";

const char *const moreHelp =
    "\nEXAMPLES:\n"
    "  pto-run model.so                              # inputs and outputs\n"
    "  pto-run model.so --check test_data_set_0      # are the numbers right?\n"
    "  pto-run model.so --bench=3                    # time it for 3 seconds\n"
    "  pto-run model.so --bench=3 --peak             # ... as a share of the "
    "CPU's peak\n"
    "  pto-run model.so --profile --threads=1        # where does the time "
    "go?\n"
    "\n--check DIR holds input_J.pb and output_J.pb as in ONNX's own tests. A "
    "float\noutput is right if its largest |error| is at most 1e-4 of the "
    "largest |reference|\n(--rel), or elementwise with --rtol and --atol or a "
    "tol.json in DIR or its parent.\nNaN equals NaN; integers are exact.\n"
    "\nEXIT STATUS: 0 done; 1 the numbers disagree; 2 bad usage or input; 3 "
    "the\nenvironment failed (memory, CPU without the needed features).\n";

/// Made in main, after libLLVM's own options are out of the way.
struct Options {
  cl::OptionCategory category{"pto-run options"};
  cl::opt<std::string> model{cl::Positional, cl::Required, cl::desc("MODEL.so"),
                             cl::cat(category)};
  cl::opt<std::string> check{"check", cl::value_desc("DIR"), cl::cat(category),
                             cl::desc("Compare outputs with a test_data_set")};
  cl::opt<double> rel{"rel", cl::init(1e-4), cl::cat(category),
                      cl::desc("Largest |error| over largest |reference| "
                               "(default: 1e-4)")};
  cl::opt<double> rtol{"rtol", cl::init(0), cl::cat(category),
                       cl::desc("Elementwise: relative part")};
  cl::opt<double> atol{"atol", cl::init(0), cl::cat(category),
                       cl::desc("Elementwise: absolute part")};
  cl::opt<double> bench{"bench", cl::value_desc("SECONDS"), cl::cat(category),
                        cl::desc("Time runs for that long")};
  cl::opt<bool> turns{
      "turns", cl::cat(category),
      cl::desc("--bench: once for each line on stdin, a line of JSON each: for "
               "contestants that take turns")};
  cl::opt<bool> peak{"peak", cl::cat(category),
                     cl::desc("Also measure what the CPU can do at most, and "
                              "give times as a share of it")};
  cl::opt<bool> profile{
      "profile", cl::cat(category),
      cl::desc("Time per kernel, beside the CPU's measured peak "
               "and bandwidth")};
  cl::opt<std::string> data{
      "data", cl::value_desc("DIR"), cl::cat(category),
      cl::desc("Inputs from a test_data_set (default: seeded)")};
  cl::list<std::string> shapes{
      "shape", cl::value_desc("NAME=AxB"), cl::cat(category),
      cl::desc("Sizes of an input with dynamic dims, for seeded inputs "
               "(default: those that the model has code of its own for)")};
  cl::opt<unsigned> threads{
      "threads", cl::value_desc("N"), cl::cat(category),
      cl::desc("Threads (default: physical cores, at most what the model was "
               "compiled for)")};
  cl::opt<unsigned> contexts{
      "contexts", cl::init(1), cl::value_desc("N"), cl::cat(category),
      cl::desc("--check: run in N contexts at once, each on a thread")};
  cl::opt<bool> ownLoop{
      "own-loop", cl::cat(category),
      cl::desc("Pass a parallel loop of this tool's instead of the pool")};
  cl::opt<std::string> weights{
      "weights", cl::value_desc("FILE"), cl::cat(category),
      cl::desc("MODEL.weights, if it is not beside the library")};
  cl::opt<uint64_t> seed{"seed", cl::init(0), cl::value_desc("N"),
                         cl::cat(category), cl::desc("For seeded inputs")};
  cl::opt<std::string> json{"json", cl::value_desc("FILE"), cl::cat(category),
                            cl::desc("Results as JSON ('-': stdout)")};
  cl::extrahelp more{moreHelp};
};

/// A caller's parallel loop: a thread for each half, started each time.
void ownParallelFor(void *, int64_t n, void (*body)(void *, int64_t),
                    void *arg) {
  std::thread other([=] {
    for (int64_t i = n / 2; i < n; ++i)
      body(arg, i);
  });
  for (int64_t i = 0; i < n / 2; ++i)
    body(arg, i);
  other.join();
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") +
            (size < 0 ? std::string("?") : std::to_string(size));
  return text.empty() ? "scalar" : text;
}

/// Memory that the process holds, in MB; 0 where the system does not say.
double residentMegabytes() {
  auto status = MemoryBuffer::getFileAsStream("/proc/self/status");
  if (!status)
    return 0;
  StringRef text = (*status)->getBuffer();
  double kilobytes = 0;
  if (text.split("VmRSS:").second.ltrim().split(' ').first.getAsDouble(
          kilobytes))
    return 0;
  return kilobytes / 1e3;
}

class Session {
public:
  Session(const Options &options, const Artifact &artifact,
          double beforeMegabytes)
      : options(options), artifact(artifact),
        signature(artifact.model().signature),
        beforeMegabytes(beforeMegabytes) {}

  Expected<int> run() {
    create = {};
    if (options.ownLoop)
      create.parallel_for = ownParallelFor;
    create.threads = options.threads ? static_cast<int>(options.threads)
                                     : targets::detectHost().cores;
    if (!options.weights.empty())
      create.weights_path = options.weights.c_str();
    auto made = Instance::create(artifact, create);
    if (!made)
      return made.takeError();
    instance = std::move(*made);
    report["model"] = signature.model;
    report["threads"] = instance->threads();
    int code = Done;
    bool any = false;
    if (!options.check.empty()) {
      auto checked = check();
      if (!checked)
        return checked.takeError();
      code = *checked ? Done : AnswerIsNo;
      any = true;
    }
    if (options.turns && !options.bench.getNumOccurrences())
      return toolError(BadInput,
                       "--turns: how long is a turn? add --bench=0.5");
    if (options.bench.getNumOccurrences() || options.profile) {
      if (Error error = readInputs())
        return std::move(error);
      any = true;
    }
    if (options.turns)
      return takeTurns();
    if (options.bench.getNumOccurrences())
      if (Error error = bench())
        return std::move(error);
    if (options.peak) {
      measurePeak();
      any = true;
    }
    if (options.profile)
      if (Error error = profile())
        return std::move(error);
    if (!any)
      describe();
    if (!options.json.empty())
      if (Error error = writeTextFile(
              options.json,
              formatv("{0:2}\n", json::Value(std::move(report))).str()))
        return std::move(error);
    return code;
  }

private:
  raw_ostream &text() {
    if (options.turns)
      return nulls();
    return options.json == "-" ? errs() : outs();
  }

  void describe() {
    const pto_model &model = artifact.model();
    text() << signature.model << ": compiled for " << model.target << ", up to "
           << model.threads << " threads, " << model.step_count
           << " kernel calls, "
           << formatv("{0:f1} MB of weights\n", model.weights_size / 1e6);
    auto list = [&](const char *kind, const pto_value_info *values, size_t n) {
      json::Array array;
      for (size_t i = 0; i < n; ++i) {
        std::string shape = shapeText(std::vector<int64_t>(
            values[i].shape, values[i].shape + values[i].rank));
        text() << "  " << kind << ' ' << i << "  " << values[i].name << "  "
               << dtypeText(values[i].dtype) << "  " << shape << '\n';
        array.push_back(json::Object{{"name", values[i].name},
                                     {"dtype", dtypeText(values[i].dtype)},
                                     {"shape", shape}});
      }
      report[std::string(kind) + "s"] = std::move(array);
    };
    list("input", signature.inputs, signature.input_count);
    list("output", signature.outputs, signature.output_count);
    json::Array versions;
    for (uint64_t v = 0; v < model.version_count; ++v) {
      std::string shape = versionText(model.versions[v]);
      if (model.version_count > 1)
        text() << "  version " << v << "  " << shape << "  "
               << model.versions[v].step_count << " kernel calls\n";
      versions.push_back(shape);
    }
    report["versions"] = std::move(versions);
  }

  /// The shapes that a version is for, or "general" for all that the model
  /// takes.
  std::string versionText(const pto_version &version) {
    std::string shapes;
    bool open = false, same = true;
    for (size_t i = 0; i < signature.input_count; ++i) {
      const pto_value_info &info = signature.inputs[i];
      std::vector<int64_t> shape = artifact.shapeOf(version, i);
      std::vector<int64_t> any(info.shape, info.shape + info.rank);
      open |= is_contained(any, -1);
      same &= shape == any;
      shapes += (i ? "," : "") + std::string(info.name) + "=" +
                (shape.empty() ? "" : shapeText(shape));
    }
    return open && same ? "general" : shapes;
  }

  void reportVersion(const Instance &ran) {
    if (const pto_version *version = ran.version())
      report["version"] = versionText(*version);
  }

  //===--- Inputs ---------------------------------------------------------===//

  Expected<std::vector<HostTensor>> folderInputs(StringRef folder) {
    if (!sys::fs::is_directory(folder))
      return toolError(BadInput, folder + ": no such folder");
    auto tensors = readTensorFolder(folder, "input");
    if (!tensors)
      return tensors.takeError();
    if (tensors->size() != signature.input_count)
      return toolError(BadInput, folder + ": has " + Twine(tensors->size()) +
                                     " input_J.pb files; the model has " +
                                     Twine(signature.input_count) + " inputs");
    return tensors;
  }

  Error readInputs() {
    StringRef folder = !options.data.empty() ? options.data : options.check;
    auto tensors = folder.empty() ? seeded() : folderInputs(folder);
    if (!tensors)
      return tensors.takeError();
    inputs = std::move(*tensors);
    std::string shapes;
    for (const HostTensor &input : inputs)
      shapes += (shapes.empty() ? "" : ",") + input.name + "=" +
                shapeText(input.shape);
    report["shape"] = shapes;
    return instance->bind(inputs);
  }

  Expected<std::vector<HostTensor>> seeded() {
    auto sets = parseShapes({options.shapes.begin(), options.shapes.end()});
    if (!sets)
      return sets.takeError();
    if (sets->size() > 1)
      return toolError(BadInput, "--shape: one set of shapes at a time");
    if (!sets->empty())
      for (const auto &entry : sets->front())
        if (!std::any_of(signature.inputs,
                         signature.inputs + signature.input_count,
                         [&](const pto_value_info &info) {
                           return entry.first() == info.name;
                         }))
          return toolError(BadInput, "--shape: the model has no input '" +
                                         entry.first() + "'");
    std::map<std::string, std::vector<int64_t>> shapes;
    if (!sets->empty())
      for (const auto &entry : sets->front())
        shapes[entry.first().str()] = {entry.second.begin(),
                                       entry.second.end()};
    fillShapes(shapes);
    return seededInputs(signature, options.seed, [&](StringRef name) {
      auto found = shapes.find(name.str());
      return found == shapes.end() ? nullptr : &found->second;
    });
  }

  /// Shapes of the inputs that no --shape names: equal dims are equal; if
  /// nothing is given, those of the first version.
  void fillShapes(std::map<std::string, std::vector<int64_t>> &shapes) {
    if (shapes.empty()) {
      for (size_t i = 0; i < signature.input_count; ++i)
        shapes[signature.inputs[i].name] =
            artifact.shapeOf(artifact.model().versions[0], i);
      return;
    }
    std::map<std::string, int64_t> dims;
    auto forDims = [&](auto visit) {
      for (size_t i = 0; i < signature.input_count; ++i) {
        const pto_value_info &info = signature.inputs[i];
        auto given = shapes.find(info.name);
        for (int32_t d = 0; info.dims && d < info.rank; ++d)
          if (info.shape[d] < 0 && info.dims[d][0])
            visit(info, d, given == shapes.end() ? nullptr : &given->second);
      }
    };
    forDims([&](const pto_value_info &info, int32_t d,
                const std::vector<int64_t> *given) {
      if (given && d < int32_t(given->size()))
        dims[info.dims[d]] = (*given)[d];
    });
    std::set<std::string> named;
    for (const auto &entry : shapes)
      named.insert(entry.first);
    forDims([&](const pto_value_info &info, int32_t d,
                const std::vector<int64_t> *) {
      auto known = dims.find(info.dims[d]);
      if (named.count(info.name) || known == dims.end())
        return;
      auto [shape, isNew] = shapes.try_emplace(
          info.name, std::vector<int64_t>(info.shape, info.shape + info.rank));
      shape->second[d] = known->second;
    });
  }

  //===--- --check --------------------------------------------------------===//

  Expected<Tolerance> tolerance() {
    Tolerance given;
    given.rel = options.rel;
    if (options.rtol.getNumOccurrences() || options.atol.getNumOccurrences()) {
      given.elementwise = true;
      given.rtol = options.rtol;
      given.atol = options.atol;
      return given;
    }
    if (options.rel.getNumOccurrences())
      return given;
    auto file = readToleranceFile(options.check);
    if (!file)
      return file.takeError();
    return *file ? **file : given;
  }

  Expected<bool> check() {
    auto tensors = folderInputs(options.check);
    if (!tensors)
      return tensors.takeError();
    auto references = readTensorFolder(options.check, "output");
    if (!references)
      return references.takeError();
    if (references->size() != signature.output_count)
      return toolError(BadInput,
                       options.check + ": has " + Twine(references->size()) +
                           " output_J.pb files; the model has " +
                           Twine(signature.output_count) + " outputs");
    auto limit = tolerance();
    if (!limit)
      return limit.takeError();
    auto runs = checkedRuns(*tensors);
    if (!runs)
      return runs.takeError();
    bool all = true;
    for (const std::vector<HostTensor> &outputs : *runs)
      all &= compareAll(outputs, *references, *limit);
    report["check"] = std::move(results);
    return all;
  }

  /// The outputs of each context, all of which run at once.
  Expected<std::vector<std::vector<HostTensor>>>
  checkedRuns(const std::vector<HostTensor> &tensors) {
    size_t n = std::max(1u, unsigned(options.contexts));
    std::vector<std::unique_ptr<Instance>> instances;
    for (size_t i = 0; i < n; ++i) {
      auto made = Instance::create(artifact, create);
      if (!made)
        return made.takeError();
      instances.push_back(std::move(*made));
      if (Error error = instances.back()->bind(tensors))
        return std::move(error);
    }
    std::vector<std::string> errors(n);
    std::vector<std::vector<HostTensor>> outputs(n);
    auto work = [&](size_t i) {
      // More than once, so that contexts overlap in time.
      for (int run = 0; run < (n > 1 ? 10 : 1); ++run)
        if (Error error = instances[i]->run()) {
          errors[i] = toString(std::move(error));
          return;
        }
      outputs[i] = instances[i]->outputs();
    };
    std::vector<std::thread> threads;
    for (size_t i = 1; i < n; ++i)
      threads.emplace_back(work, i);
    work(0);
    for (std::thread &thread : threads)
      thread.join();
    for (const std::string &error : errors)
      if (!error.empty())
        return toolError(BadInput, error);
    reportVersion(*instances.front());
    return std::move(outputs);
  }

  bool compareAll(const std::vector<HostTensor> &outputs,
                  const std::vector<HostTensor> &references,
                  const Tolerance &limit) {
    bool all = true;
    for (size_t i = 0; i < outputs.size(); ++i) {
      Comparison result = compare(outputs[i], references[i], limit);
      all &= result.equal;
      text() << formatv("{0}  {1}  {2}  max |error| {3:e3}, of max |reference| "
                        "{4:e3}{5}{6}\n",
                        result.equal ? "ok  " : "FAIL", outputs[i].name,
                        shapeText(outputs[i].shape), result.maxAbs,
                        result.maxRel, result.message.empty() ? "" : "; ",
                        result.message);
      results.push_back(json::Object{{"name", outputs[i].name},
                                     {"ok", result.equal},
                                     {"max_abs", result.maxAbs},
                                     {"max_rel", result.maxRel},
                                     {"message", result.message}});
    }
    return all;
  }

  //===--- --bench, --profile ---------------------------------------------===//

  using Clock = std::chrono::steady_clock;

  static double milliseconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
  }

  Error bench() {
    // The first runs touch memory, start threads and fill caches.
    for (int i = 0; i < 2; ++i)
      if (Error error = instance->run())
        return error;
    std::vector<double> times;
    Clock::time_point start = Clock::now();
    do {
      Clock::time_point before = Clock::now();
      if (Error error = instance->run())
        return error;
      times.push_back(milliseconds(before, Clock::now()));
    } while (milliseconds(start, Clock::now()) < options.bench * 1e3);
    std::sort(times.begin(), times.end());
    double median = times[times.size() / 2];
    text() << formatv("min {0:f4} ms, median {1:f4} ms, {2} runs, {3} threads, "
                      "{4:f1} MB arena (measured)\n",
                      times.front(), median, times.size(), instance->threads(),
                      instance->arenaBytes() / 1e6);
    reportVersion(*instance);
    report["min_ms"] = times.front();
    report["median_ms"] = median;
    report["p95_ms"] = times[times.size() * 95 / 100];
    report["runs"] = static_cast<int64_t>(times.size());
    report["evidence"] = "measured";
    return Error::success();
  }

  Expected<int> takeTurns() {
    outs() << formatv(
        "{0}\n", json::Value(json::Object{{"before_mb", beforeMegabytes}}));
    outs().flush();
    for (char line[64]; std::fgets(line, sizeof(line), stdin);) {
      if (Error error = bench())
        return std::move(error);
      if (options.peak)
        measurePeak();
      outs() << formatv("{0}\n", json::Value(json::Object(report)));
      outs().flush();
    }
    return Done;
  }

  /// Of one run, as far as the artifact knows.
  double modelFlops() const {
    const pto_model &model = artifact.model();
    double flops = 0;
    const pto_version *version = instance->version();
    if (!version)
      version = model.versions;
    for (size_t i = version->first_step;
         i < version->first_step + version->step_count; ++i)
      flops += std::max(0.0, double(model.steps[i].flops));
    return flops;
  }

  /// The instructions that the code may use at most.
  const char *codeIsa() const {
    bool narrow =
        llvm::StringRef(targets::fmaIsa()) == "avx512" &&
        !(artifact.model().features & targets::x86FeatureBit("avx512f"));
    return narrow ? "avx2" : targets::fmaIsa();
  }

  void measurePeak() {
    const char *isa = codeIsa();
    double peak = targets::measureFmaPeak(instance->threads(), isa);
    double flops = modelFlops();
    report["peak_gflops"] = peak;
    report["peak_isa"] = isa;
    report["flops"] = flops;
    text() << formatv("peak {0:f0} GFLOP/s of f32 FMAs ({1}, {2} threads, "
                      "measured)",
                      peak, isa, instance->threads());
    if (auto median = report.getNumber("median_ms"); median && flops > 0) {
      double gflops = flops / *median * 1e-6;
      report["gflops"] = gflops;
      report["percent_of_peak"] = 100 * gflops / peak;
      text() << formatv("; {0:f3} GFLOP a run, {1:f1} GFLOP/s, {2:f0}% of the "
                        "peak",
                        flops * 1e-9, gflops, 100 * gflops / peak);
    }
    text() << '\n';
  }

  struct KernelTime {
    std::string name;
    size_t calls = 0;
    double ms = 0, flops = 0, bytes = 0;
    bool flopsKnown = true, bytesKnown = true;
  };

  Error profile() {
    const pto_model &model = artifact.model();
    std::vector<uint64_t> ns(model.step_count);
    if (Error error = instance->run())
      return error;
    instance->profile(ns.data());
    size_t runs = 0;
    double seconds = options.bench.getNumOccurrences() ? options.bench : 1.0;
    Clock::time_point start = Clock::now();
    double whole = 0;
    do {
      if (Error error = instance->run())
        return error;
      ++runs;
      whole = milliseconds(start, Clock::now());
    } while (whole < seconds * 1e3);
    instance->profile(nullptr);
    reportVersion(*instance);
    printProfile(ns, runs, whole / runs);
    return Error::success();
  }

  std::vector<KernelTime> byKernel(const std::vector<uint64_t> &ns,
                                   size_t runs) {
    const pto_model &model = artifact.model();
    std::map<std::string, KernelTime> kernels;
    const pto_version *version = instance->version();
    for (size_t i = version->first_step;
         i < version->first_step + version->step_count; ++i) {
      const pto_step &step = model.steps[i];
      KernelTime &kernel = kernels[step.name];
      kernel.name = step.name;
      ++kernel.calls;
      kernel.ms += ns[i] * 1e-6 / runs;
      kernel.flops += step.flops;
      kernel.bytes += step.bytes;
      kernel.flopsKnown &= step.flops > 0;
      kernel.bytesKnown &= step.bytes > 0;
    }
    std::vector<KernelTime> sorted;
    for (auto &entry : kernels)
      sorted.push_back(std::move(entry.second));
    std::sort(sorted.begin(), sorted.end(),
              [](const KernelTime &a, const KernelTime &b) {
                return a.ms != b.ms ? a.ms > b.ms : a.name < b.name;
              });
    return sorted;
  }

  /// What the machine gives at most, in GFLOP/s and GB/s, measured.
  struct Roof {
    double gflops, gbytes;
  };

  /// The least time, in ms, that `kernel` could take under `roof`, if memory
  /// beyond the caches holds what it reads and writes.
  static double leastMs(const KernelTime &kernel, const Roof &roof) {
    return std::max(kernel.flopsKnown ? kernel.flops / roof.gflops * 1e-6 : 0,
                    kernel.bytesKnown ? kernel.bytes / roof.gbytes * 1e-6 : 0);
  }

  void printProfile(const std::vector<uint64_t> &ns, size_t runs,
                    double wholeMs) {
    std::vector<KernelTime> kernels = byKernel(ns, runs);
    // --peak has measured it.
    std::optional<double> peak = report.getNumber("peak_gflops");
    Roof roof = {peak ? *peak
                      : targets::measureFmaPeak(instance->threads(), codeIsa()),
                 targets::measureReadBandwidth(instance->threads())};
    double sum = 0;
    for (const KernelTime &kernel : kernels)
      sum += kernel.ms;
    text() << "      ms  share  calls  GFLOP/s  % peak    GB/s  % band  kernel "
              "(measured)\n";
    json::Array array;
    for (const KernelTime &kernel : kernels) {
      json::Object entry{{"name", kernel.name},
                         {"calls", static_cast<int64_t>(kernel.calls)},
                         {"ms", kernel.ms},
                         {"share", sum > 0 ? kernel.ms / sum : 0.0}};
      std::string rate = "-", ofPeak = "-", bandwidth = "-", ofBand = "-";
      if (kernel.flopsKnown) {
        double gflops = kernel.flops / kernel.ms * 1e-6;
        rate = formatv("{0:f1}", gflops).str();
        ofPeak = formatv("{0:f0}", 100 * gflops / roof.gflops).str();
        entry["gflops"] = gflops;
        entry["percent_of_peak"] = 100 * gflops / roof.gflops;
      }
      if (kernel.bytesKnown) {
        double rateGb = kernel.bytes / kernel.ms * 1e-6;
        bandwidth = formatv("{0:f1}", rateGb).str();
        ofBand = formatv("{0:f0}", 100 * rateGb / roof.gbytes).str();
        entry["gb_per_s"] = rateGb;
        entry["percent_of_bandwidth"] = 100 * rateGb / roof.gbytes;
      }
      text() << formatv("{0,8:f4}  {1,4:f1}%  {2,5}  {3,7}  {4,6}  {5,6}  "
                        "{6,6}  {7}\n",
                        kernel.ms, sum > 0 ? kernel.ms / sum * 100 : 0.0,
                        kernel.calls, rate, ofPeak, bandwidth, ofBand,
                        kernel.name);
      array.push_back(std::move(entry));
    }
    text() << formatv("{0,8:f4}  kernels, {1:f0}% of {2:f4} ms a run; {3} "
                      "runs, {4} threads\n"
                      "roof: {5:f0} GFLOP/s ({6}), {7:f1} GB/s read from "
                      "memory (measured); above 100% of the latter, caches "
                      "serve\n",
                      sum, wholeMs > 0 ? 100 * sum / wholeMs : 0.0, wholeMs,
                      runs, instance->threads(), roof.gflops, codeIsa(),
                      roof.gbytes);
    printHotspots(std::move(kernels), roof);
    report["profile"] = std::move(array);
    report["kernels_ms"] = sum;
    report["run_ms"] = wholeMs;
    report["peak_gflops"] = roof.gflops;
    report["read_gb_per_s"] = roof.gbytes;
    report["evidence"] = "measured";
  }

  /// Where most time lies between what is and what the roof allows.
  void printHotspots(std::vector<KernelTime> kernels, const Roof &roof) {
    auto excess = [&](const KernelTime &kernel) {
      return kernel.ms - leastMs(kernel, roof);
    };
    std::stable_sort(kernels.begin(), kernels.end(),
                     [&](const KernelTime &a, const KernelTime &b) {
                       return excess(a) > excess(b);
                     });
    json::Array hotspots;
    for (const KernelTime &kernel :
         ArrayRef<KernelTime>(kernels).take_front(3)) {
      if (excess(kernel) <= 0)
        break;
      text() << formatv("{0}{1:f4} ms above its roof: {2}\n",
                        hotspots.empty() ? "most to gain: " : "              ",
                        excess(kernel), kernel.name);
      hotspots.push_back(json::Object{{"name", kernel.name},
                                      {"above_roof_ms", excess(kernel)}});
    }
    report["hotspots"] = std::move(hotspots);
  }

  const Options &options;
  const Artifact &artifact;
  const pto_signature &signature;
  double beforeMegabytes; ///< Before the artifact was opened.
  std::unique_ptr<Instance> instance;
  std::vector<HostTensor> inputs;
  pto_options create = {};
  json::Object report;
  json::Array results; ///< Of --check.
};

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  handleLimits("pto-run");
  cl::ResetCommandLineParser();
  Options options;
  cl::SetVersionPrinter([](raw_ostream &os) {
    os << "pto " PTO_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
  });
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &errs()))
    return BadInput;
  double beforeMegabytes = residentMegabytes();
  if (!options.json.empty())
    if (Error error = checkWritable(options.json))
      return reportError("pto-run", std::move(error));
  auto artifact = Artifact::open(options.model);
  if (!artifact)
    return reportError("pto-run", artifact.takeError());
  auto code = Session(options, **artifact, beforeMegabytes).run();
  if (!code)
    return reportError("pto-run", code.takeError());
  return finishOutput("pto-run", *code);
}
