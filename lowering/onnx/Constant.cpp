//===- Constant.cpp - Constants, shapes and ranges ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "lowering/onnx/TensorData.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "onnx/onnx_pb.h"

using namespace mlir;
using onnx::TensorProto;

namespace pto::lowering {

llvm::Error buildConstant(Node &n) {
  OpBuilder &b = n.b;
  for (onnx::AttributeProto &a : *n.proto().mutable_attribute()) {
    auto list = [&](int dtype, ArrayRef<Attribute> values, bool scalar) {
      SmallVector<int64_t> shape;
      if (!scalar)
        shape.push_back(values.size());
      auto type =
          RankedTensorType::get(shape, storageType(b.getContext(), dtype));
      auto dense = DenseElementsAttr::get(type, values);
      n.set(0,
            Tensor::fromConstant(dtype, makeConstant(type, constantBytes(dense),
                                                     n.proto().output(0))));
    };
    SmallVector<Attribute> values;
    if (a.name() == "value") {
      auto tensor =
          readTensor(b.getContext(), *a.mutable_t(), n.proto().output(0));
      if (!tensor)
        return tensor.takeError();
      n.set(0, *tensor);
    } else if (a.name() == "value_float" || a.name() == "value_floats") {
      for (float f : a.floats())
        values.push_back(b.getF32FloatAttr(f));
      if (a.name() == "value_float")
        values.push_back(b.getF32FloatAttr(a.f()));
      list(TensorProto::FLOAT, values, a.name() == "value_float");
    } else if (a.name() == "value_int" || a.name() == "value_ints") {
      for (int64_t i : a.ints())
        values.push_back(b.getI64IntegerAttr(i));
      if (a.name() == "value_int")
        values.push_back(b.getI64IntegerAttr(a.i()));
      list(TensorProto::INT64, values, a.name() == "value_int");
    } else {
      return n.unsupported("attribute '" + a.name() + "'");
    }
    return llvm::Error::success();
  }
  return n.invalid("a constant without a value");
}

llvm::Error buildConstantOfShape(Node &n) {
  OpBuilder &b = n.b;
  auto dims = elementsOf(n, n.in(0));
  if (!dims)
    return n.unsupported("a shape of unknown length");
  int dtype = TensorProto::FLOAT;
  TypedAttr value = b.getF32FloatAttr(0);
  if (auto *a = n.attr("value")) {
    TensorProto proto = a->t();
    auto tensor = readTensor(b.getContext(), proto, "value");
    if (!tensor)
      return tensor.takeError();
    dtype = tensor->dtype;
    value = knownScalar(*tensor);
    if (!value)
      return n.invalid("'value' must have one element");
  }
  Sizes sizes;
  for (OpFoldResult d : *dims) {
    sizes.push_back(toIndex(b, n.loc, d));
    if (known(sizes.back()).value_or(0) < 0)
      return n.invalid("a negative size");
  }
  SmallVector<int64_t> shape = staticShape(sizes);
  if (!ShapedType::isDynamicShape(shape)) {
    auto type = RankedTensorType::get(shape, value.getType());
    n.set(0,
          Tensor::fromConstant(dtype, cast<ElementsAttr>(DenseElementsAttr::get(
                                          type, Attribute(value)))));
    return llvm::Error::success();
  }
  Value scalar = arith::ConstantOp::create(b, n.loc, value);
  n.set(0, dtype, filledTensor(b, n.loc, sizes, scalar));
  return llvm::Error::success();
}

llvm::Error buildRange(Node &n) {
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int dtype = n.in(0).dtype;
  Type type = n.in(0).elementType();
  SmallVector<OpFoldResult> bounds;
  for (size_t i = 0; i < 3; ++i) {
    if (!n.in(i).type.hasStaticShape() || n.in(i).type.getNumElements() != 1)
      return n.invalid("start, limit and delta must be scalars");
    Tensor scalar = reshape(n, n.in(i), {});
    auto elements = elementsOf(n, scalar);
    bounds.push_back(elements->front());
  }
  auto number = [](OpFoldResult v) -> std::optional<double> {
    auto attr = dyn_cast<Attribute>(v);
    if (auto f = dyn_cast_if_present<FloatAttr>(attr))
      return f.getValueAsDouble();
    if (auto i = dyn_cast_if_present<IntegerAttr>(attr))
      return i.getValue().getSExtValue();
    return std::nullopt;
  };
  auto start = number(bounds[0]), limit = number(bounds[1]),
       delta = number(bounds[2]);
  OpFoldResult count;
  if (start && limit && delta) {
    if (*delta == 0)
      return n.invalid("delta is 0");
    count = b.getIndexAttr(
        std::max<int64_t>(0, std::ceil((*limit - *start) / *delta)));
  } else if (isSigned(dtype) && delta == 1.0) {
    count = maxSizes(b, loc,
                     subSizes(b, loc, toIndex(b, loc, bounds[1]),
                              toIndex(b, loc, bounds[0])),
                     b.getIndexAttr(0));
  } else {
    // max(ceil((limit - start) / delta), 0), in the type of the operands or,
    // for integers, in double.
    SmallVector<Value> v;
    for (OpFoldResult bound : bounds) {
      Value scalar = scalarValue(b, loc, bound);
      v.push_back(scalarCast(b, loc, scalar, dtype, TensorProto::DOUBLE));
    }
    Value span = b.createOrFold<arith::SubFOp>(loc, v[1], v[0]);
    Value steps = b.createOrFold<arith::DivFOp>(loc, span, v[2]);
    Value rounded = b.createOrFold<math::CeilOp>(loc, steps);
    count = maxSizes(
        b, loc,
        toIndex(b, loc,
                getAsOpFoldResult(scalarCast(
                    b, loc, rounded, TensorProto::DOUBLE, TensorProto::INT64))),
        b.getIndexAttr(0));
  }
  auto element = [&](OpBuilder &b, Location loc, Value index) -> Value {
    Value first = scalarValue(b, loc, bounds[0]);
    Value step = scalarValue(b, loc, bounds[2]);
    Value i;
    if (isFloat(dtype)) {
      Value wide =
          b.createOrFold<arith::IndexCastOp>(loc, b.getI64Type(), index);
      i = b.createOrFold<arith::SIToFPOp>(loc, type, wide);
    } else {
      i = b.createOrFold<arith::IndexCastOp>(loc, type, index);
    }
    return scalarAdd(b, loc, first, scalarMul(b, loc, i, step));
  };
  if (known(count) && *known(count) <= kMaxTrackedElements) {
    SmallVector<OpFoldResult> elements;
    for (int64_t i = 0; i < *known(count); ++i)
      elements.push_back(getAsOpFoldResult(
          element(b, loc, arith::ConstantIndexOp::create(b, loc, i))));
    n.set(0, Tensor::fromElements(dtype,
                                  RankedTensorType::get({*known(count)}, type),
                                  elements));
    return llvm::Error::success();
  }
  Value init = emptyTensor(b, loc, {count}, type);
  auto op = linalg::GenericOp::create(
      b, loc, TypeRange{init.getType()}, ValueRange{}, ValueRange{init},
      {b.getMultiDimIdentityMap(1)},
      SmallVector<utils::IteratorType>{utils::IteratorType::parallel},
      [&](OpBuilder &b, Location loc, ValueRange) {
        Value index = linalg::IndexOp::create(b, loc, 0);
        linalg::YieldOp::create(b, loc, element(b, loc, index));
      });
  n.set(0, dtype, op.getResult(0));
  return llvm::Error::success();
}

llvm::Error buildShape(Node &n) {
  OpBuilder &b = n.b;
  Sizes sizes = sizesOf(n, n.in(0));
  int64_t rank = sizes.size();
  auto clamp = [&](int64_t v) {
    return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank);
  };
  int64_t start = clamp(n.intAttr("start", 0));
  int64_t end = clamp(n.intAttr("end", rank));
  SmallVector<OpFoldResult> elements;
  for (int64_t d = start; d < end; ++d)
    elements.push_back(fromIndex(b, n.loc, sizes[d], b.getI64Type()));
  auto type = RankedTensorType::get({int64_t(elements.size())}, b.getI64Type());
  n.set(0, Tensor::fromElements(TensorProto::INT64, type, elements));
  return llvm::Error::success();
}

llvm::Error buildSize(Node &n) {
  OpFoldResult size = product(n.b, n.loc, sizesOf(n, n.in(0)));
  Type i64 = n.b.getI64Type();
  n.set(0,
        Tensor::fromElements(TensorProto::INT64, RankedTensorType::get({}, i64),
                             fromIndex(n.b, n.loc, size, i64)));
  return llvm::Error::success();
}

} // namespace pto::lowering
