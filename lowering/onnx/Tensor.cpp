//===- Tensor.cpp - A value of the ONNX graph -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Tensor.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "onnx/onnx_pb.h"

using namespace mlir;
using onnx::TensorProto;

namespace pto::lowering {

/// Larger constants are resources (lowering/README.md, "Imported").
static constexpr size_t kMaxInlineBytes = 64;
/// What the widest vector loads want.
static constexpr size_t kResourceAlignment = 64;

Type storageType(MLIRContext *context, int dtype) {
  Builder b(context);
  switch (dtype) {
  case TensorProto::FLOAT:
    return b.getF32Type();
  case TensorProto::DOUBLE:
    return b.getF64Type();
  case TensorProto::FLOAT16:
    return b.getF16Type();
  case TensorProto::BFLOAT16:
    return b.getBF16Type();
  case TensorProto::BOOL:
  case TensorProto::INT8:
  case TensorProto::UINT8:
    return b.getI8Type();
  case TensorProto::INT16:
  case TensorProto::UINT16:
    return b.getIntegerType(16);
  case TensorProto::INT32:
  case TensorProto::UINT32:
    return b.getI32Type();
  case TensorProto::INT64:
  case TensorProto::UINT64:
    return b.getI64Type();
  default:
    return {};
  }
}

llvm::StringRef onnxTypeName(int dtype) {
  switch (dtype) {
  case TensorProto::FLOAT:
    return "float";
  case TensorProto::DOUBLE:
    return "double";
  case TensorProto::FLOAT16:
    return "float16";
  case TensorProto::BFLOAT16:
    return "bfloat16";
  case TensorProto::BOOL:
    return "bool";
  case TensorProto::INT8:
    return "int8";
  case TensorProto::UINT8:
    return "uint8";
  case TensorProto::INT16:
    return "int16";
  case TensorProto::UINT16:
    return "uint16";
  case TensorProto::INT32:
    return "int32";
  case TensorProto::UINT32:
    return "uint32";
  case TensorProto::INT64:
    return "int64";
  case TensorProto::UINT64:
    return "uint64";
  case TensorProto::STRING:
    return "string";
  case TensorProto::COMPLEX64:
    return "complex64";
  case TensorProto::COMPLEX128:
    return "complex128";
  case TensorProto::UNDEFINED:
    return "undefined";
  default:
    return "a data type of less than 8 bits or an 8-bit float";
  }
}

unsigned dtypeBytes(int dtype) {
  switch (dtype) {
  case TensorProto::BOOL:
  case TensorProto::INT8:
  case TensorProto::UINT8:
    return 1;
  case TensorProto::FLOAT16:
  case TensorProto::BFLOAT16:
  case TensorProto::INT16:
  case TensorProto::UINT16:
    return 2;
  case TensorProto::FLOAT:
  case TensorProto::INT32:
  case TensorProto::UINT32:
    return 4;
  case TensorProto::DOUBLE:
  case TensorProto::INT64:
  case TensorProto::UINT64:
    return 8;
  default:
    return 0;
  }
}

bool isFloat(int dtype) {
  return dtype == TensorProto::FLOAT || dtype == TensorProto::DOUBLE ||
         dtype == TensorProto::FLOAT16 || dtype == TensorProto::BFLOAT16;
}
bool isSigned(int dtype) {
  return dtype == TensorProto::INT8 || dtype == TensorProto::INT16 ||
         dtype == TensorProto::INT32 || dtype == TensorProto::INT64;
}
bool isUnsigned(int dtype) {
  return dtype == TensorProto::UINT8 || dtype == TensorProto::UINT16 ||
         dtype == TensorProto::UINT32 || dtype == TensorProto::UINT64;
}
bool isBool(int dtype) { return dtype == TensorProto::BOOL; }

Tensor Tensor::fromValue(int dtype, Value value) {
  Tensor t;
  t.dtype = dtype;
  t.type = cast<RankedTensorType>(value.getType());
  t.value = value;
  return t;
}

Tensor Tensor::fromConstant(int dtype, ElementsAttr constant) {
  Tensor t;
  t.dtype = dtype;
  t.type = cast<RankedTensorType>(constant.getType());
  t.constant = constant;
  return t;
}

Tensor Tensor::fromElements(int dtype, RankedTensorType type,
                            ArrayRef<OpFoldResult> elements) {
  assert(type.getNumElements() == int64_t(elements.size()));
  Tensor t;
  t.dtype = dtype;
  t.type = type;
  t.elements.emplace(elements);
  SmallVector<Attribute> attrs;
  for (OpFoldResult e : elements) {
    auto attr = dyn_cast<Attribute>(e);
    if (!attr)
      return t;
    attrs.push_back(attr);
  }
  auto dense = DenseElementsAttr::get(type, attrs);
  if (dense.isSplat() || dense.getRawData().size() <= kMaxInlineBytes)
    t.constant = dense;
  else
    t.constant = makeConstant(type, dense.getRawData(), "folded");
  return t;
}

ElementsAttr makeConstant(RankedTensorType type, ArrayRef<char> bytes,
                          StringRef name) {
  if (bytes.size() <= kMaxInlineBytes)
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  auto blob = HeapAsmResourceBlob::allocateAndCopyWithAlign(
      bytes, kResourceAlignment, /*dataIsMutable=*/false);
  auto &manager =
      DenseResourceElementsHandle::getManagerInterface(type.getContext());
  return DenseResourceElementsAttr::get(type,
                                        manager.insert(name, std::move(blob)));
}

SmallVector<char> constantBytes(ElementsAttr constant) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(constant))
    return SmallVector<char>(resource.getData());
  auto dense = cast<DenseElementsAttr>(constant);
  ArrayRef<char> raw = dense.getRawData();
  SmallVector<char> bytes(raw);
  if (dense.isSplat())
    for (int64_t i = 1, e = dense.getNumElements(); i < e; ++i)
      bytes.append(raw.begin(), raw.end());
  if (dense.getNumElements() == 0)
    bytes.clear();
  return bytes;
}

ElementsAttr reshapeConstant(ElementsAttr constant, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(constant.getType()).clone(shape);
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(constant))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  return cast<DenseElementsAttr>(constant).reshape(type);
}

std::optional<SmallVector<OpFoldResult>> trackedElements(const Tensor &tensor) {
  if (tensor.elements)
    return tensor.elements;
  if (!tensor.constant || tensor.type.getNumElements() > kMaxTrackedElements)
    return std::nullopt;
  DenseElementsAttr dense = dyn_cast<DenseElementsAttr>(tensor.constant);
  if (!dense)
    dense = DenseElementsAttr::getFromRawBuffer(tensor.type,
                                                constantBytes(tensor.constant));
  SmallVector<OpFoldResult> elements;
  for (Attribute attr : dense.getValues<Attribute>())
    elements.push_back(attr);
  return elements;
}

std::optional<SmallVector<int64_t>> knownIntegers(const Tensor &tensor) {
  if (!isa<IntegerType>(tensor.elementType()))
    return std::nullopt;
  SmallVector<int64_t> result;
  // Long constant lists (Gather indices, pads) are fine too.
  if (tensor.constant) {
    SmallVector<char> bytes = constantBytes(tensor.constant);
    auto dense = DenseElementsAttr::getFromRawBuffer(tensor.type, bytes);
    for (const APInt &v : dense.getValues<APInt>())
      result.push_back(isSigned(tensor.dtype) ? v.getSExtValue()
                                              : int64_t(v.getZExtValue()));
    return result;
  }
  if (!tensor.elements)
    return std::nullopt;
  for (OpFoldResult e : *tensor.elements) {
    auto attr = dyn_cast_if_present<IntegerAttr>(dyn_cast<Attribute>(e));
    if (!attr)
      return std::nullopt;
    result.push_back(isSigned(tensor.dtype)
                         ? attr.getValue().getSExtValue()
                         : int64_t(attr.getValue().getZExtValue()));
  }
  return result;
}

TypedAttr knownScalar(const Tensor &tensor) {
  if (!tensor.type.hasStaticShape() || tensor.type.getNumElements() != 1)
    return {};
  auto elements = trackedElements(tensor);
  if (!elements)
    return {};
  return dyn_cast_if_present<TypedAttr>(dyn_cast<Attribute>(elements->front()));
}

} // namespace pto::lowering
