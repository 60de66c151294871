//===- Runtime.cpp --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Runtime.h"

using namespace pto::targets;

static void serialFor(pto_runtime *, int64_t n, pto_body body, void *arg) {
  for (int64_t i = 0; i < n; ++i)
    body(arg, i);
}

void RuntimeDeleter::operator()(pto_runtime *runtime) const { delete runtime; }

RuntimePtr pto::targets::makeRuntime(unsigned threads) {
  auto *runtime = new pto_runtime();
  runtime->parallel_for = serialFor;
  return RuntimePtr(runtime);
}
