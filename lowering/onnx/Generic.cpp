//===- Generic.cpp - Shorthands for linalg.generic ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace pto::lowering {

/// Memory form to computing form: only booleans differ.
static Value loadForm(OpBuilder &b, Location loc, int dtype, Value v) {
  if (!isBool(dtype))
    return v;
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, v,
                                       scalarConstant(b, loc, v.getType(), 0));
}

static Value storeForm(OpBuilder &b, Location loc, int dtype, Value v) {
  if (!isBool(dtype))
    return v;
  return b.createOrFold<arith::ExtUIOp>(loc, b.getI8Type(), v);
}

/// The tracked elements of `tensor`, broadcast to the static `shape`.
static SmallVector<OpFoldResult>
broadcastElements(ArrayRef<OpFoldResult> elements, ArrayRef<int64_t> from,
                  ArrayRef<int64_t> shape) {
  int64_t total = ShapedType::getNumElements(shape);
  SmallVector<OpFoldResult> result;
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i, index = 0, stride = 1;
    for (int64_t d = shape.size() - 1, f = int64_t(from.size()) - 1; f >= 0;
         --d, --f) {
      if (from[f] != 1)
        index += rest % shape[d] * stride;
      rest /= shape[d];
      stride *= from[f];
    }
    result.push_back(elements[index]);
  }
  return result;
}

/// Computes the result element by element where that is possible.
static std::optional<Tensor> evaluate(Node &n, ArrayRef<Tensor *> inputs,
                                      ArrayRef<int64_t> shape, int resultDtype,
                                      ScalarFn fn) {
  if (ShapedType::isDynamicShape(shape) ||
      ShapedType::getNumElements(shape) > kMaxTrackedElements)
    return std::nullopt;
  SmallVector<SmallVector<OpFoldResult>> columns;
  for (Tensor *t : inputs) {
    auto elements = trackedElements(*t);
    if (!elements)
      return std::nullopt;
    columns.push_back(broadcastElements(*elements, t->shape(), shape));
  }
  SmallVector<OpFoldResult> result;
  for (int64_t i = 0, e = ShapedType::getNumElements(shape); i < e; ++i) {
    SmallVector<Value> scalars;
    for (auto [t, column] : llvm::zip(inputs, columns))
      scalars.push_back(
          loadForm(n.b, n.loc, t->dtype, scalarValue(n.b, n.loc, column[i])));
    result.push_back(getAsOpFoldResult(
        storeForm(n.b, n.loc, resultDtype, fn(n.b, n.loc, scalars))));
  }
  auto type =
      RankedTensorType::get(shape, storageType(n.b.getContext(), resultDtype));
  return Tensor::fromElements(resultDtype, type, result);
}

Tensor elementwiseOver(Node &n, ArrayRef<Tensor *> inputs,
                       ArrayRef<OpFoldResult> sizes, int resultDtype,
                       ScalarFn fn) {
  if (auto folded = evaluate(n, inputs, staticShape(sizes), resultDtype, fn))
    return *folded;

  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  SmallVector<TypedAttr> inlined;
  for (Tensor *t : inputs) {
    inlined.push_back(knownScalar(*t));
    if (inlined.back())
      continue;
    BroadcastOperand operand = broadcastOperand(n, *t, sizes);
    operands.push_back(operand.value);
    maps.push_back(operand.map);
  }
  Type type = storageType(n.b.getContext(), resultDtype);
  Value init = emptyTensor(n.b, n.loc, sizes, type);
  maps.push_back(n.b.getMultiDimIdentityMap(sizes.size()));
  SmallVector<utils::IteratorType> iterators(sizes.size(),
                                             utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      n.b, n.loc, TypeRange{init.getType()}, operands, ValueRange{init}, maps,
      iterators, [&](OpBuilder &b, Location loc, ValueRange args) {
        SmallVector<Value> scalars;
        size_t next = 0;
        for (auto [t, attr] : llvm::zip(inputs, inlined)) {
          Value v = attr ? arith::ConstantOp::create(b, loc, attr).getResult()
                         : args[next++];
          scalars.push_back(loadForm(b, loc, t->dtype, v));
        }
        linalg::YieldOp::create(
            b, loc, storeForm(b, loc, resultDtype, fn(b, loc, scalars)));
      });
  return Tensor::fromValue(resultDtype, op.getResult(0));
}

llvm::Expected<Tensor> elementwise(Node &n, ArrayRef<Tensor *> inputs,
                                   int resultDtype, ScalarFn fn) {
  SmallVector<Sizes> shapes;
  for (Tensor *t : inputs)
    shapes.push_back(sizesOf(n, *t));
  llvm::Expected<Sizes> sizes = broadcastSizes(n, shapes);
  if (!sizes)
    return sizes.takeError();
  return elementwiseOver(n, inputs, *sizes, resultDtype, fn);
}

Value indexed(Node &n, ArrayRef<Operand> operands, ArrayRef<OpFoldResult> sizes,
              Type elementType,
              llvm::function_ref<Value(OpBuilder &, Location, ArrayRef<Value>,
                                       ArrayRef<Value>)>
                  fn) {
  int64_t rank = sizes.size();
  Value init = emptyTensor(n.b, n.loc, sizes, elementType);
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (const Operand &o : operands) {
    values.push_back(o.value);
    maps.push_back(o.map);
  }
  maps.push_back(n.b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             n.b, n.loc, TypeRange{init.getType()}, values, ValueRange{init},
             maps, iterators,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               SmallVector<Value> loops;
               for (int64_t d = 0; d < rank; ++d)
                 loops.push_back(linalg::IndexOp::create(b, loc, d));
               SmallVector<Value> scalars(args.drop_back());
               linalg::YieldOp::create(b, loc, fn(b, loc, loops, scalars));
             })
      .getResult(0);
}

Value reduce(OpBuilder &b, Location loc, Value input, ArrayRef<int64_t> axes,
             Value init, ScalarFn fn) {
  Sizes sizes = sizesOf(b, loc, input), outSizes;
  SmallVector<utils::IteratorType> iterators;
  SmallVector<AffineExpr> outExprs;
  for (int64_t d = 0, e = sizes.size(); d < e; ++d) {
    bool reduced = llvm::is_contained(axes, d);
    iterators.push_back(reduced ? utils::IteratorType::reduction
                                : utils::IteratorType::parallel);
    if (reduced)
      continue;
    outExprs.push_back(b.getAffineDimExpr(d));
    outSizes.push_back(sizes[d]);
  }
  Value filled = filledTensor(b, loc, outSizes, init);
  SmallVector<AffineMap> maps = {
      b.getMultiDimIdentityMap(sizes.size()),
      AffineMap::get(sizes.size(), 0, outExprs, b.getContext())};
  return linalg::GenericOp::create(
             b, loc, TypeRange{filled.getType()}, ValueRange{input},
             ValueRange{filled}, maps, iterators,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               linalg::YieldOp::create(b, loc, fn(b, loc, {args[0], args[1]}));
             })
      .getResult(0);
}

static Value extreme(OpBuilder &b, Location loc, int dtype, bool low) {
  Type type = storageType(b.getContext(), dtype);
  if (auto f = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(
        b, loc,
        b.getFloatAttr(type, APFloat::getInf(f.getFloatSemantics(), low)));
  unsigned width = type.getIntOrFloatBitWidth();
  if (isBool(dtype))
    return scalarConstant(b, loc, type, low ? 0 : 1);
  APInt v = isSigned(dtype)
                ? (low ? APInt::getSignedMinValue(width)
                       : APInt::getSignedMaxValue(width))
                : (low ? APInt::getMinValue(width) : APInt::getMaxValue(width));
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, v));
}
Value lowest(OpBuilder &b, Location loc, int dtype) {
  return extreme(b, loc, dtype, /*low=*/true);
}
Value highest(OpBuilder &b, Location loc, int dtype) {
  return extreme(b, loc, dtype, /*low=*/false);
}

Value scalarMax(OpBuilder &b, Location loc, int dtype, Value x, Value y) {
  if (isFloat(dtype))
    return b.createOrFold<arith::MaximumFOp>(loc, x, y);
  if (isSigned(dtype))
    return b.createOrFold<arith::MaxSIOp>(loc, x, y);
  return b.createOrFold<arith::MaxUIOp>(loc, x, y);
}
Value scalarMin(OpBuilder &b, Location loc, int dtype, Value x, Value y) {
  if (isFloat(dtype))
    return b.createOrFold<arith::MinimumFOp>(loc, x, y);
  if (isSigned(dtype))
    return b.createOrFold<arith::MinSIOp>(loc, x, y);
  return b.createOrFold<arith::MinUIOp>(loc, x, y);
}

Value scalarMul(OpBuilder &b, Location loc, Value x, Value y, bool contract) {
  if (isa<FloatType>(x.getType()))
    return b.createOrFold<arith::MulFOp>(
        loc, x, y,
        contract ? arith::FastMathFlags::contract : arith::FastMathFlags::none);
  return b.createOrFold<arith::MulIOp>(loc, x, y);
}
Value scalarAdd(OpBuilder &b, Location loc, Value x, Value y, bool contract) {
  if (isa<FloatType>(x.getType()))
    return b.createOrFold<arith::AddFOp>(
        loc, x, y,
        contract ? arith::FastMathFlags::contract : arith::FastMathFlags::none);
  return b.createOrFold<arith::AddIOp>(loc, x, y);
}

Type sumType(Type type) {
  if (type.isF16() || type.isBF16())
    return Float32Type::get(type.getContext());
  return type;
}

Tensor roundSum(Node &n, Value sum, int dtype) {
  Type type = storageType(n.b.getContext(), dtype);
  Tensor wide = Tensor::fromValue(onnx::TensorProto::FLOAT, sum);
  if (wide.elementType() == type) {
    wide.dtype = dtype;
    return wide;
  }
  Sizes sizes = sizesOf(n.b, n.loc, sum);
  return elementwiseOver(
      n, {&wide}, sizes, dtype,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        return b.createOrFold<arith::TruncFOp>(loc, type, v[0]);
      });
}

Value contract(OpBuilder &b, Location loc, Value lhs, Value rhs, Value init,
               ArrayRef<AffineMap> maps, ArrayRef<bool> isReduction) {
  SmallVector<utils::IteratorType> iterators;
  for (bool r : isReduction)
    iterators.push_back(r ? utils::IteratorType::reduction
                          : utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, TypeRange{init.getType()}, ValueRange{lhs, rhs},
             ValueRange{init}, maps, iterators,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               Type type = args[2].getType();
               auto wide = [&](Value v) -> Value {
                 return v.getType() == type
                            ? v
                            : arith::ExtFOp::create(b, loc, type, v);
               };
               Value m = scalarMul(b, loc, wide(args[0]), wide(args[1]), true);
               linalg::YieldOp::create(b, loc,
                                       scalarAdd(b, loc, args[2], m, true));
             })
      .getResult(0);
}

} // namespace pto::lowering
