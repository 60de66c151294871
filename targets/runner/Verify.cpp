//===- Verify.cpp ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Verify.h"
#include "targets/runner/Clock.h"
#include "targets/runner/Serve.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <cstring>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace pto::targets;

static bool isOutput(Role role) {
  return role == Role::Output || role == Role::InOut;
}

static const char *describe(DataSet set) {
  switch (set) {
  case DataSet::Mixed:
    return "inputs of both signs";
  case DataSet::Negative:
    return "negative inputs";
  case DataSet::Positive:
    return "positive inputs";
  }
  return "";
}

static uint64_t contentHash(const GuardedBuffer &b) {
  return llvm::xxh3_64bits(
      llvm::ArrayRef<uint8_t>(reinterpret_cast<uint8_t *>(b.data()), b.size()));
}

/// The floating-point mode: rounding, denormals, exception masks. Kernels that
/// change it would change their caller's numbers.
static uint32_t floatMode() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~0x3Fu; // Without the sticky exception flags.
#elif defined(__aarch64__)
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return uint32_t(fpcr);
#else
  return 0;
#endif
}

KernelData::KernelData(KernelSignature signature, uint64_t seed)
    : sig(std::move(signature)) {
  // Each set has its own placement: aligned to the element only, ending at an
  // unmapped page, and beginning at one.
  sets.push_back({DataSet::Mixed, Placement::Odd, {}, {}, {}});
  sets.push_back({DataSet::Negative, Placement::Flush, {}, {}, {}});
  if (sig.flops < kThreeSetsFlops)
    sets.push_back({DataSet::Positive, Placement::Aligned, {}, {}, {}});
  for (Set &set : sets)
    for (auto [i, argument] : llvm::enumerate(sig.arguments)) {
      set.inputs.emplace_back();
      set.inputHashes.push_back(0);
      if (argument.role == Role::Output)
        continue;
      set.inputs.back() =
          GuardedBuffer(argument.tensor.bytes(),
                        byteSize(argument.tensor.dtype), set.placement);
      if (!set.inputs.back())
        continue; // Reported by the first run.
      fillInput(set.inputs.back().data(), argument, set.kind,
                seed * 1315423911u + i * 2654435761u + unsigned(set.kind));
      set.inputHashes.back() = contentHash(set.inputs.back());
    }
}

llvm::Expected<CheckResult>
KernelData::runSet(const LoadedKernel &kernel, const CallSpec &call,
                   pto_runtime *runtime, const Set &set,
                   std::vector<std::vector<char>> *results,
                   unsigned index) const {
  auto noMemory = [] {
    return llvm::createStringError(
        std::make_error_code(std::errc::not_enough_memory),
        "no memory for the kernel's buffers");
  };
  std::vector<GuardedBuffer> outputs(sig.arguments.size());
  std::vector<void *> raw(sig.arguments.size());
  for (auto [i, argument] : llvm::enumerate(sig.arguments)) {
    const TensorSpec &t = argument.tensor;
    if (argument.role != Role::Output && !set.inputs[i])
      return noMemory();
    raw[i] = set.inputs[i].data();
    if (!isOutput(argument.role))
      continue;
    outputs[i] = GuardedBuffer(t.bytes(), byteSize(t.dtype), set.placement);
    if (!outputs[i])
      return noMemory();
    raw[i] = outputs[i].data();
    if (argument.role == Role::InOut)
      std::memcpy(outputs[i].data(), set.inputs[i].data(), t.bytes());
    else
      poison(outputs[i].data(), t, results ? 1 : 2);
  }

  CheckResult result;
  auto problem = [&](const llvm::Twine &text) {
    result.problem = (text + " on " + describe(set.kind)).str();
    return result;
  };
  std::vector<GuardedBuffer> packed;
  if (kernel.prepack) {
    std::vector<void *> args;
    for (unsigned i : call.prepackArguments)
      args.push_back(raw[i]);
    for (const TensorSpec &t : call.prepackResults) {
      packed.emplace_back(t.bytes(), byteSize(t.dtype), set.placement);
      if (!packed.back())
        return noMemory();
      poison(packed.back().data(), t, 3);
      args.push_back(packed.back().data());
    }
    reportPhase("packing weights");
    kernel.prepack(args.data(), sig.dims.data(), runtime);
    for (const GuardedBuffer &b : packed)
      if (!b.guardsIntact())
        return problem("packing wrote outside of its result");
  }
  std::vector<void *> args;
  for (const CallSpec::Operand &op : call.operands)
    args.push_back(op.prepacked ? packed[op.index].data() : raw[op.index]);
  if (call.operands.empty())
    args = raw;

  reportPhase(std::string("running the kernel on ") + describe(set.kind));
  uint32_t mode = floatMode();
  runtime->fault = PTO_FAULT_NONE;
  double start = nowNs();
  kernel.kernel(args.data(), sig.dims.data(), runtime);
  double ns = nowNs() - start;
  if (runtime->fault != PTO_FAULT_NONE)
    return problem("the kernel reported fault " +
                   llvm::Twine(int(runtime->fault)));
  if (floatMode() != mode)
    return problem("the kernel changed the floating-point mode");
  reportPhase("");

  std::vector<const char *> written(sig.arguments.size());
  for (auto [i, argument] : llvm::enumerate(sig.arguments)) {
    if (argument.role != Role::Output &&
        (contentHash(set.inputs[i]) != set.inputHashes[i] ||
         !set.inputs[i].guardsIntact()))
      return problem("argument " + llvm::Twine(i) +
                     ", an input, was written to");
    if (!isOutput(argument.role))
      continue;
    if (!outputs[i].guardsIntact())
      return problem("argument " + llvm::Twine(i) +
                     " was written outside of its bounds");
    written[i] = outputs[i].data();
    if (results)
      (*results)[i].assign(outputs[i].data(),
                           outputs[i].data() + outputs[i].size());
  }
  if (results)
    return result;
  result = judge(written, index);
  result.firstRunNs = ns;
  if (!result.problem.empty())
    return problem(result.problem);
  return result;
}

CheckResult KernelData::judge(llvm::ArrayRef<const char *> outputs,
                              unsigned set) const {
  CheckResult result;
  unsigned number = 0;
  for (auto [i, argument] : llvm::enumerate(sig.arguments)) {
    if (!isOutput(argument.role))
      continue;
    double allowed = tolerance(argument.tensor.dtype, sig.reductionLength);
    Verdict v = compareOutput(outputs[i], sets[set].expected[i].data(),
                              argument.tensor, allowed);
    result.worstError = std::max(result.worstError, v.worst);
    result.tolerance = std::max(result.tolerance, allowed);
    if (!v.equal && result.problem.empty())
      result.problem = "result " + std::to_string(number) + " " + v.message;
    ++number;
  }
  return result;
}

llvm::Expected<CheckResult> KernelData::check(const LoadedKernel &kernel,
                                              const CallSpec &call,
                                              pto_runtime *runtime,
                                              double hopelessNs) const {
  CheckResult total;
  for (auto [index, set] : llvm::enumerate(sets)) {
    auto result = runSet(kernel, call, runtime, set, nullptr, index);
    if (!result)
      return result.takeError();
    total.worstError = std::max(total.worstError, result->worstError);
    total.tolerance = result->tolerance;
    total.problem = result->problem;
    if (!total.problem.empty())
      break;
    if (index == 0) {
      total.firstRunNs = result->firstRunNs;
      total.partial = hopelessNs > 0 && result->firstRunNs > hopelessNs;
      if (total.partial)
        break;
    }
  }
  return total;
}

namespace {
/// The reference runs serially: its numbers must not depend on timing.
struct SerialRuntime : pto_runtime {
  SerialRuntime() : pto_runtime() {
    parallel_for = [](pto_runtime *, int64_t n, pto_body body, void *arg) {
      for (int64_t i = 0; i < n; ++i)
        body(arg, i);
    };
  }
};
} // namespace

llvm::Error KernelData::computeReference(const CandidateSpec &reference,
                                         llvm::StringRef cacheFile) {
  auto kernel = LoadedKernel::load(reference);
  if (!kernel)
    return kernel.takeError();
  SerialRuntime runtime;
  for (auto [index, set] : llvm::enumerate(sets)) {
    set.expected.assign(sig.arguments.size(), {});
    auto result =
        runSet(*kernel, reference.call, &runtime, set, &set.expected, index);
    if (!result)
      return result.takeError();
    if (!result->problem.empty())
      return llvm::createStringError("the reference is faulty: %s",
                                     result->problem.c_str());
  }
  // Written under another name first: a file that is there is complete.
  std::string partial = (cacheFile + ".partial").str();
  std::error_code ec;
  {
    llvm::raw_fd_ostream out(partial, ec);
    if (!ec)
      for (const Set &set : sets)
        for (const std::vector<char> &output : set.expected)
          out.write(output.data(), output.size());
    out.close();
    if (out.has_error()) {
      ec = out.error();
      out.clear_error();
    }
  }
  if (!ec && ::rename(partial.c_str(), cacheFile.str().c_str()))
    ec = llvm::errnoAsErrorCode();
  if (ec)
    return llvm::createStringError(ec, "cannot write %s: %s",
                                   cacheFile.str().c_str(),
                                   ec.message().c_str());
  return llvm::Error::success();
}

llvm::Error KernelData::loadReference(llvm::StringRef cacheFile) {
  auto file = llvm::MemoryBuffer::getFile(cacheFile, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return llvm::createStringError(file.getError(), "cannot read %s",
                                   cacheFile.str().c_str());
  llvm::StringRef rest = (*file)->getBuffer();
  for (Set &set : sets) {
    set.expected.assign(sig.arguments.size(), {});
    for (auto [i, argument] : llvm::enumerate(sig.arguments)) {
      if (!isOutput(argument.role))
        continue;
      size_t bytes = argument.tensor.bytes();
      if (rest.size() < bytes)
        return llvm::createStringError("%s is too short",
                                       cacheFile.str().c_str());
      set.expected[i].assign(rest.data(), rest.data() + bytes);
      rest = rest.drop_front(bytes);
    }
  }
  return llvm::Error::success();
}
