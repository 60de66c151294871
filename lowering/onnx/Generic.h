//===- Generic.h - Shorthands for linalg.generic ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What most builders emit: an elementwise op over the broadcast shape, or a
// reduction. The scalar functions see booleans as i1 and unsigned integers as
// signless ones; whoever needs the signs asks the tensor's dtype.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_ONNX_GENERIC_H
#define PTO_LOWERING_ONNX_GENERIC_H

#include "lowering/onnx/Shapes.h"

namespace pto::lowering {

/// The scalar computation: one value per input to the result.
using ScalarFn = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, llvm::ArrayRef<mlir::Value>)>;

/// One linalg.generic that applies `fn` on the broadcast of `inputs`. Known
/// single elements become constants of the body; when every input is tracked
/// by element, the result is computed here instead.
llvm::Expected<Tensor> elementwise(Node &n, llvm::ArrayRef<Tensor *> inputs,
                                   int resultDtype, ScalarFn fn);

/// The same over given sizes, which the inputs must broadcast to.
Tensor elementwiseOver(Node &n, llvm::ArrayRef<Tensor *> inputs,
                       llvm::ArrayRef<mlir::OpFoldResult> sizes,
                       int resultDtype, ScalarFn fn);

/// Combines an element with the accumulator: fn(b, loc, {element, acc}).
/// Reduces `axes` (sorted) of `input`, starting from `init`; the reduced dims
/// are gone from the result.
mlir::Value reduce(mlir::OpBuilder &b, mlir::Location loc, mlir::Value input,
                   llvm::ArrayRef<int64_t> axes, mlir::Value init, ScalarFn fn);

/// The identity elements of max and min for a stored type.
mlir::Value lowest(mlir::OpBuilder &b, mlir::Location loc, int dtype);
mlir::Value highest(mlir::OpBuilder &b, mlir::Location loc, int dtype);

/// Maximum or minimum of two scalars of `dtype`; NaN wins, as ONNX wants it.
mlir::Value scalarMax(mlir::OpBuilder &b, mlir::Location loc, int dtype,
                      mlir::Value x, mlir::Value y);
mlir::Value scalarMin(mlir::OpBuilder &b, mlir::Location loc, int dtype,
                      mlir::Value x, mlir::Value y);

/// x * y and x + y for floats or integers. `contract` lets the pair become
/// one fused multiply-add.
mlir::Value scalarMul(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                      mlir::Value y, bool contract = false);
mlir::Value scalarAdd(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                      mlir::Value y, bool contract = false);

/// Converts a scalar in computing form; out-of-range floats are clamped.
mlir::Value scalarCast(mlir::OpBuilder &b, mlir::Location loc, mlir::Value v,
                       int from, int to);

/// An elementwise linalg.generic that also sees its position: fn(b, loc, loop
/// indices, operands). Values in memory form.
struct Operand {
  mlir::Value value;
  mlir::AffineMap map;
};
mlir::Value
indexed(Node &n, llvm::ArrayRef<Operand> operands,
        llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Type elementType,
        llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                       llvm::ArrayRef<mlir::Value>,
                                       llvm::ArrayRef<mlir::Value>)>
            fn);

/// Conv's and MatMul's cores, for the quantised forms too. They read the
/// attributes of `n` but not its inputs.
llvm::Expected<Tensor> convolution(Node &n, Tensor &x, Tensor &weight);
llvm::Expected<Tensor> matrixProduct(Node &n, Tensor &a, Tensor &b);

/// The type in which sums of `type` are kept: float32 for 16-bit floats.
mlir::Type sumType(mlir::Type type);
/// A sum in sumType as a tensor of `dtype`.
Tensor roundSum(Node &n, mlir::Value sum, int dtype);

/// A contraction: out += a * b over `maps` (a, b, out); a and b are extended to
/// out's type.
mlir::Value contract(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lhs,
                     mlir::Value rhs, mlir::Value init,
                     llvm::ArrayRef<mlir::AffineMap> maps,
                     llvm::ArrayRef<bool> isReduction);

} // namespace pto::lowering

#endif // PTO_LOWERING_ONNX_GENERIC_H
