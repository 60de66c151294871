//===- Timing.cpp ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Timing.h"
#include "targets/runner/Runtime.h"
#include "targets/runner/Serve.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <sys/mman.h>
#include <utility>

using namespace pto::targets;
namespace json = llvm::json;

/// More copies than this of a small tensor add nothing but set-up time.
static constexpr int64_t kMaxCopies = 256;

json::Object TimingPolicy::toJson() const {
  return json::Object{{"cold_weight_bytes", coldWeightBytes},
                      {"cold_data_bytes", coldDataBytes},
                      {"min_sample_ns", minSampleNs},
                      {"max_total_ns", maxTotalNs},
                      {"samples", samples},
                      {"min_samples", minSamples},
                      {"drop_above_ns", dropAboveNs}};
}

TimingPolicy TimingPolicy::fromJson(const json::Object &o) {
  TimingPolicy p;
  p.coldWeightBytes = o.getInteger("cold_weight_bytes").value_or(0);
  p.coldDataBytes = o.getInteger("cold_data_bytes").value_or(0);
  p.minSampleNs = o.getNumber("min_sample_ns").value_or(p.minSampleNs);
  p.maxTotalNs = o.getNumber("max_total_ns").value_or(p.maxTotalNs);
  p.samples = unsigned(o.getInteger("samples").value_or(p.samples));
  p.minSamples = unsigned(o.getInteger("min_samples").value_or(p.minSamples));
  p.dropAboveNs = o.getNumber("drop_above_ns").value_or(0);
  return p;
}

bool pto::targets::isStable(const std::vector<double> &samples) {
  constexpr double kClose = 1.015;
  if (samples.size() < 3)
    return false;
  std::vector<double> v = samples;
  std::nth_element(v.begin(), v.begin() + 2, v.end());
  return v[2] < kClose * std::min(v[0], v[1]);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

Copies::Copies(const char *source, size_t bytes, int64_t coldBytes,
               unsigned stagger) {
  stride = std::max<size_t>(64, (bytes + 63) / 64 * 64);
  n = unsigned(std::clamp<int64_t>(
      (coldBytes + int64_t(stride) / 2) / int64_t(stride), 1, kMaxCopies));
  size_t offset = stagger % 64 * 64;
  mapped = offset + stride * n;
  void *p = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED)
    return;
  region = static_cast<char *>(p);
  first = region + offset;
  for (unsigned i = 0; i < n; ++i)
    std::memcpy(first + i * stride, source, bytes);
}

Copies::~Copies() {
  if (region)
    ::munmap(region, mapped);
}

Copies::Copies(Copies &&o) noexcept
    : region(std::exchange(o.region, nullptr)), first(o.first),
      mapped(o.mapped), stride(o.stride), n(o.n) {}

Copies &Copies::operator=(Copies &&o) noexcept {
  std::swap(region, o.region);
  std::swap(first, o.first);
  std::swap(mapped, o.mapped);
  std::swap(stride, o.stride);
  std::swap(n, o.n);
  return *this;
}

static llvm::Error noMemory() {
  return llvm::createStringError(
      std::make_error_code(std::errc::not_enough_memory),
      "no memory for the copies that timing rotates through");
}

/// A tensor's part of `total` cold bytes.
static int64_t part(int64_t total, int64_t bytes, int64_t all) {
  return all ? int64_t(double(total) * bytes / all) : 0;
}

TimingData::TimingData(const KernelData &data, const TimingPolicy &policy)
    : data(data), policy(policy), copies(data.signature().arguments.size()) {
  for (const ArgumentSpec &a : data.signature().arguments)
    (a.role == Role::Weight ? weightBytes : dataBytes) += a.tensor.bytes();
}

llvm::Expected<Copies *> TimingData::argument(unsigned i) {
  if (copies[i])
    return &copies[i];
  const ArgumentSpec &a = data.signature().arguments[i];
  int64_t bytes = a.tensor.bytes();
  int64_t cold = a.role == Role::Weight
                     ? part(policy.coldWeightBytes, bytes, weightBytes)
                     : part(policy.coldDataBytes, bytes, dataBytes);
  std::vector<char> blank;
  const char *source = data.input(i).data();
  if (a.role == Role::Output) {
    blank.assign(bytes, 0);
    source = blank.data();
  }
  copies[i] = Copies(source, bytes, cold, i * 17);
  if (!copies[i])
    return noMemory();
  return &copies[i];
}

//===----------------------------------------------------------------------===//
// TimedKernel
//===----------------------------------------------------------------------===//

llvm::Expected<TimedKernel> TimedKernel::prepare(const LoadedKernel &kernel,
                                                 const CallSpec &call,
                                                 TimingData &data,
                                                 pto_runtime *runtime) {
  TimedKernel timed(kernel, data, runtime);
  const KernelSignature &sig = data.data.signature();
  if (kernel.prepack) {
    int64_t all = 0;
    std::vector<std::vector<char>> results;
    std::vector<void *> args;
    for (unsigned i : call.prepackArguments)
      args.push_back(data.data.input(i).data());
    for (const TensorSpec &t : call.prepackResults) {
      all += t.bytes();
      results.emplace_back(t.bytes() + 64);
      args.push_back(reinterpret_cast<char *>(
          (uintptr_t(results.back().data()) + 63) & ~uintptr_t(63)));
    }
    reportPhase("packing weights");
    kernel.prepack(args.data(), sig.dims.data(), runtime);
    for (auto [j, t] : llvm::enumerate(call.prepackResults)) {
      timed.packed.emplace_back(
          static_cast<char *>(args[call.prepackArguments.size() + j]),
          t.bytes(), part(data.policy.coldWeightBytes, t.bytes(), all),
          unsigned(sig.arguments.size() + j) * 17);
      if (!timed.packed.back())
        return noMemory();
    }
  }
  std::vector<CallSpec::Operand> operands = call.operands;
  if (operands.empty())
    for (unsigned i = 0; i < sig.arguments.size(); ++i)
      operands.push_back({false, i});
  for (const CallSpec::Operand &op : operands) {
    timed.rawIndex.push_back(op.prepacked ? -1 : int(op.index));
    if (op.prepacked) {
      timed.operands.push_back(&timed.packed[op.index]);
      continue;
    }
    auto copies = data.argument(op.index);
    if (!copies)
      return copies.takeError();
    timed.operands.push_back(*copies);
  }
  timed.arguments.resize(operands.size());
  return std::move(timed);
}

void TimedKernel::setArguments(uint64_t turn) {
  for (size_t i = 0; i < operands.size(); ++i)
    arguments[i] = operands[i]->at(turn);
}

double TimedKernel::sample(uint64_t calls) {
  const int64_t *dims = data->data.signature().dims.data();
  holdThreads(runtime, true);
  double start = nowNs();
  for (uint64_t i = 0; i < calls; ++i) {
    setArguments(turn++);
    kernel.kernel(arguments.data(), dims, runtime);
  }
  double ns = (nowNs() - start) / double(calls);
  holdThreads(runtime, false);
  return ns;
}

uint64_t TimedKernel::calibrate() {
  reportPhase("timing");
  double ns = sample(1); // Page faults, branch predictors.
  // Short kernels: the clock and the first calls would mislead.
  for (uint64_t calls = 1; ns * calls < data->policy.minSampleNs / 8;) {
    calls = calls * 4;
    ns = sample(calls);
  }
  return std::max<uint64_t>(
      1, uint64_t(data->policy.minSampleNs / std::max(ns, 1.0)));
}

std::vector<double> TimedKernel::measure() {
  const TimingPolicy &policy = data->policy;
  uint64_t calls = calibrate();
  std::vector<double> samples;
  double start = nowNs(), least = HUGE_VAL;
  while (true) {
    samples.push_back(sample(calls));
    least = std::min(least, samples.back());
    if (policy.dropAboveNs && samples.front() > policy.dropAboveNs)
      break;
    if (samples.size() < policy.minSamples)
      continue;
    double used = nowNs() - start;
    if (samples.size() < policy.samples && used < policy.maxTotalNs)
      continue;
    bool mayWin = !policy.dropAboveNs || least < policy.dropAboveNs / 2;
    if (!mayWin || isStable(samples) ||
        used > TimingPolicy::kPatience * policy.maxTotalNs)
      break;
  }
  return samples;
}

CheckResult TimedKernel::checkAgain() {
  const KernelSignature &sig = data->data.signature();
  setArguments(turn);
  std::vector<const char *> outputs(sig.arguments.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (rawIndex[i] < 0)
      continue;
    const ArgumentSpec &a = sig.arguments[rawIndex[i]];
    char *p = static_cast<char *>(arguments[i]);
    if (a.role == Role::InOut)
      std::memcpy(p, data->data.input(rawIndex[i]).data(), a.tensor.bytes());
    else if (a.role == Role::Output)
      poison(p, a.tensor, 4);
    else
      continue;
    outputs[rawIndex[i]] = p;
  }
  kernel.kernel(arguments.data(), sig.dims.data(), runtime);
  return data->data.judge(outputs);
}
