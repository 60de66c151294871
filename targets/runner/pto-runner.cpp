//===- pto-runner.cpp - Loads, checks and times candidates ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The worker that runs generated code. It links no compiler: what a candidate
// breaks here is this process alone. Started by pto-tune (targets/runner).
//
//===----------------------------------------------------------------------===//
#include "targets/runner/RunService.h"
#include "targets/runner/Serve.h"

int main() {
  pto::targets::RunService service;
  return pto::targets::serve([&](const llvm::json::Object &request) {
    return service.handle(request);
  });
}
