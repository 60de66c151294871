//===- SizeChecks.h - Sizes that must agree when a model runs ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// With dynamic dims, sizes that do not fit each other are found only when the
// model runs. Each such condition becomes a `cf.assert` in @main, which is
// checked before any kernel runs: generated code relies on it, or it would
// read and write outside its buffers.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_ONNX_SIZECHECKS_H
#define PTO_LOWERING_ONNX_SIZECHECKS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace pto::lowering {

/// A comparison of sizes that must hold. Nothing where it is known to hold;
/// false where it is known not to.
bool requireSizes(mlir::OpBuilder &b, mlir::Location loc,
                  mlir::arith::CmpIPredicate predicate, mlir::OpFoldResult x,
                  mlir::OpFoldResult y, llvm::StringRef message);

/// "node 'NAME': ", for messages.
std::string nodePrefix(mlir::Location loc);

/// The conditions that follow from the ops themselves: operands of linalg ops
/// have one size for each loop, slices are inside, reshapes keep the number of
/// elements, casts tell the truth, nothing has a negative size.
mlir::LogicalResult addSizeChecks(mlir::func::FuncOp main);

} // namespace pto::lowering

#endif // PTO_LOWERING_ONNX_SIZECHECKS_H
