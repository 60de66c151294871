//===- Dtype.h - Element types of the C interface ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_MAIN_DTYPE_H
#define PTO_LOWERING_MAIN_DTYPE_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace pto::lowering {

/// pto_abi.h's number for an element type; 0 if it has none. Signless integers
/// count as signed unless `isUnsigned`.
int32_t abiType(mlir::Type element, bool isUnsigned = false);

/// "f32", "u8", ... for people.
llvm::StringRef abiTypeName(int32_t dtype);

} // namespace pto::lowering

#endif // PTO_LOWERING_MAIN_DTYPE_H
