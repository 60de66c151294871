//===- Tensor.h - A value of the ONNX graph ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// MLIR's integers are signless and its i1 has no agreed memory form, so a
// value keeps ONNX's data type beside its tensor type: unsigned integers are
// signless, booleans are i8 holding 0 or 1.
//
// Small integer tensors (shapes, axes, ...) are also tracked element by
// element. That is how shape arithmetic disappears: an element is an attribute
// where it is known and an SSA scalar where it depends on a dynamic size.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_ONNX_TENSOR_H
#define PTO_LOWERING_ONNX_TENSOR_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace pto::lowering {

/// The element type that stores ONNX data type `dtype` (TensorProto::DataType);
/// null when there is none (strings, 4- and 8-bit floats, complex).
mlir::Type storageType(mlir::MLIRContext *context, int dtype);

/// ONNX's lower-case name of a data type: "float", "uint8", "bool", ...
llvm::StringRef onnxTypeName(int dtype);

/// Bytes of one stored element; 0 when storageType is null.
unsigned dtypeBytes(int dtype);

bool isFloat(int dtype);
bool isSigned(int dtype);   ///< A signed integer.
bool isUnsigned(int dtype); ///< An unsigned integer; bool is none.
bool isBool(int dtype);

/// Tensors with at most this many elements are tracked by element.
constexpr int64_t kMaxTrackedElements = 64;

struct Tensor {
  int dtype = 0;
  mlir::RankedTensorType type;
  /// At least one of these three is set.
  mlir::Value value;
  mlir::ElementsAttr constant;
  std::optional<llvm::SmallVector<mlir::OpFoldResult>> elements;

  explicit operator bool() const { return bool(type); }
  int64_t rank() const { return type.getRank(); }
  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }
  mlir::Type elementType() const { return type.getElementType(); }

  static Tensor fromValue(int dtype, mlir::Value value);
  static Tensor fromConstant(int dtype, mlir::ElementsAttr constant);
  static Tensor fromElements(int dtype, mlir::RankedTensorType type,
                             llvm::ArrayRef<mlir::OpFoldResult> elements);
};

/// A constant of `type` from little-endian row-major bytes: inline up to 64
/// bytes, else a resource called `name`.
mlir::ElementsAttr makeConstant(mlir::RankedTensorType type,
                                llvm::ArrayRef<char> bytes,
                                llvm::StringRef name);

/// The bytes of a constant made by makeConstant (a splat is expanded).
llvm::SmallVector<char> constantBytes(mlir::ElementsAttr constant);

/// The same data seen in another shape.
mlir::ElementsAttr reshapeConstant(mlir::ElementsAttr constant,
                                   llvm::ArrayRef<int64_t> shape);

/// The elements, if the tensor is small and they are tracked.
std::optional<llvm::SmallVector<mlir::OpFoldResult>>
trackedElements(const Tensor &tensor);

/// All elements as integers, when every one is known.
std::optional<llvm::SmallVector<int64_t>> knownIntegers(const Tensor &tensor);

/// The attribute, when the tensor has one element and it is known.
mlir::TypedAttr knownScalar(const Tensor &tensor);

} // namespace pto::lowering

#endif // PTO_LOWERING_ONNX_TENSOR_H
