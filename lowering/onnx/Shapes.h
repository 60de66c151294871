//===- Shapes.h - Sizes, reshapes and broadcasts ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on sizes that are known (attributes) or not (index values), and
// the shape changes that builders share. All of it works with dynamic dims.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_ONNX_SHAPES_H
#define PTO_LOWERING_ONNX_SHAPES_H

#include "lowering/onnx/Node.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

namespace pto::lowering {

using Sizes = llvm::SmallVector<mlir::OpFoldResult>;

//===- Scalars ------------------------------------------------------------===//

/// An element as an SSA scalar.
mlir::Value scalarValue(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::OpFoldResult element);
/// A scalar of float or integer `type`; `value` is rounded to it.
mlir::Value scalarConstant(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Type type, double value);
/// Integer element <-> size (index).
mlir::OpFoldResult toIndex(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::OpFoldResult element);
mlir::OpFoldResult fromIndex(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::OpFoldResult size, mlir::Type type);
std::optional<int64_t> known(mlir::OpFoldResult size);

//===- Arithmetic on sizes (index) ----------------------------------------===//

mlir::OpFoldResult addSizes(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::OpFoldResult x, mlir::OpFoldResult y);
mlir::OpFoldResult subSizes(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::OpFoldResult x, mlir::OpFoldResult y);
mlir::OpFoldResult mulSizes(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::OpFoldResult x, mlir::OpFoldResult y);
/// Rounds down.
mlir::OpFoldResult divSizes(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::OpFoldResult x, mlir::OpFoldResult y);
mlir::OpFoldResult minSizes(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::OpFoldResult x, mlir::OpFoldResult y);
mlir::OpFoldResult maxSizes(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::OpFoldResult x, mlir::OpFoldResult y);
/// Certainly not negative: sizes, and what is computed from them.
bool nonNegative(mlir::OpFoldResult size);
mlir::OpFoldResult product(mlir::OpBuilder &b, mlir::Location loc,
                           llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// The elements of a small integer tensor of static shape; read at run time
/// where they are not tracked. None for other tensors.
std::optional<Sizes> elementsOf(Node &n, Tensor &tensor);

//===- Tensors ------------------------------------------------------------===//

/// The sizes of a value, `tensor.dim` where dynamic.
Sizes sizesOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value);
/// The sizes of a tensor, without making a constant an SSA value.
Sizes sizesOf(Node &n, Tensor &tensor);
/// The static part of `sizes`, `?` elsewhere.
llvm::SmallVector<int64_t>
staticShape(llvm::ArrayRef<mlir::OpFoldResult> sizes);
/// An uninitialised tensor: destination of an op that writes all of it.
mlir::Value emptyTensor(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes,
                        mlir::Type elementType);
/// emptyTensor filled with a scalar.
mlir::Value filledTensor(mlir::OpBuilder &b, mlir::Location loc,
                         llvm::ArrayRef<mlir::OpFoldResult> sizes,
                         mlir::Value scalar);

/// The value in another shape with as many elements (row-major), through
/// collapse_shape and expand_shape.
mlir::Value reshape(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                    llvm::ArrayRef<mlir::OpFoldResult> sizes);
/// The same for a tensor; constants and tracked elements stay what they are.
Tensor reshape(Node &n, Tensor &tensor,
               llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// Groups of dims that drop the dims in `drop` (they have size 1).
llvm::SmallVector<mlir::ReassociationIndices>
dropDims(int64_t rank, llvm::ArrayRef<bool> drop);

/// The numpy broadcast of shapes; a dynamic dim beside one that is not 1 is
/// taken to be equal to it.
llvm::Expected<Sizes> broadcastSizes(Node &n, llvm::ArrayRef<Sizes> shapes);

/// An operand of an op over `sizes`: the tensor without the dims that are
/// broadcast (size 1 where the result has another), and the map that leaves
/// these dims out.
struct BroadcastOperand {
  mlir::Value value;
  mlir::AffineMap map;
};
BroadcastOperand broadcastOperand(Node &n, Tensor &tensor,
                                  llvm::ArrayRef<mlir::OpFoldResult> sizes);

} // namespace pto::lowering

#endif // PTO_LOWERING_ONNX_SHAPES_H
