//===- SharedPacking.cpp - One packed copy of each weight -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/SharedPacking.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "schedules/engine/Engine.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace pto::tuner {
namespace {

llvm::ArrayRef<char> bytesOf(ElementsAttr value) {
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return dense.getRawData();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      return blob->getData();
  return {};
}

/// Identifies the matrix or filter that a call reads, its largest constant, by
/// its contents; empty if there is none.
std::string weightsOf(func::CallOp call) {
  ElementsAttr largest;
  for (Value operand : call.getOperands()) {
    ElementsAttr value;
    if (matchPattern(operand, m_Constant(&value)) &&
        value.getShapedType().getRank() >= 2 &&
        (!largest || value.getNumElements() > largest.getNumElements()))
      largest = value;
  }
  if (!largest || bytesOf(largest).empty())
    return {};
  llvm::ArrayRef<char> bytes = bytesOf(largest);
  std::string key;
  llvm::raw_string_ostream(key)
      << largest.getType() << ' '
      << llvm::xxh3_64bits(llvm::StringRef(bytes.data(), bytes.size()));
  return key;
}

template <typename Visit> void forCalls(ModuleOp module, Visit visit) {
  if (auto main = module.lookupSymbol<func::FuncOp>("main"))
    main.walk([&](func::CallOp call) { visit(call); });
}

/// The values of a schedule's knobs that are worth passing on. Which loop runs
/// in parallel, and few rows, are right for one shape only.
std::string knobsToShare(MLIRContext *context, const ScheduleChoice &choice) {
  llvm::json::Object values;
  auto knobs = schedules::knobsIn(context, choice.text);
  if (!knobs) {
    llvm::consumeError(knobs.takeError());
    return {};
  }
  constexpr int64_t fewRows = 4;
  for (const auto &[name, text] : *knobs) {
    int64_t number;
    bool isNumber = !llvm::StringRef(text).getAsInteger(10, number);
    if (name == "parallel_dim" || name == "threads" ||
        (name == "rows" && isNumber && number < fewRows))
      continue;
    if (isNumber)
      values[name] = number;
    else
      values[name] = text;
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(values));
  return text;
}

} // namespace

void SharedPacking::learn(ModuleOp module,
                          llvm::ArrayRef<const CompiledKernel *> kernels) {
  llvm::StringMap<ScheduleChoice> choices;
  for (const CompiledKernel *kernel : kernels) {
    if (kernel->prepackSymbol.empty() || kernel->choice.text.empty())
      continue;
    ScheduleChoice &shared = choices[kernel->symbol];
    shared.source = "nearest";
    shared.name = kernel->choice.name;
    shared.knobs = knobsToShare(module.getContext(), kernel->choice);
    shared.reason = "packs its weights as " + kernel->symbol;
  }
  forCalls(module, [&](func::CallOp call) {
    auto known = choices.find(call.getCallee());
    if (known == choices.end())
      return;
    std::string weights = weightsOf(call);
    if (!weights.empty())
      byWeights.try_emplace(weights, known->second);
  });
}

void SharedPacking::suggest(ModuleOp module,
                            llvm::ArrayRef<KernelJob *> jobs) const {
  llvm::StringMap<KernelJob *> bySymbol;
  for (KernelJob *job : jobs)
    if (job->choice.source == "none" || job->choice.source == "nearest")
      bySymbol[job->symbol] = job;
  forCalls(module, [&](func::CallOp call) {
    auto job = bySymbol.find(call.getCallee());
    if (job == bySymbol.end())
      return;
    auto known = byWeights.find(weightsOf(call));
    if (known == byWeights.end())
      return;
    job->second->choice = known->second;
    bySymbol.erase(job); // The first call decides.
  });
}

} // namespace pto::tuner
