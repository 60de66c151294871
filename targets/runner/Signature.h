//===- Signature.h - What a kernel's arguments look like --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Enough for a runner to make a kernel's inputs, call it by the calling
// convention of lowering/README.md, and judge its outputs, without MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_SIGNATURE_H
#define PTO_TARGETS_RUNNER_SIGNATURE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <string>
#include <vector>

namespace pto::targets {

/// Element types. Integers of MLIR are signless: these are storage classes.
enum class DType { F32, F64, F16, BF16, I1, I8, I16, I32, I64 };

size_t byteSize(DType type);
bool isFloat(DType type);
llvm::StringRef name(DType type);
std::optional<DType> parseDType(llvm::StringRef name);

struct TensorSpec {
  DType dtype = DType::F32;
  std::vector<int64_t> shape; ///< All sizes known.

  int64_t elements() const;
  int64_t bytes() const { return elements() * int64_t(byteSize(dtype)); }
};

enum class Role {
  Input,  ///< Changes with each run of the model.
  Weight, ///< Constant; may be packed.
  Output, ///< Written; what it holds before does not matter.
  InOut   ///< Written; what it holds before is an input.
};

struct ArgumentSpec {
  TensorSpec tensor;
  Role role = Role::Input;
  /// Integer inputs are drawn from [0, indexBound): they may be indices. 0
  /// draws small numbers of both signs.
  int64_t indexBound = 0;
};

/// The raw kernel, before any schedule.
struct KernelSignature {
  std::vector<ArgumentSpec> arguments;
  /// The sizes of `?` dims, as the calling convention's `dims`.
  std::vector<int64_t> dims;
  int64_t reductionLength = 1; ///< Longest sum behind one output element.
  int64_t flops = 0;           ///< Multiply and add count as two.

  llvm::json::Object toJson() const;
  static llvm::Expected<KernelSignature> fromJson(const llvm::json::Object &o);
};

/// How a scheduled kernel takes the raw kernel's arguments.
struct CallSpec {
  struct Operand {
    bool prepacked = false; ///< `index` names a result of prepack.
    unsigned index = 0;
  };
  /// Empty: the raw arguments in order.
  std::vector<Operand> operands;
  /// Raw arguments of prepack and its results; both empty without one.
  std::vector<unsigned> prepackArguments;
  std::vector<TensorSpec> prepackResults;

  llvm::json::Object toJson() const;
  static llvm::Expected<CallSpec> fromJson(const llvm::json::Object &o);
};

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_SIGNATURE_H
