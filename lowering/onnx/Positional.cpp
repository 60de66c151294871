//===- Positional.cpp - Results that depend on the position ---------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Triangles, one-hot rows, prefix sums, positions of extremes, the largest k.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "onnx/onnx_pb.h"

using namespace mlir;
using onnx::TensorProto;

namespace pto::lowering {

static Value compare(OpBuilder &b, Location loc, arith::CmpIPredicate predicate,
                     Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(loc, predicate, x, y);
}

/// A single integer, known or not, as index.
static llvm::Expected<OpFoldResult> scalarIndex(Node &n, size_t i,
                                                int64_t fallback) {
  if (!n.has(i))
    return OpFoldResult(n.b.getIndexAttr(fallback));
  if (!n.in(i).type.hasStaticShape() || n.in(i).type.getNumElements() != 1)
    return n.invalid("input " + Twine(i) + " is no scalar");
  Tensor scalar = reshape(n, n.in(i), {});
  return toIndex(n.b, n.loc, elementsOf(n, scalar)->front());
}

llvm::Error buildTrilu(Node &n) {
  Tensor &x = n.in(0);
  if (x.rank() < 2)
    return n.invalid("input of rank " + Twine(x.rank()));
  auto k = scalarIndex(n, 1, 0);
  if (!k)
    return k.takeError();
  bool upper = n.intAttr("upper", 1);
  Sizes sizes = sizesOf(n, x);
  int64_t rank = x.rank();
  Value shift =
      known(*k)
          ? arith::ConstantIndexOp::create(n.b, n.loc, *known(*k)).getResult()
          : cast<Value>(*k);
  n.set(0, x.dtype,
        indexed(n, {{n.value(x), n.b.getMultiDimIdentityMap(rank)}}, sizes,
                x.elementType(),
                [&](OpBuilder &b, Location loc, ArrayRef<Value> loops,
                    ArrayRef<Value> v) -> Value {
                  Value diagonal = b.createOrFold<arith::AddIOp>(
                      loc, loops[rank - 2], shift);
                  Value keep = compare(b, loc,
                                       upper ? arith::CmpIPredicate::sge
                                             : arith::CmpIPredicate::sle,
                                       loops[rank - 1], diagonal);
                  Value zero = scalarConstant(b, loc, v[0].getType(), 0);
                  return b.createOrFold<arith::SelectOp>(loc, keep, v[0], zero);
                }));
  return llvm::Error::success();
}

llvm::Error buildEyeLike(Node &n) {
  Tensor &x = n.in(0);
  if (x.rank() != 2)
    return n.invalid("input of rank " + Twine(x.rank()));
  int dtype = n.intAttr("dtype", x.dtype);
  Type type = storageType(n.b.getContext(), dtype);
  if (!type)
    return n.unsupported("data type " + onnxTypeName(dtype));
  int64_t k = n.intAttr("k", 0);
  n.set(0, dtype,
        indexed(n, {}, sizesOf(n, x), type,
                [&](OpBuilder &b, Location loc, ArrayRef<Value> loops,
                    ArrayRef<Value>) -> Value {
                  Value diagonal = b.createOrFold<arith::AddIOp>(
                      loc, loops[0], arith::ConstantIndexOp::create(b, loc, k));
                  Value on = compare(b, loc, arith::CmpIPredicate::eq, loops[1],
                                     diagonal);
                  return b.createOrFold<arith::SelectOp>(
                      loc, on, scalarConstant(b, loc, type, 1),
                      scalarConstant(b, loc, type, 0));
                }));
  return llvm::Error::success();
}

llvm::Error buildOneHot(Node &n) {
  Tensor &indices = n.in(0), &values = n.in(2);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  Tensor depthTensor = n.in(1);
  if (!depthTensor.type.hasStaticShape() ||
      depthTensor.type.getNumElements() != 1)
    return n.invalid("depth is no scalar");
  depthTensor = reshape(n, depthTensor, {});
  Value depthValue = scalarValue(b, loc, elementsOf(n, depthTensor)->front());
  depthValue =
      scalarCast(b, loc, depthValue, depthTensor.dtype, TensorProto::INT64);
  OpFoldResult depth = toIndex(b, loc, getAsOpFoldResult(depthValue));
  if (values.rank() != 1 || values.shape()[0] != 2)
    return n.invalid("'values' must have two elements");
  int64_t rank = indices.rank() + 1;
  auto axis = normalizeAxis(n, n.intAttr("axis", -1), rank);
  if (!axis)
    return axis.takeError();
  Sizes out = sizesOf(n, indices);
  out.insert(out.begin() + *axis, depth);
  SmallVector<AffineExpr> exprs;
  for (int64_t d = 0; d < rank; ++d)
    if (d != *axis)
      exprs.push_back(b.getAffineDimExpr(d));
  Value pair = n.value(values);
  Value off = tensor::ExtractOp::create(
      b, loc, pair, ValueRange{arith::ConstantIndexOp::create(b, loc, 0)});
  Value on = tensor::ExtractOp::create(
      b, loc, pair, ValueRange{arith::ConstantIndexOp::create(b, loc, 1)});
  Value size =
      known(depth)
          ? arith::ConstantIndexOp::create(b, loc, *known(depth)).getResult()
          : cast<Value>(depth);
  n.set(
      0, values.dtype,
      indexed(
          n,
          {{n.value(indices), AffineMap::get(rank, 0, exprs, b.getContext())}},
          out, values.elementType(),
          [&](OpBuilder &b, Location loc, ArrayRef<Value> loops,
              ArrayRef<Value> v) -> Value {
            Value i =
                scalarCast(b, loc, v[0], indices.dtype, TensorProto::INT64);
            i = b.createOrFold<arith::IndexCastOp>(loc, b.getIndexType(), i);
            Value zero = arith::ConstantIndexOp::create(b, loc, 0);
            Value negative =
                compare(b, loc, arith::CmpIPredicate::slt, i, zero);
            Value wrapped = b.createOrFold<arith::AddIOp>(loc, i, size);
            i = b.createOrFold<arith::SelectOp>(loc, negative, wrapped, i);
            Value hit =
                compare(b, loc, arith::CmpIPredicate::eq, i, loops[*axis]);
            return b.createOrFold<arith::SelectOp>(loc, hit, on, off);
          }));
  return llvm::Error::success();
}

/// Prefix sums (products) along `axis`, by doubling: log2(n) elementwise ops,
/// each with the tensor shifted by a power of two.
static Tensor cumulate(Node &n, Tensor &x, int64_t axis) {
  OpBuilder &b = n.b;
  Location loc = n.loc;
  Sizes sizes = sizesOf(n, x);
  int64_t length = *known(sizes[axis]);
  bool multiply = n.op() == "CumProd";
  bool reverse = n.intAttr("reverse", 0);
  Value neutral = scalarConstant(b, loc, x.elementType(), multiply);
  auto shift = [&](Value v, int64_t by) -> Value {
    Sizes zeros(x.rank(), b.getIndexAttr(0)), ones(x.rank(), b.getIndexAttr(1)),
        kept = sizes;
    kept[axis] = b.getIndexAttr(length - by);
    Sizes offsets = zeros, low = zeros, high = zeros;
    (reverse ? offsets : low)[axis] = b.getIndexAttr(by);
    if (reverse)
      high[axis] = b.getIndexAttr(by);
    // Forwards the first elements move up, backwards the last ones move down.
    Value part = tensor::ExtractSliceOp::create(b, loc, v, offsets, kept, ones);
    return tensor::PadOp::create(b, loc, x.type, part, low, high, neutral);
  };
  Value current = n.value(x);
  if (n.intAttr("exclusive", 0) && length > 0)
    current = shift(current, 1);
  for (int64_t by = 1; by < length; by *= 2) {
    Tensor whole = Tensor::fromValue(x.dtype, current);
    Tensor moved = Tensor::fromValue(x.dtype, shift(current, by));
    Tensor sum =
        elementwiseOver(n, {&whole, &moved}, sizes, x.dtype,
                        [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                          return multiply ? scalarMul(b, loc, v[0], v[1])
                                          : scalarAdd(b, loc, v[0], v[1]);
                        });
    current = n.value(sum);
  }
  return Tensor::fromValue(x.dtype, current);
}

llvm::Error buildCumulative(Node &n) {
  Tensor &x = n.in(0);
  int64_t rank = x.rank();
  if (rank == 0)
    return n.invalid("input of rank 0");
  if (!n.in(1).type.hasStaticShape() || n.in(1).type.getNumElements() != 1)
    return n.invalid("'axis' is no scalar");
  SmallVector<int64_t> candidates;
  if (auto given = knownIntegers(n.in(1))) {
    auto axis = normalizeAxis(n, given->front(), rank);
    if (!axis)
      return axis.takeError();
    candidates.push_back(*axis);
  } else {
    candidates = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  }
  for (int64_t axis : candidates)
    if (ShapedType::isDynamic(x.shape()[axis]))
      return n.unsupported("a dynamic size along the axis");
  Tensor result = cumulate(n, x, candidates.front());
  Tensor chosen = reshape(n, n.in(1), {});
  for (int64_t axis : ArrayRef(candidates).drop_front()) {
    // Which axis is known only at run time: all of them, then a choice.
    Tensor other = cumulate(n, x, axis);
    result = elementwiseOver(
        n, {&chosen, &result, &other}, sizesOf(n, x), x.dtype,
        [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
          Value named = compare(b, loc, arith::CmpIPredicate::eq, v[0],
                                scalarConstant(b, loc, v[0].getType(), axis));
          Value fromEnd =
              compare(b, loc, arith::CmpIPredicate::eq, v[0],
                      scalarConstant(b, loc, v[0].getType(), axis - rank));
          Value here = b.createOrFold<arith::OrIOp>(loc, named, fromEnd);
          return b.createOrFold<arith::SelectOp>(loc, here, v[2], v[1]);
        });
  }
  n.set(0, result);
  return llvm::Error::success();
}

/// x beats y: NaN beats everything, as in numpy.
static Value beats(OpBuilder &b, Location loc, int dtype, bool largest, Value x,
                   Value y) {
  if (isFloat(dtype)) {
    Value better = b.createOrFold<arith::CmpFOp>(
        loc, largest ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, x,
        y);
    Value xNan =
        b.createOrFold<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, x, x);
    Value yOk =
        b.createOrFold<arith::CmpFOp>(loc, arith::CmpFPredicate::ORD, y, y);
    return b.createOrFold<arith::OrIOp>(
        loc, better, b.createOrFold<arith::AndIOp>(loc, xNan, yOk));
  }
  auto predicate =
      isSigned(dtype)
          ? (largest ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt)
          : (largest ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::ult);
  return compare(b, loc, predicate, x, y);
}

/// The position of the extreme along `axis`, which is gone from the result.
static Value extremePosition(Node &n, Tensor &x, int64_t axis, bool largest,
                             bool last) {
  OpBuilder &b = n.b;
  Location loc = n.loc;
  Sizes in = sizesOf(n, x), out;
  SmallVector<AffineExpr> exprs;
  SmallVector<utils::IteratorType> iterators;
  for (int64_t d = 0; d < x.rank(); ++d) {
    iterators.push_back(d == axis ? utils::IteratorType::reduction
                                  : utils::IteratorType::parallel);
    if (d == axis)
      continue;
    exprs.push_back(b.getAffineDimExpr(d));
    out.push_back(in[d]);
  }
  Value start = largest ? lowest(b, loc, x.dtype) : highest(b, loc, x.dtype);
  Value best = filledTensor(b, loc, out, start);
  Value where =
      filledTensor(b, loc, out, scalarConstant(b, loc, b.getI64Type(), 0));
  auto outMap = AffineMap::get(x.rank(), 0, exprs, b.getContext());
  auto op = linalg::GenericOp::create(
      b, loc, TypeRange{best.getType(), where.getType()},
      ValueRange{n.value(x)}, ValueRange{best, where},
      {b.getMultiDimIdentityMap(x.rank()), outMap, outMap}, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value position = arith::IndexCastOp::create(
            b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, axis));
        Value take = beats(b, loc, x.dtype, largest, args[0], args[1]);
        if (last) {
          Value worse = beats(b, loc, x.dtype, largest, args[1], args[0]);
          Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
          take = b.createOrFold<arith::XOrIOp>(loc, worse, yes);
        }
        Value value = arith::SelectOp::create(b, loc, take, args[0], args[1]);
        Value index = arith::SelectOp::create(b, loc, take, position, args[2]);
        linalg::YieldOp::create(b, loc, ValueRange{value, index});
      });
  return op.getResult(1);
}

llvm::Error buildArgExtreme(Node &n) {
  Tensor &x = n.in(0);
  auto axis = normalizeAxis(n, n.intAttr("axis", 0), x.rank());
  if (!axis)
    return axis.takeError();
  Tensor position = Tensor::fromValue(
      TensorProto::INT64, extremePosition(n, x, *axis, n.op() == "ArgMax",
                                          n.intAttr("select_last_index", 0)));
  if (n.intAttr("keepdims", 1)) {
    Sizes kept = sizesOf(n, x);
    kept[*axis] = n.b.getIndexAttr(1);
    position = reshape(n, position, kept);
  }
  n.set(0, position);
  return llvm::Error::success();
}

llvm::Error buildHardmax(Node &n) {
  Tensor &x = n.in(0);
  bool flatten = n.since < 13;
  auto axis = normalizeAxis(n, n.intAttr("axis", flatten ? 1 : -1), x.rank());
  if (!axis)
    return axis.takeError();
  Sizes sizes = sizesOf(n, x);
  Tensor rows = x;
  int64_t along = *axis;
  if (flatten) {
    ArrayRef<OpFoldResult> all(sizes);
    rows = reshape(n, x,
                   {product(n.b, n.loc, all.take_front(*axis)),
                    product(n.b, n.loc, all.drop_front(*axis))});
    along = 1;
  }
  Value best = extremePosition(n, rows, along, true, false);
  SmallVector<AffineExpr> exprs;
  for (int64_t d = 0; d < rows.rank(); ++d)
    if (d != along)
      exprs.push_back(n.b.getAffineDimExpr(d));
  Tensor out = Tensor::fromValue(
      x.dtype,
      indexed(
          n, {{best, AffineMap::get(rows.rank(), 0, exprs, n.b.getContext())}},
          sizesOf(n, rows), x.elementType(),
          [&](OpBuilder &b, Location loc, ArrayRef<Value> loops,
              ArrayRef<Value> v) -> Value {
            Value at =
                b.createOrFold<arith::IndexCastOp>(loc, b.getIndexType(), v[0]);
            Value hit =
                compare(b, loc, arith::CmpIPredicate::eq, at, loops[along]);
            Type type = x.elementType();
            return b.createOrFold<arith::SelectOp>(
                loc, hit, scalarConstant(b, loc, type, 1),
                scalarConstant(b, loc, type, 0));
          }));
  n.set(0, reshape(n, out, sizes));
  return llvm::Error::success();
}

/// Ranks every element against its row, then picks the ranks 0 to k - 1:
/// n squared work, no data-dependent control flow.
llvm::Error buildTopK(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int64_t rank = x.rank();
  auto axis = normalizeAxis(n, n.intAttr("axis", -1), rank);
  if (!axis)
    return axis.takeError();
  OpFoldResult k = b.getIndexAttr(n.intAttr("k", 1));
  if (n.since >= 10) {
    auto given = scalarIndex(n, 1, 1);
    if (!given)
      return given.takeError();
    k = *given;
  }
  Sizes in = sizesOf(n, x), out = in;
  out[*axis] = k;
  auto length = known(in[*axis]);
  constexpr int64_t kLongest = 16384;
  if (length && *length > kLongest)
    return n.unsupported("TopK along " + Twine(*length) +
                         " elements (the limit is " + Twine(kLongest) + ")");
  if (length && known(k) && *known(k) > *length)
    return n.invalid("k is larger than the dim");
  bool largest = n.since < 11 || n.intAttr("largest", 1);

  // ranks[..., i, ...] = number of elements j that come before i.
  SmallVector<AffineExpr> own, other;
  for (int64_t d = 0; d < rank; ++d) {
    own.push_back(b.getAffineDimExpr(d));
    other.push_back(b.getAffineDimExpr(d == *axis ? rank : d));
  }
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(rank + 1, 0, exprs, b.getContext());
  };
  SmallVector<utils::IteratorType> iterators(rank + 1,
                                             utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  Type i64 = b.getI64Type();
  Value source = n.value(x);
  Value zeros = filledTensor(b, loc, in, scalarConstant(b, loc, i64, 0));
  Value ranks =
      linalg::GenericOp::create(
          b, loc, TypeRange{zeros.getType()}, ValueRange{source, source},
          ValueRange{zeros}, {map(own), map(other), map(own)}, iterators,
          [&](OpBuilder &b, Location loc, ValueRange args) {
            Value i = linalg::IndexOp::create(b, loc, *axis);
            Value j = linalg::IndexOp::create(b, loc, rank);
            Value before = beats(b, loc, x.dtype, largest, args[1], args[0]);
            Value after = beats(b, loc, x.dtype, largest, args[0], args[1]);
            Value equal = b.createOrFold<arith::XOrIOp>(
                loc, b.createOrFold<arith::OrIOp>(loc, before, after),
                arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
            Value earlier = compare(b, loc, arith::CmpIPredicate::slt, j, i);
            before = b.createOrFold<arith::OrIOp>(
                loc, before,
                b.createOrFold<arith::AndIOp>(loc, equal, earlier));
            Value one = b.createOrFold<arith::ExtUIOp>(loc, i64, before);
            linalg::YieldOp::create(b, loc, scalarAdd(b, loc, args[2], one));
          })
          .getResult(0);
  // values[..., r, ...] = the element i of rank r.
  SmallVector<AffineExpr> overIn = other;
  Value values =
      filledTensor(b, loc, out, scalarConstant(b, loc, x.elementType(), 0));
  Value indices = filledTensor(b, loc, out, scalarConstant(b, loc, i64, 0));
  auto pick = linalg::GenericOp::create(
      b, loc, TypeRange{values.getType(), indices.getType()},
      ValueRange{source, ranks}, ValueRange{values, indices},
      {map(overIn), map(overIn), map(own), map(own)}, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value r = arith::IndexCastOp::create(
            b, loc, i64, linalg::IndexOp::create(b, loc, *axis));
        Value i = arith::IndexCastOp::create(
            b, loc, i64, linalg::IndexOp::create(b, loc, rank));
        Value hit = compare(b, loc, arith::CmpIPredicate::eq, args[1], r);
        Value value = arith::SelectOp::create(b, loc, hit, args[0], args[2]);
        Value index = arith::SelectOp::create(b, loc, hit, i, args[3]);
        linalg::YieldOp::create(b, loc, ValueRange{value, index});
      });
  n.set(0, x.dtype, pick.getResult(0));
  if (n.wants(1))
    n.set(1, TensorProto::INT64, pick.getResult(1));
  return llvm::Error::success();
}

} // namespace pto::lowering
