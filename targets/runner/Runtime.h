//===- Runtime.h - The parallel loops that candidates call ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_RUNTIME_H
#define PTO_TARGETS_RUNNER_RUNTIME_H

#include "targets/cpu/runtime/pto_runtime.h"
#include <memory>

namespace pto::targets {

struct RuntimeDeleter {
  void operator()(pto_runtime *runtime) const;
};
using RuntimePtr = std::unique_ptr<pto_runtime, RuntimeDeleter>;

/// The runtime of artifacts, with `threads` threads.
RuntimePtr makeRuntime(unsigned threads);

/// Between hold and release the threads stay awake, as they do while an
/// artifact runs a model.
void holdThreads(pto_runtime *runtime, bool hold);

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_RUNTIME_H
