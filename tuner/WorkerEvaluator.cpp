//===- WorkerEvaluator.cpp ------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/WorkerEvaluator.h"
#include "targets/runner/Serve.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <csignal>
#include <unistd.h>

using namespace pto;
using namespace pto::tuner;
using namespace pto::targets;
namespace json = llvm::json;
using db::Outcome;

/// Copies beyond these sizes cost set-up time and change nothing: no cache is
/// shared by so little.
static constexpr int64_t kMaxColdWeights = 96 << 20, kMaxColdData = 32 << 20;
/// Compilers keep some memory per candidate.
static constexpr unsigned kCompilationsPerLife = 400;

static constexpr const char *kFolderPrefix = "pto-tune-";

static WorkerCommand command(const std::string &tools, const char *program,
                             int64_t memory, unsigned requests) {
  WorkerCommand c;
  c.program = tools.empty() ? siblingTool(program) : tools + "/" + program;
  c.memoryBytes = memory;
  c.requestsPerLife = requests;
  return c;
}

static std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(int64_t(seconds * 1000));
}

WorkerEvaluator::WorkerEvaluator(EvaluatorOptions o)
    : options(std::move(o)),
      compilers(command(options.tools, "pto-worker", options.compileMemory,
                        kCompilationsPerLife),
                options.compileJobs, options.stop),
      runners(command(options.tools, "pto-runner", options.runMemory, 0), 1,
              options.stop) {}

/// Killed runs cannot remove their folders: the next run does.
static void removeStaleFolders() {
  llvm::SmallString<128> temp;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, temp);
  std::error_code ec;
  for (llvm::sys::fs::directory_iterator it(temp, ec), end; it != end && !ec;
       it.increment(ec)) {
    llvm::StringRef name = llvm::sys::path::filename(it->path());
    pid_t pid = 0;
    if (!name.consume_front(kFolderPrefix) || name.consumeInteger(10, pid) ||
        pid <= 0)
      continue;
    // ESRCH alone: another user's process is alive, too.
    if (::kill(pid, 0) && errno == ESRCH)
      llvm::sys::fs::remove_directories(it->path());
  }
}

llvm::Expected<std::unique_ptr<WorkerEvaluator>>
WorkerEvaluator::create(EvaluatorOptions options) {
  removeStaleFolders();
  llvm::SmallString<128> folder;
  if (std::error_code ec = llvm::sys::fs::createUniqueDirectory(
          kFolderPrefix + llvm::Twine(::getpid()), folder))
    return llvm::createStringError(
        ec, "cannot make a temporary folder: " + ec.message() +
                "\nset TMPDIR to a folder that can be written");
  std::unique_ptr<WorkerEvaluator> e(new WorkerEvaluator(std::move(options)));
  e->temporary = folder.str().str();
  e->compilers.warmUp(e->compilers.size());
  e->runners.warmUp(1);
  return std::move(e);
}

WorkerEvaluator::~WorkerEvaluator() {
  compilers.killAll();
  runners.killAll();
  llvm::sys::fs::remove_directories(temporary);
}

void WorkerEvaluator::setModelSizes(int64_t weightBytes, int64_t dataBytes) {
  // A model that fits a cache finds itself there at its next run: no minimum.
  options.timing.coldWeightBytes = std::min(weightBytes, kMaxColdWeights);
  options.timing.coldDataBytes = std::min(dataBytes, kMaxColdData);
}

/// What a reply means for a trial. An error: the run cannot go on.
static llvm::Expected<std::pair<Outcome, std::string>> judge(const Reply &reply,
                                                             bool &cancelled) {
  using Result = std::pair<Outcome, std::string>;
  switch (reply.status) {
  case ReplyStatus::TimedOut:
    return Result(Outcome::Timeout, reply.message);
  case ReplyStatus::Crashed:
    return Result(Outcome::Crashed, reply.message);
  case ReplyStatus::OutOfMemory:
    return Result(Outcome::TooLarge, reply.message);
  case ReplyStatus::Cancelled:
    cancelled = true;
    return Result(Outcome::Timeout, reply.message);
  case ReplyStatus::Unavailable:
    return llvm::createStringError("no worker: %s", reply.message.c_str());
  case ReplyStatus::Answered:
    break;
  }
  llvm::StringRef word = reply.body.getString("outcome").value_or("");
  if (word == kEnvironmentFailed)
    return llvm::createStringError(
        "a worker cannot go on: " +
        reply.body.getString("message").value_or("").str() +
        "\nfree some space, or set TMPDIR to a folder that can be written; "
        "then run the same command again: what was found is kept");
  auto outcome = db::parseOutcome(word);
  if (!outcome)
    return llvm::createStringError("a worker answered with the outcome '%s'",
                                   word.str().c_str());
  std::string message = reply.body.getString("message").value_or("").str();
  if (*outcome != Outcome::Ok && message.empty())
    message = word.str();
  return Result(*outcome, message);
}

static std::vector<double> numbers(const json::Array *array) {
  std::vector<double> result;
  if (array)
    for (const json::Value &v : *array)
      if (auto n = v.getAsNumber())
        result.push_back(*n);
  return result;
}

std::string WorkerEvaluator::policy() const {
  return "cold copies, min of samples, v1";
}

llvm::Expected<Peak> WorkerEvaluator::peak() {
  TimingScope alone(lock, TimingLock::Mode::Measure, options.stop);
  Job job;
  job.request = json::Object{
      {"op", "peak"}, {"threads", options.threads}, {"isa", options.isa}};
  job.limit = std::chrono::seconds(60);
  Reply reply = runners.run(std::move(job));
  bool cancelled = false;
  auto outcome = judge(reply, cancelled);
  if (!outcome)
    return outcome.takeError();
  Peak peak;
  if (cancelled)
    return peak;
  if (outcome->first != Outcome::Ok)
    return llvm::createStringError("cannot measure the machine's peak: %s",
                                   outcome->second.c_str());
  peak.gflops = reply.body.getNumber("gflops").value_or(0);
  peak.gflopsSingle = reply.body.getNumber("gflops_single").value_or(0);
  peak.gbytes = reply.body.getNumber("gbytes").value_or(0);
  peak.isa = reply.body.getString("isa").value_or("").str();
  return peak;
}

std::string WorkerEvaluator::referenceFile(const KernelSource &kernel,
                                           llvm::StringRef ending) const {
  return temporary + "/ref-" + kernel.hash + ending.str();
}

json::Object WorkerEvaluator::runRequest(llvm::StringRef op,
                                         const KernelSource &kernel) const {
  auto signature = signatures.find(kernel.hash);
  return json::Object{
      {"op", op},
      {"kernel", json::Object{{"id", kernel.hash},
                              {"seed", int64_t(options.seed)},
                              {"signature", signature->second.toJson()}}},
      {"cache", referenceFile(kernel, ".bin")},
      {"threads", options.threads}};
}

llvm::Expected<MeasureResult>
WorkerEvaluator::prepare(const KernelSource &kernel) {
  MeasureResult result;
  Job job;
  std::string object = referenceFile(kernel, ".so");
  job.request = json::Object{{"op", "reference"},
                             {"ir", kernel.ir},
                             {"target", options.target},
                             {"object", object}};
  job.limit = milliseconds(options.compileSeconds * 2);
  Reply reply;
  {
    TimingScope shared(lock, TimingLock::Mode::Compile, options.stop);
    reply = compilers.run(std::move(job));
  }
  auto outcome = judge(reply, result.cancelled);
  if (!outcome)
    return outcome.takeError();
  std::tie(result.outcome, result.message) = *outcome;
  if (result.cancelled || result.outcome != Outcome::Ok)
    return result;
  const json::Object *o = reply.body.getObject("signature");
  auto signature = KernelSignature::fromJson(o ? *o : json::Object());
  if (!signature)
    return signature.takeError();
  signatures[kernel.hash] = std::move(*signature);

  CandidateSpec spec;
  spec.object = object;
  Job run;
  run.request = runRequest("reference", kernel);
  run.request["candidate"] = spec.toJson();
  run.limit = milliseconds(options.referenceSeconds);
  {
    TimingScope shared(lock, TimingLock::Mode::Compile, options.stop);
    reply = runners.run(std::move(run));
  }
  outcome = judge(reply, result.cancelled);
  if (!outcome)
    return outcome.takeError();
  std::tie(result.outcome, result.message) = *outcome;
  llvm::sys::fs::remove(object);
  return result;
}

std::string WorkerEvaluator::newObject() {
  return temporary + "/c" + std::to_string(objects++) + ".so";
}

llvm::Error
WorkerEvaluator::compile(const KernelSource &kernel,
                         llvm::ArrayRef<CandidateRequest> requests,
                         llvm::function_ref<void(size_t, CompileResult)> done) {
  std::vector<Job> jobs;
  std::vector<std::string> paths;
  for (const CandidateRequest &r : requests) {
    json::Array knobs;
    for (auto &[name, value] : r.knobs)
      knobs.push_back(json::Array{name, value});
    paths.push_back(newObject());
    Job job;
    job.request =
        json::Object{{"op", "compile"},
                     {"ir", kernel.ir},
                     {"target", options.target},
                     {"threads", options.threads},
                     {"object", paths.back()},
                     {"schedule", json::Object{{"name", r.scheduleName},
                                               {"text", r.scheduleText},
                                               {"knobs", std::move(knobs)}}}};
    job.limit = milliseconds(options.compileSeconds);
    jobs.push_back(std::move(job));
  }
  TimingScope shared(lock, TimingLock::Mode::Compile, options.stop);
  llvm::Error failure = llvm::Error::success();
  compilers.run(std::move(jobs), [&](size_t i, Reply reply) {
    CompileResult result;
    auto outcome = judge(reply, result.cancelled);
    if (!outcome) {
      failure = llvm::joinErrors(std::move(failure), outcome.takeError());
      result.cancelled = true;
      done(i, std::move(result));
      return;
    }
    std::tie(result.outcome, result.message) = *outcome;
    result.compileMs =
        reply.body.getNumber("compile_ms").value_or(reply.seconds * 1000);
    if (!result.cancelled && result.outcome == Outcome::Ok) {
      result.object = paths[i];
      result.objectHash =
          reply.body.getString("object_hash").value_or("").str();
      result.text = reply.body.getString("text").value_or("").str();
      const json::Object *call = reply.body.getObject("call");
      auto parsed = CallSpec::fromJson(call ? *call : json::Object());
      if (parsed) {
        result.call = std::move(*parsed);
      } else {
        result.outcome = Outcome::CompileFailed;
        result.message = toString(parsed.takeError());
      }
    }
    done(i, std::move(result));
  });
  return failure;
}

llvm::Expected<MeasureResult>
WorkerEvaluator::measure(const KernelSource &kernel,
                         const CompileResult &candidate, double dropAboveNs) {
  MeasureResult result;
  TimingScope alone(lock, TimingLock::Mode::Measure, options.stop);
  CandidateSpec spec{candidate.object, candidate.call};
  TimingPolicy timing = options.timing;
  timing.dropAboveNs = dropAboveNs;
  Job job;
  job.request = runRequest("measure", kernel);
  job.request["candidate"] = spec.toJson();
  job.request["timing"] = timing.toJson();
  job.limit = milliseconds(options.measureSeconds);
  Reply reply = runners.run(std::move(job));
  auto outcome = judge(reply, result.cancelled);
  if (!outcome)
    return outcome.takeError();
  std::tie(result.outcome, result.message) = *outcome;
  result.samplesNs = numbers(reply.body.getArray("samples_ns"));
  result.error = reply.body.getNumber("error").value_or(0);
  if (!result.cancelled && result.outcome == Outcome::Ok &&
      result.samplesNs.empty())
    return llvm::createStringError("the runner gave no times");
  return result;
}

llvm::Expected<std::vector<MeasureResult>>
WorkerEvaluator::compare(const KernelSource &kernel,
                         llvm::ArrayRef<const CompileResult *> candidates) {
  TimingScope alone(lock, TimingLock::Mode::Measure, options.stop);
  json::Array specs;
  for (const CompileResult *c : candidates)
    specs.push_back(CandidateSpec{c->object, c->call}.toJson());
  Job job;
  job.request = runRequest("compare", kernel);
  job.request["candidates"] = std::move(specs);
  job.request["timing"] = options.timing.toJson();
  job.request["rounds"] = 9;
  job.request["seconds"] = 0.5;
  job.limit = milliseconds(options.measureSeconds * 2);
  Reply reply = runners.run(std::move(job));
  std::vector<MeasureResult> results(candidates.size());
  bool cancelled = false;
  auto outcome = judge(reply, cancelled);
  if (!outcome)
    return outcome.takeError();
  const json::Array *all = reply.body.getArray("samples_ns");
  for (auto [i, result] : llvm::enumerate(results)) {
    std::tie(result.outcome, result.message) = *outcome;
    result.cancelled = cancelled;
    if (all && i < all->size())
      result.samplesNs = numbers((*all)[i].getAsArray());
  }
  return results;
}

llvm::Expected<MeasureResult>
WorkerEvaluator::readSchedules(const KernelSource &kernel,
                               llvm::ArrayRef<std::string> files) {
  MeasureResult result;
  Job job;
  job.request = json::Object{{"op", "schedules"},
                             {"ir", kernel.ir},
                             {"target", options.target},
                             {"threads", options.threads},
                             {"files", json::Array(files)}};
  job.limit = milliseconds(options.compileSeconds);
  Reply reply = compilers.run(std::move(job));
  auto outcome = judge(reply, result.cancelled);
  if (!outcome)
    return outcome.takeError();
  std::tie(result.outcome, result.message) = *outcome;
  return result;
}

llvm::Expected<std::vector<MeasureResult>>
WorkerEvaluator::compareModels(llvm::ArrayRef<std::string> artifacts,
                               double seconds) {
  TimingScope alone(lock, TimingLock::Mode::Measure, options.stop);
  Job job;
  job.request = json::Object{{"op", "models"},
                             {"artifacts", json::Array(artifacts)},
                             {"threads", options.threads},
                             {"seed", int64_t(options.seed)},
                             {"seconds", seconds}};
  job.limit = milliseconds(options.referenceSeconds);
  Reply reply = runners.run(std::move(job));
  std::vector<MeasureResult> results(artifacts.size());
  bool cancelled = false;
  auto outcome = judge(reply, cancelled);
  if (!outcome)
    return outcome.takeError();
  const json::Array *all = reply.body.getArray("samples_ns");
  for (auto [i, result] : llvm::enumerate(results)) {
    std::tie(result.outcome, result.message) = *outcome;
    result.cancelled = cancelled;
    result.error = reply.body.getNumber("difference").value_or(0);
    if (all && i < all->size())
      result.samplesNs = numbers((*all)[i].getAsArray());
  }
  return results;
}
