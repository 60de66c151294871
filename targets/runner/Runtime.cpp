//===- Runtime.cpp --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Runtime.h"
extern "C" {
#include "targets/cpu/runtime/pool.h"
}

using namespace pto::targets;

namespace {
struct PoolRuntime : pto_runtime {
  pto_pool *pool = nullptr;
};
} // namespace

static void serialFor(pto_runtime *, int64_t n, pto_body body, void *arg) {
  for (int64_t i = 0; i < n; ++i)
    body(arg, i);
}

static void poolFor(pto_runtime *runtime, int64_t n, pto_body body, void *arg) {
  pto_pool_run(static_cast<PoolRuntime *>(runtime)->pool, n, body, arg);
}

void RuntimeDeleter::operator()(pto_runtime *runtime) const {
  auto *r = static_cast<PoolRuntime *>(runtime);
  if (r->pool)
    pto_pool_destroy(r->pool);
  delete r;
}

RuntimePtr pto::targets::makeRuntime(unsigned threads) {
  auto *runtime = new PoolRuntime();
  if (threads > 1)
    runtime->pool = pto_pool_create(threads);
  runtime->parallel_for = runtime->pool ? poolFor : serialFor;
  return RuntimePtr(runtime);
}

void pto::targets::holdThreads(pto_runtime *runtime, bool hold) {
  pto_pool_hold(static_cast<PoolRuntime *>(runtime)->pool, hold);
}
