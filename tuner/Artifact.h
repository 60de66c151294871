//===- Artifact.h - A compiled model, loaded --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Opens a .so that pto-compile made and runs it through its C interface, found
// by the exported symbol `pto_artifact`.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_ARTIFACT_H
#define PTO_TUNER_ARTIFACT_H

#include "targets/cpu/runtime/pto_artifact.h"
#include "tuner/TensorFile.h"
#include <memory>

namespace pto::tuner {

class Artifact {
public:
  static llvm::Expected<std::unique_ptr<Artifact>> open(llvm::StringRef path);
  ~Artifact();

  const pto_artifact_table &table() const { return *entry; }
  const pto_model &model() const { return *entry->model; }
  /// The shape of input `i` that `version` is for; -1: any size.
  std::vector<int64_t> shapeOf(const pto_version &version, size_t i) const;

private:
  Artifact() = default;
  void *handle = nullptr;
  const pto_artifact_table *entry = nullptr;
};

/// A context of an artifact.
class Instance {
public:
  static llvm::Expected<std::unique_ptr<Instance>>
  create(const Artifact &artifact, const pto_options &options);
  ~Instance();

  /// Sets the inputs of later runs; they are referred to, not copied.
  llvm::Error bind(const std::vector<HostTensor> &inputs);
  llvm::Error run();
  /// Copies of the last run's outputs.
  std::vector<HostTensor> outputs() const;

  int32_t threads() const { return artifact.table().threads(context); }
  /// The version that the last run took; none: null.
  const pto_version *version() const {
    int32_t used = artifact.table().version_used(context);
    return used < 0 ? nullptr : artifact.model().versions + used;
  }
  uint64_t arenaBytes() const { return artifact.table().arena_bytes(context); }
  /// Adds each step's nanoseconds to ns[step] from now on; null: stop.
  void profile(uint64_t *ns) { artifact.table().profile(context, ns); }

private:
  explicit Instance(const Artifact &artifact) : artifact(artifact) {}
  llvm::Error failure(int status) const;

  const Artifact &artifact;
  pto_context *context = nullptr;
  std::vector<pto_tensor> in, out;
};

/// Inputs for timing: seeded values between -1 and 1; integers 0 or 1, which
/// are valid indices almost everywhere. `shapes` gives sizes of dynamic dims by
/// input name.
llvm::Expected<std::vector<HostTensor>> seededInputs(
    const pto_signature &signature, uint64_t seed,
    llvm::function_ref<const std::vector<int64_t> *(llvm::StringRef)> shapeOf);

} // namespace pto::tuner

#endif // PTO_TUNER_ARTIFACT_H
