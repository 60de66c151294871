//===- pto-db.cpp - Look into a database ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Options and dispatch; the answers are made in DbReport.cpp. The database is
// only ever read.
//
//===----------------------------------------------------------------------===//
#include "db/Store.h"
#include "tuner/DbReport.h"
#include "tuner/FileChecks.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace pto;
using db::Store;

namespace {

// Exit codes of all of pto's tools.
enum Exit { Done = 0, No = 1, BadInput = 2, EnvironmentFailed = 3 };

const char *const overview =
    "Looks into pto's database of tuning results.\n\n"
    "  pto-db FILE list             kernels, schedules, targets; trials by "
    "outcome\n"
    "  pto-db FILE show KERNEL      every trial of a kernel, with its outcome\n"
    "  pto-db FILE best             the records: what pto-compile will use\n"
    "  pto-db FILE export KERNEL    the winning script, with its knobs filled "
    "in\n"
    "  pto-db FILE check            is the file whole, and does it make "
    "sense?\n"
    "\n"
    "KERNEL is a name or the start of a hash, as list prints them.\n";

const char *const moreHelp =
    "\nEXAMPLES:\n"
    "  pto-tune model.onnx --budget=10m          # fills pto.db\n"
    "  pto-db pto.db best\n"
    "  pto-db pto.db show 1a2b3c\n"
    "  pto-db pto.db export 1a2b3c -o win.mlir   # also win.kernel.mlir\n"
    "  pto-opt win.kernel.mlir --pto-apply-schedule=file=win.mlir\n"
    "\nEXIT STATUS: 0 done; 1 the answer is no (check found something, there "
    "is no\nrecord to export); 2 bad usage or file; 3 the environment failed "
    "(disk,\npermission, lock).\n";

/// Made in main, after libLLVM's own options are out of the way: it has some of
/// the same names ("threads").
struct Options {
  cl::OptionCategory category{"pto-db options"};
  cl::opt<std::string> file{cl::Positional, cl::Required, cl::desc("FILE"),
                            cl::cat(category)};
  cl::opt<std::string> command{cl::Positional, cl::Required,
                               cl::desc("{list|show|best|export|check}"),
                               cl::cat(category)};
  cl::opt<std::string> kernel{cl::Positional, cl::desc("[KERNEL]"),
                              cl::cat(category)};
  cl::opt<std::string> json{
      "json", cl::value_desc("FILE"),
      cl::desc(
          "Write the answer as JSON ('-': to stdout, instead of the text)"),
      cl::cat(category)};
  cl::opt<std::string> output{
      "o", cl::value_desc("FILE"),
      cl::desc("export: write the schedule to FILE.mlir "
               "and the kernel to FILE.kernel.mlir"),
      cl::cat(category)};
  cl::opt<bool> kernelIr{
      "kernel-ir", cl::desc("export: print the kernel instead of the schedule"),
      cl::cat(category)};
  cl::opt<unsigned> threads{
      "threads", cl::value_desc("N"),
      cl::desc("export: the record for this thread limit"), cl::cat(category)};
  cl::opt<std::string> target{"target", cl::value_desc("TEXT"),
                              cl::desc("export: the record of the target whose "
                                       "fingerprint has TEXT in it"),
                              cl::cat(category)};
  cl::extrahelp more{moreHelp};
};

int fail(Exit code, const Twine &message) {
  errs() << "pto-db: " << message << '\n';
  return code;
}

int fail(Error error) {
  std::string message;
  int code = db::describe(std::move(error), message);
  return fail(Exit(code), message);
}

/// Writes a whole file or says why not.
int writeFile(StringRef path, StringRef text) {
  std::error_code ec;
  raw_fd_ostream os(path, ec);
  if (!ec) {
    os << text;
    os.close();
    ec = os.error();
    os.clear_error();
  }
  if (ec)
    return fail(EnvironmentFailed,
                path + " cannot be written: " + ec.message());
  return Done;
}

/// One invocation on an open database.
class Session {
public:
  Session(const Options &options, Store &store)
      : options(options), store(store) {}
  int run();

private:
  using Printer = function_ref<void(const json::Object &, raw_ostream &)>;

  /// Prints the answer for people, and as JSON where asked.
  int answer(const json::Object &object, Printer print);
  int gathered(Expected<json::Object> (*gather)(Store &), Printer print);
  /// Kernels by exact name, or by the start of the hash.
  Expected<std::vector<db::Kernel>> matchingKernels();
  int withKernel(function_ref<int(const db::Kernel &)> use);
  /// The kernel's records that the options leave.
  Expected<std::vector<db::Record>> chosenRecords(const db::Kernel &kernel);
  int show();
  int exportKernel();
  int exportRecord(const db::Kernel &kernel, const db::Record &record);
  int check();

  const Options &options;
  Store &store;
};

int Session::answer(const json::Object &object, Printer print) {
  if (options.json != "-")
    print(object, outs());
  if (options.json.empty())
    return Done;
  std::string text;
  raw_string_ostream(text) << formatv("{0:2}\n",
                                      json::Value(json::Object(object)));
  return writeFile(options.json, text);
}

Expected<std::vector<db::Kernel>> Session::matchingKernels() {
  Expected<std::vector<db::Kernel>> all = store.kernels();
  if (!all)
    return all.takeError();
  std::vector<db::Kernel> matching;
  for (db::Kernel &kernel : *all)
    if (kernel.name == options.kernel ||
        StringRef(kernel.hash).starts_with(options.kernel))
      matching.push_back(std::move(kernel));
  return matching;
}

int Session::withKernel(function_ref<int(const db::Kernel &)> use) {
  if (options.kernel.empty())
    return fail(BadInput, options.command +
                              " needs a KERNEL: a name or the start of "
                              "a hash\nlist them with: pto-db " +
                              options.file + " list");
  Expected<std::vector<db::Kernel>> matching = matchingKernels();
  if (!matching)
    return fail(matching.takeError());
  if (matching->empty())
    return fail(BadInput, "no kernel '" + options.kernel + "' in " +
                              options.file + "\nlist them with: pto-db " +
                              options.file + " list");
  if (matching->size() > 1) {
    std::string which;
    for (const db::Kernel &kernel : *matching)
      which += "\n  " + kernel.hash + "  " + kernel.name;
    return fail(BadInput, "'" + options.kernel +
                              "' is more than one kernel; give "
                              "more of the hash:" +
                              which);
  }
  return use(matching->front());
}

int Session::show() {
  return withKernel([&](const db::Kernel &kernel) {
    Expected<json::Object> show = tuner::gatherShow(store, kernel);
    return show ? answer(*show, tuner::printShow) : fail(show.takeError());
  });
}

Expected<std::vector<db::Record>>
Session::chosenRecords(const db::Kernel &kernel) {
  Expected<std::vector<db::Record>> all = store.records();
  if (!all)
    return all.takeError();
  std::vector<db::Record> chosen;
  for (db::Record &record : *all)
    if (!record.isRegion && record.key.kernelHash == kernel.hash &&
        (!options.threads.getNumOccurrences() ||
         record.key.threads == options.threads) &&
        StringRef(record.key.targetFingerprint).contains(options.target))
      chosen.push_back(std::move(record));
  return chosen;
}

int Session::exportRecord(const db::Kernel &kernel, const db::Record &record) {
  if (options.output.empty()) {
    outs() << record.text;
    return Done;
  }
  StringRef stem = options.output;
  stem.consume_back(".mlir");
  std::string schedulePath = (stem + ".mlir").str();
  std::string kernelPath = (stem + ".kernel.mlir").str();
  if (int code = writeFile(schedulePath, record.text))
    return code;
  if (int code = writeFile(kernelPath, kernel.ir))
    return code;
  outs() << "wrote " << schedulePath << " and " << kernelPath << "; run:\n"
         << "  pto-opt " << kernelPath
         << " --pto-apply-schedule=file=" << schedulePath << '\n';
  return Done;
}

int Session::exportKernel() {
  return withKernel([&](const db::Kernel &kernel) -> int {
    if (options.kernelIr) {
      if (!options.output.empty())
        return writeFile(options.output, kernel.ir);
      outs() << kernel.ir;
      return Done;
    }
    Expected<std::vector<db::Record>> records = chosenRecords(kernel);
    if (!records)
      return fail(records.takeError());
    if (records->empty())
      return fail(No, "no such record of kernel " + kernel.name +
                          "\nsee what there is with: pto-db " + options.file +
                          " best; tune it with pto-tune");
    if (records->size() > 1) {
      std::string which;
      for (const db::Record &record : *records)
        which += "\n  --threads=" + std::to_string(record.key.threads) +
                 " --target='" + record.key.targetFingerprint + "' (dtypes " +
                 record.key.dtypePolicy + ")";
      return fail(BadInput,
                  "kernel " + kernel.name +
                      " has several records; choose one with:" + which);
    }
    return exportRecord(kernel, records->front());
  });
}

int Session::check() {
  Expected<std::vector<std::string>> findings = store.check();
  if (!findings)
    return fail(findings.takeError());
  json::Object object{{"ok", findings->empty()},
                      {"findings", json::Array(*findings)}};
  if (int code = answer(object, [&](const json::Object &, raw_ostream &os) {
        for (const std::string &finding : *findings)
          os << finding << '\n';
        os << options.file
           << (findings->empty() ? ": whole, all rows are as they should be\n"
                                 : ": NOT as it should be\n");
      }))
    return code;
  return findings->empty() ? Done : No;
}

int Session::gathered(Expected<json::Object> (*gather)(Store &),
                      Printer print) {
  Expected<json::Object> object = gather(store);
  return object ? answer(*object, print) : fail(object.takeError());
}

int Session::run() {
  if (options.command == "list")
    return gathered(tuner::gatherList, tuner::printList);
  if (options.command == "best")
    return gathered(tuner::gatherBest, tuner::printBest);
  if (options.command == "show")
    return show();
  if (options.command == "export")
    return exportKernel();
  return check();
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  tuner::handleLimits("pto-db");
  cl::ResetCommandLineParser();
  Options options;
  cl::SetVersionPrinter([](raw_ostream &os) {
    db::Maker maker = db::Maker::current("");
    os << "pto " << maker.pto << ", LLVM " << maker.llvm << '\n';
  });
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &errs()))
    return BadInput;
  if (!is_contained({"list", "show", "best", "export", "check"},
                    options.command))
    return fail(BadInput, "unknown command '" + options.command +
                              "': list, show, best, export or check\nsee "
                              "pto-db --help");
  Expected<std::unique_ptr<Store>> store =
      Store::open(options.file, Store::Mode::ReadOnly);
  if (!store) {
    Error error = store.takeError();
    std::string message;
    // A file too damaged to open is an answer to "check", not a failure of it.
    bool damaged = false;
    visitErrors(error, [&](const ErrorInfoBase &info) {
      if (info.isA<db::StoreError>())
        damaged = static_cast<const db::StoreError &>(info).getKind() ==
                  db::StoreError::Kind::Corrupt;
    });
    int code = db::describe(std::move(error), message);
    return fail(damaged && options.command == "check" ? No : Exit(code),
                message);
  }
  return tuner::finishOutput("pto-db", Session(options, **store).run());
}
