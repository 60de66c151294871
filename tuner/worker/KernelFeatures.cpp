//===- KernelFeatures.cpp - What makes kernels alike
//------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/worker/KernelFeatures.h"
#include "schedules/engine/Knobs.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace pto::tuner {

KernelFeatures featuresOf(mlir::func::FuncOp kernel,
                          const targets::KernelSignature &signature) {
  schedules::KernelFacts facts = schedules::factsOf(kernel);
  llvm::json::Object o{{"shape", llvm::json::Array(facts.shape)},
                       {"k", facts.reduction},
                       {"bits", facts.elementBits},
                       {"flops", signature.flops}};
  unsigned n = 0;
  for (const targets::ArgumentSpec &a : signature.arguments)
    o["arg" + std::to_string(n++)] = llvm::json::Array(a.tensor.shape);
  KernelFeatures result;
  result.op = facts.kind;
  llvm::raw_string_ostream(result.features) << llvm::json::Value(std::move(o));
  return result;
}

} // namespace pto::tuner
