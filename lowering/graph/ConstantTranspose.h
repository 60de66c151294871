//===- ConstantTranspose.h - Constants stored in another order --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_GRAPH_CONSTANTTRANSPOSE_H
#define PTO_LOWERING_GRAPH_CONSTANTTRANSPOSE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace pto::lowering {

/// The value of `op` if it transposes a constant of whole bytes per element;
/// null otherwise. Most of what constants need, without generating code.
mlir::ElementsAttr transposedConstant(mlir::linalg::GenericOp op);

} // namespace pto::lowering

#endif // PTO_LOWERING_GRAPH_CONSTANTTRANSPOSE_H
