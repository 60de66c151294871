//===- PtoOps.h - transform.pto.* ops ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SCHEDULES_ENGINE_EXTENSION_PTOOPS_H
#define PTO_SCHEDULES_ENGINE_EXTENSION_PTOOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/IR/TransformTypes.h"
#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "schedules/engine/extension/PtoOps.h.inc"

namespace pto::schedules {
/// Adds transform.pto.* to the transform dialect.
void registerPtoExtension(mlir::DialectRegistry &registry);
} // namespace pto::schedules

#endif // PTO_SCHEDULES_ENGINE_EXTENSION_PTOOPS_H
