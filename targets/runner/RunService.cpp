//===- RunService.cpp -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/RunService.h"
#include "targets/cpu/Peak.h"
#include "targets/runner/ModelRun.h"
#include "targets/runner/Serve.h"
#include <chrono>
#include <thread>

using namespace pto::targets;
namespace json = llvm::json;

/// Of a comparison, however slow the rivals are.
static constexpr int64_t kMinRounds = 3;
/// Of the limit above which a candidate is dropped.
static constexpr double kHopelessFactor = 5;
/// Below this, a full check costs next to nothing.
static constexpr double kHopelessNs = 20e6;

static json::Object answer(llvm::StringRef outcome,
                           const llvm::Twine &message = "") {
  // A json::Value of a StringRef refers to it: copy.
  return json::Object{{"outcome", outcome.str()},
                      {"message", json::fixUTF8(message.str())}};
}

/// Errors of the runner's own making: the candidate is not to blame, but it
/// could not be judged. Memory is the one that a candidate can cause.
static json::Object answer(llvm::Error error) {
  std::string outcome = "compile-failed";
  std::error_code code;
  std::string message;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &e) {
    code = e.convertToErrorCode();
    message = e.message();
  });
  if (code == std::errc::not_enough_memory)
    outcome = "too-large";
  else if (isEnvironmental(code))
    outcome = kEnvironmentFailed;
  return answer(outcome, message);
}

/// Indices out of range would crash the runner in a way that blames the
/// candidate for it.
static llvm::Error validate(const CallSpec &call, const KernelSignature &sig) {
  size_t n = sig.arguments.size();
  std::vector<bool> seen(n, call.operands.empty());
  for (const CallSpec::Operand &op : call.operands) {
    if (op.index >= (op.prepacked ? call.prepackResults.size() : n))
      return llvm::createStringError("operand %u does not exist", op.index);
    if (!op.prepacked)
      seen[op.index] = true;
  }
  for (unsigned i : call.prepackArguments)
    if (i >= n || sig.arguments[i].role != Role::Weight)
      return llvm::createStringError("prepack takes argument %u, no weight", i);
  for (size_t i = 0; i < n; ++i)
    if (!seen[i] && (sig.arguments[i].role == Role::Output ||
                     sig.arguments[i].role == Role::InOut))
      return llvm::createStringError("the candidate has lost output %zu", i);
  return llvm::Error::success();
}

json::Object RunService::handle(const json::Object &request) {
  llvm::StringRef op = request.getString("op").value_or("");
  reportPhase("");
  if (op == "reference")
    return reference(request);
  if (op == "measure")
    return measure(request);
  if (op == "compare")
    return compare(request);
  if (op == "models")
    return models(request);
  if (op == "peak")
    return peak(request);
  return answer("compile-failed", "unknown request '" + op + "'");
}

llvm::Error RunService::select(const json::Object &request,
                               bool needReference) {
  const json::Object *kernel = request.getObject("kernel");
  if (!kernel)
    return llvm::createStringError("malformed request: kernel");
  llvm::StringRef id = kernel->getString("id").value_or("");
  if (id != current || id.empty() || !data) {
    const json::Object *signature = kernel->getObject("signature");
    if (!signature)
      return llvm::createStringError("malformed request: signature");
    auto parsed = KernelSignature::fromJson(*signature);
    if (!parsed)
      return parsed.takeError();
    timing.reset();
    data.reset(); // Before the next one is made: memory.
    reportPhase("making inputs");
    data = std::make_unique<KernelData>(std::move(*parsed),
                                        kernel->getInteger("seed").value_or(0));
    current = id.str();
    haveReference = false;
  }
  if (needReference && !haveReference) {
    if (llvm::Error error =
            data->loadReference(request.getString("cache").value_or("")))
      return error;
    haveReference = true;
  }
  return llvm::Error::success();
}

pto_runtime *RunService::runtimeFor(const json::Object &request) {
  unsigned wanted =
      std::max<unsigned>(1, request.getInteger("threads").value_or(1));
  if (!runtime || wanted != threads) {
    runtime = makeRuntime(wanted);
    threads = wanted;
  }
  return runtime.get();
}

TimingData &RunService::timingFor(const TimingPolicy &policy) {
  if (!timing || timing->policy.coldWeightBytes != policy.coldWeightBytes ||
      timing->policy.coldDataBytes != policy.coldDataBytes)
    timing = std::make_unique<TimingData>(*data, policy);
  timing->policy = policy;
  return *timing;
}

json::Object RunService::reference(const json::Object &request) {
  if (llvm::Error error = select(request, /*needReference=*/false))
    return answer(std::move(error));
  const json::Object *o = request.getObject("candidate");
  auto spec = CandidateSpec::fromJson(o ? *o : json::Object());
  if (!spec)
    return answer(spec.takeError());
  double start = nowNs();
  if (llvm::Error error = data->computeReference(
          *spec, request.getString("cache").value_or("")))
    return answer(std::move(error));
  haveReference = true;
  json::Object result = answer("ok");
  result["seconds"] = (nowNs() - start) / 1e9;
  return result;
}

namespace {
/// A loaded candidate together with what timing it needs.
struct Ready {
  CandidateSpec spec;
  LoadedKernel kernel;
};
} // namespace

static llvm::Expected<Ready> load(const json::Object *o,
                                  const KernelSignature &signature) {
  auto spec = CandidateSpec::fromJson(o ? *o : json::Object());
  if (!spec)
    return spec.takeError();
  if (llvm::Error error = validate(spec->call, signature))
    return std::move(error);
  reportPhase("loading");
  auto kernel = LoadedKernel::load(*spec);
  if (!kernel)
    return kernel.takeError();
  return Ready{std::move(*spec), std::move(*kernel)};
}

json::Object RunService::measure(const json::Object &request) {
  if (llvm::Error error = select(request, /*needReference=*/true))
    return answer(std::move(error));
  auto ready = load(request.getObject("candidate"), data->signature());
  if (!ready)
    return answer(ready.takeError());
  pto_runtime *loops = runtimeFor(request);

  const json::Object *p = request.getObject("timing");
  TimingPolicy policy = TimingPolicy::fromJson(p ? *p : json::Object());
  // The first run is cold: only far beyond the limit is a bound.
  double hopeless =
      policy.dropAboveNs > 0
          ? std::max(kHopelessFactor * policy.dropAboveNs, kHopelessNs)
          : 0;
  auto checked = data->check(ready->kernel, ready->spec.call, loops, hopeless);
  if (!checked)
    return answer(checked.takeError());
  json::Object result = answer("ok");
  result["error"] = checked->worstError;
  result["tolerance"] = checked->tolerance;
  if (!checked->problem.empty()) {
    result["outcome"] = "wrong-result";
    result["message"] = json::fixUTF8(checked->problem);
    return result;
  }
  if (checked->partial) {
    result["samples_ns"] = json::Array{checked->firstRunNs};
    return result;
  }
  TimingData &cold = timingFor(policy);
  auto timed =
      TimedKernel::prepare(ready->kernel, ready->spec.call, cold, loops);
  if (!timed)
    return answer(timed.takeError());
  result["samples_ns"] = json::Array(timed->measure());
  // What was timed must have been the same computation.
  CheckResult again = timed->checkAgain();
  if (!again.problem.empty()) {
    result["outcome"] = "wrong-result";
    result["message"] = json::fixUTF8(again.problem + " after " + "timing");
  }
  return result;
}

json::Object RunService::compare(const json::Object &request) {
  if (llvm::Error error = select(request, /*needReference=*/false))
    return answer(std::move(error));
  pto_runtime *loops = runtimeFor(request);
  const json::Object *p = request.getObject("timing");
  TimingData &cold = timingFor(TimingPolicy::fromJson(p ? *p : json::Object()));
  std::vector<Ready> ready;
  const json::Array *candidates = request.getArray("candidates");
  if (candidates)
    for (const json::Value &v : *candidates) {
      auto one = load(v.getAsObject(), data->signature());
      if (!one)
        return answer(one.takeError());
      ready.push_back(std::move(*one));
    }
  std::vector<TimedKernel> timed;
  std::vector<uint64_t> calls;
  for (Ready &r : ready) {
    auto one = TimedKernel::prepare(r.kernel, r.spec.call, cold, loops);
    if (!one)
      return answer(one.takeError());
    timed.push_back(std::move(*one));
  }
  for (TimedKernel &t : timed)
    calls.push_back(t.calibrate());

  std::vector<std::vector<double>> samples(timed.size());
  int64_t rounds = request.getInteger("rounds").value_or(9);
  double allowed = request.getNumber("seconds").value_or(1) * 1e9;
  double start = nowNs();
  auto goesOn = [&](int64_t round) {
    double used = nowNs() - start;
    return round < kMinRounds || (round < rounds && used < 2 * allowed) ||
           used < allowed ||
           (used < TimingPolicy::kPatience * allowed &&
            !llvm::all_of(samples, isStable));
  };
  for (int64_t round = 0; goesOn(round); ++round)
    for (size_t i = 0; i < timed.size(); ++i) {
      // Every other round backwards, so that none always comes first.
      size_t c = round % 2 ? timed.size() - 1 - i : i;
      samples[c].push_back(timed[c].sample(calls[c]));
    }
  json::Object result = answer("ok");
  json::Array all;
  for (auto &s : samples)
    all.push_back(json::Array(s));
  result["samples_ns"] = std::move(all);
  return result;
}

json::Object RunService::models(const json::Object &request) {
  std::vector<std::string> artifacts;
  if (const json::Array *list = request.getArray("artifacts"))
    for (const json::Value &v : *list)
      artifacts.push_back(v.getAsString().value_or("").str());
  auto times =
      compareModels(artifacts, request.getInteger("threads").value_or(1),
                    request.getNumber("seconds").value_or(1),
                    uint64_t(request.getInteger("seed").value_or(0)));
  if (!times)
    return answer(times.takeError());
  json::Object result = answer("ok");
  json::Array all;
  for (auto &s : times->samplesNs)
    all.push_back(json::Array(s));
  result["samples_ns"] = std::move(all);
  result["difference"] = times->difference;
  return result;
}

json::Object RunService::peak(const json::Object &request) {
  unsigned n = std::max<unsigned>(1, request.getInteger("threads").value_or(1));
  reportPhase("measuring the machine's peak");
  json::Object result = answer("ok");
  std::string isa = request.getString("isa").value_or("").str();
  if (isa.empty())
    isa = fmaIsa();
  // Spread over a second: a shared machine has slow moments.
  double single = 0, all = 0;
  for (int i = 0; i < 4; ++i) {
    if (i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    single = std::max(single, measureFmaPeak(1, isa.c_str()));
    all = std::max(all, n == 1 ? single : measureFmaPeak(n, isa.c_str()));
  }
  result["gflops_single"] = single;
  result["gflops"] = all;
  result["gbytes"] = measureReadBandwidth(n);
  result["isa"] = isa;
  return result;
}
