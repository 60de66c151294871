//===- pto-worker.cpp - Compiles candidates -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The worker that links the compiler. Started by pto-tune.
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Serve.h"
#include "tuner/worker/CompileService.h"

int main() {
  pto::tuner::CompileService service;
  return pto::targets::serve([&](const llvm::json::Object &request) {
    return service.handle(request);
  });
}
