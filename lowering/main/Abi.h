//===- Abi.h - Numbers that main shares with the runtime --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Generated code reaches the runtime's structs by offset; the static_asserts
// keep the two sides equal.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_MAIN_ABI_H
#define PTO_LOWERING_MAIN_ABI_H

#include "targets/cpu/runtime/pto_artifact.h"
#include <cstddef>

namespace pto::lowering::abi {

constexpr int64_t tensorSize = 80;
constexpr int64_t tensorData = 0;
constexpr int64_t tensorShape = 16;
static_assert(sizeof(pto_tensor) == tensorSize);
static_assert(offsetof(pto_tensor, data) == tensorData);
static_assert(offsetof(pto_tensor, shape) == tensorShape);

constexpr int64_t callInputs = 0;
constexpr int64_t callOutputs = 8;
constexpr int64_t callWeights = 16;
constexpr int64_t callArena = 24;
static_assert(offsetof(pto_call, inputs) == callInputs);
static_assert(offsetof(pto_call, outputs) == callOutputs);
static_assert(offsetof(pto_call, weights) == callWeights);
static_assert(offsetof(pto_call, arena) == callArena);

} // namespace pto::lowering::abi

#endif // PTO_LOWERING_MAIN_ABI_H
