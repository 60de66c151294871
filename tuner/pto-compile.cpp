//===- pto-compile.cpp - A model to a shared library ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Options and messages; the work is compileModel (Compile.h).
//
//===----------------------------------------------------------------------===//

#include "tuner/Compile.h"
#include "tuner/FileChecks.h"
#include "tuner/ToolError.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace pto;
using namespace pto::tuner;

namespace {

const char *const overview =
    "Compiles a model to a shared library with a C interface.\n\n"
    "The best schedules known for its kernels come from a database that "
    "pto-tune filled;\nwithout one, default schedules are used.\n";

const char *const moreHelp =
    "\nEXAMPLES:\n"
    "  pto-compile model.onnx -o model.so               # writes model.so and "
    "model.h\n"
    "  pto-compile model.onnx --shape x=1x3x224x224 -o model.so\n"
    "  pto-compile model.onnx --target=cpu,arch=x86-64-v3 -o model.so\n"
    "  pto-compile model.onnx --schedule=mine.mlir:conv3x3 -o model.so\n"
    "  pto-compile model.onnx -o model.s                # assembly, to read\n"
    "  pto-compile model.onnx -o model.so --save-temps  # IR of each stage in "
    "model.temps/\n"
    "  pto-run model.so --check test_data_set_0         # is it right?\n"
    "\nEXIT STATUS: 0 done; 1 a kernel has no record (--require-tuned); 2 bad "
    "usage or\nmodel; 3 the environment failed (disk, permission).\n";

/// Made in main, after libLLVM's own options are out of the way: it has some of
/// the same names ("threads").
struct Options {
  cl::OptionCategory category{"pto-compile options"};
  cl::opt<std::string> model{cl::Positional, cl::Required,
                             cl::desc("MODEL (.onnx, or .mlir with linalg)"),
                             cl::cat(category)};
  cl::opt<std::string> output{
      "o", cl::value_desc("FILE"), cl::cat(category),
      cl::desc("Output; .so, .o, .s, .ll or .mlir (default: MODEL.so here)")};
  cl::opt<std::string> target{
      "target", cl::init("cpu"), cl::value_desc("NAME[,key=value]"),
      cl::cat(category),
      cl::desc("cpu (this machine, the default) or cpu,arch=X: x86-64-v3, "
               "x86-64-v4, armv8-a")};
  cl::list<std::string> shapes{
      "shape", cl::value_desc("NAME=AxB"), cl::cat(category),
      cl::desc("Sizes of an input with dynamic dims; repeat for more inputs. "
               "An input named again starts another set: each set gets code "
               "of its own, beside the general code for all sizes")};
  cl::opt<bool> pinned{
      "static", cl::cat(category),
      cl::desc("No general code: sizes that no --shape gives are 1")};
  cl::opt<std::string> db{
      "db", cl::init("pto.db"), cl::value_desc("FILE|none"), cl::cat(category),
      cl::desc("Database of tuning results (default: pto.db)")};
  cl::list<std::string> schedules{
      "schedule", cl::value_desc("FILE[:KERNEL]"), cl::cat(category),
      cl::desc("A script of yours instead of the database's, for the kernels "
               "that it matches, or whose name begins with KERNEL; open knobs "
               "get their defaults; repeatable")};
  cl::opt<unsigned> threads{
      "threads", cl::value_desc("N"), cl::cat(category),
      cl::desc("Threads that a run may use (default: physical cores)")};
  cl::opt<unsigned> jobs{
      "jobs", cl::value_desc("N"), cl::cat(category),
      cl::desc("Kernels compiled side by side (default: physical cores)")};
  cl::opt<char> level{
      "O",
      cl::Prefix,
      cl::init('2'),
      cl::value_desc("0|2"),
      cl::cat(category),
      cl::desc("-O0: no fusion, no schedules, to compare; -O2: the default")};
  cl::opt<std::string> name{
      "name", cl::value_desc("NAME"), cl::cat(category),
      cl::desc("Prefix of the C functions (default: the model's name)")};
  cl::opt<bool> weightsBeside{
      "weights-file", cl::cat(category),
      cl::desc("Weights in MODEL.weights beside the library, not inside "
               "(always so above 1 GiB)")};
  cl::opt<std::string> saveTemps{
      "save-temps", cl::ValueOptional, cl::value_desc("DIR"), cl::cat(category),
      cl::desc("Keep the IR of each stage, numbered (default: MODEL.temps)")};
  cl::opt<bool> requireTuned{
      "require-tuned", cl::cat(category),
      cl::desc("Fail, and name each kernel, unless all have a record")};
  cl::opt<std::string> json{"json", cl::value_desc("FILE"), cl::cat(category),
                            cl::desc("Write what was done as JSON")};
  cl::opt<unsigned> seed{"seed", cl::value_desc("N"), cl::cat(category),
                         cl::desc("Taken for uniformity; nothing is random")};
  cl::extrahelp more{moreHelp};
};

json::Object jsonReport(const CompileReport &report, StringRef target,
                        unsigned threads) {
  json::Array kernels;
  for (const KernelReport &kernel : report.kernels)
    kernels.push_back(json::Object{{"name", kernel.name},
                                   {"key", kernel.hash},
                                   {"calls", kernel.calls},
                                   {"version", kernel.version},
                                   {"source", kernel.choice.source},
                                   {"schedule", kernel.choice.name},
                                   {"reason", kernel.choice.reason}});
  json::Array versions;
  for (const VersionReport &version : report.versions)
    versions.push_back(
        json::Object{{"shape", version.shape},
                     {"calls", static_cast<int64_t>(version.calls)},
                     {"arena_bytes", version.arenaBytes},
                     {"added_weights_bytes", version.addedWeightBytes}});
  return json::Object{{"model", report.model},
                      {"target", target},
                      {"output", report.output},
                      {"header", report.header},
                      {"weights_file", report.weightsFile},
                      {"threads", threads},
                      {"versions", std::move(versions)},
                      {"kernels", std::move(kernels)},
                      {"arena_bytes", report.arenaBytes},
                      {"weights_bytes", report.weightsBytes},
                      {"warnings", json::Array(report.warnings)},
                      {"seconds", report.seconds}};
}

Expected<CompileOptions> compileOptions(Options &options) {
  CompileOptions compile;
  compile.model = options.model;
  if (options.output.empty())
    options.output = (sys::path::stem(options.model) + ".so").str();
  compile.output = options.output;
  compile.name = options.name;
  auto target = targets::parseTarget(options.target);
  if (!target)
    return target.takeError();
  compile.target = std::move(*target);
  compile.threads =
      options.threads ? unsigned(options.threads) : compile.target.cores;
  compile.jobs = options.jobs;
  if (options.level != '0' && options.level != '2')
    return toolError(BadInput, Twine("-O") + Twine(char(options.level)) +
                                   ": the levels are -O0 and -O2");
  compile.optimize = options.level != '0';
  auto shapes = parseShapes({options.shapes.begin(), options.shapes.end()});
  if (!shapes)
    return shapes.takeError();
  compile.shapes = std::move(*shapes);
  compile.db = options.db;
  for (const std::string &text : options.schedules) {
    auto user = parseUserSchedule(text);
    if (!user)
      return user.takeError();
    compile.schedules.push_back(std::move(*user));
  }
  compile.requireTuned = options.requireTuned;
  compile.pinned = options.pinned;
  compile.weightsBeside = options.weightsBeside;
  if (options.saveTemps.getNumOccurrences()) {
    compile.saveTemps = options.saveTemps;
    if (compile.saveTemps.empty()) {
      SmallString<128> folder(options.output);
      sys::path::replace_extension(folder, "temps");
      compile.saveTemps = folder.str().str();
    }
  }
  return compile;
}

Error run(Options &options) {
  auto compile = compileOptions(options);
  if (!compile)
    return compile.takeError();
  if (Error error = checkReadable(options.model))
    return error;
  if (!options.json.empty())
    if (Error error = checkWritable(options.json))
      return error;
  // Linking resets LLVM's options (Link.h): what is needed later is copied.
  std::string jsonFile = options.json, target = options.target;
  auto report = compileModel(*compile);
  if (!report)
    return report.takeError();
  for (const std::string &warning : report->warnings)
    errs() << "pto-compile: warning: " << warning << '\n';
  size_t calls = 0;
  for (const KernelReport &kernel : report->kernels)
    calls += kernel.calls;
  errs() << formatv("pto-compile: {0}: {1} kernels in {2} calls, {3:f1} MB of "
                    "weights, {4:f1} MB of intermediate values, {5:f1} s\n",
                    report->output, report->kernels.size(), calls,
                    report->weightsBytes / 1e6, report->arenaBytes / 1e6,
                    report->seconds);
  if (jsonFile.empty())
    return Error::success();
  return writeTextFile(
      jsonFile, formatv("{0:2}\n", json::Value(jsonReport(*report, target,
                                                          compile->threads)))
                    .str());
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  handleLimits("pto-compile");
  cl::ResetCommandLineParser();
  Options options;
  cl::SetVersionPrinter([](raw_ostream &os) {
    os << "pto " PTO_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
  });
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &errs()))
    return BadInput;
  if (Error error = run(options))
    return reportError("pto-compile", std::move(error));
  return finishOutput("pto-compile", Done);
}
