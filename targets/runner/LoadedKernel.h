//===- LoadedKernel.h - A candidate's code in this process ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Loads a shared object with one kernel and calls it by the convention of
// lowering/README.md. Only ever used inside a runner process: the code may do
// anything.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_LOADEDKERNEL_H
#define PTO_TARGETS_RUNNER_LOADEDKERNEL_H

#include "targets/cpu/runtime/pto_runtime.h"
#include "targets/runner/Signature.h"

namespace pto::targets {

/// A candidate as the manager names it.
struct CandidateSpec {
  std::string object; ///< Path of the shared object.
  CallSpec call;

  static llvm::Expected<CandidateSpec> fromJson(const llvm::json::Object &o);
  llvm::json::Object toJson() const;
};

class LoadedKernel {
public:
  using Entry = void (*)(void *const *, const int64_t *, pto_runtime *);

  /// The object exports `kernel` and, if the call has one, `kernel_prepack`.
  static llvm::Expected<LoadedKernel> load(const CandidateSpec &spec);
  LoadedKernel(LoadedKernel &&other) noexcept;
  ~LoadedKernel();

  Entry kernel = nullptr;
  Entry prepack = nullptr; ///< Arguments: raw weights, then results.

private:
  LoadedKernel() = default;
  void *handle = nullptr;
};

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_LOADEDKERNEL_H
