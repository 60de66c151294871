//===- Gather.cpp - Reads at computed indices -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A linalg.generic over the result whose body reads the data by
// tensor.extract. Negative indices count from the end. An index out of bounds
// is an error by the specification: generated code clamps it, so that memory
// is never read outside the tensor, and the run reports it (IndexChecks.cpp).
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace pto::lowering {

/// A stored index as a position in [0, size).
static Value resolveIndex(OpBuilder &b, Location loc, Value index, Value size) {
  Value i = b.createOrFold<arith::IndexCastOp>(loc, b.getIndexType(), index);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value negative =
      b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, i, zero);
  Value wrapped = b.createOrFold<arith::AddIOp>(loc, i, size);
  i = b.createOrFold<arith::SelectOp>(loc, negative, wrapped, i);
  Value last = b.createOrFold<arith::SubIOp>(loc, size, one);
  i = b.createOrFold<arith::MaxSIOp>(loc, i, zero);
  return b.createOrFold<arith::MinSIOp>(loc, i, last);
}

/// A generic over `sizes` with one operand `indices` (map `map`); `read` gives
/// the position in `data` from the loop indices and the stored index.
static Value
gather(Node &n, Value data, Value indices, AffineMap map,
       ArrayRef<OpFoldResult> sizes,
       llvm::function_ref<SmallVector<Value>(OpBuilder &, Location,
                                             ArrayRef<Value>, Value)>
           read) {
  OpBuilder &b = n.b;
  int64_t rank = sizes.size();
  Type type = cast<RankedTensorType>(data.getType()).getElementType();
  Value init = emptyTensor(b, n.loc, sizes, type);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, n.loc, TypeRange{init.getType()}, ValueRange{indices},
             ValueRange{init}, {map, b.getMultiDimIdentityMap(rank)}, iterators,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               SmallVector<Value> loops;
               for (int64_t d = 0; d < rank; ++d)
                 loops.push_back(linalg::IndexOp::create(b, loc, d));
               SmallVector<Value> at = read(b, loc, loops, args[0]);
               Value element = tensor::ExtractOp::create(b, loc, data, at);
               linalg::YieldOp::create(b, loc, element);
             })
      .getResult(0);
}

llvm::Error buildGather(Node &n) {
  Tensor &data = n.in(0), &indices = n.in(1);
  OpBuilder &b = n.b;
  auto axis = normalizeAxis(n, n.intAttr("axis", 0), data.rank());
  if (!axis)
    return axis.takeError();
  if (data.rank() == 0)
    return n.invalid("data of rank 0");
  Sizes in = sizesOf(n, data), idx = sizesOf(n, indices);
  if (auto error = n.checkIndices(indices, in[*axis]))
    return error;
  Sizes out(in.begin(), in.begin() + *axis);
  llvm::append_range(out, idx);
  out.append(in.begin() + *axis + 1, in.end());

  // Shape arithmetic: elements picked at known places.
  auto elements = trackedElements(data);
  auto picks = knownIntegers(indices);
  if (elements && picks && data.rank() == 1 &&
      int64_t(picks->size()) <= kMaxTrackedElements) {
    SmallVector<OpFoldResult> result;
    for (int64_t v : *picks)
      result.push_back((*elements)[v < 0 ? v + int64_t(elements->size()) : v]);
    n.set(0, Tensor::fromElements(data.dtype, data.type.clone(indices.shape()),
                                  result));
    return llvm::Error::success();
  }
  // One known index is a slice.
  if (picks && picks->size() == 1 && known(in[*axis])) {
    int64_t at = picks->front();
    Sizes offsets(data.rank(), b.getIndexAttr(0)),
        sizes = in, strides(data.rank(), b.getIndexAttr(1));
    offsets[*axis] = b.getIndexAttr(at < 0 ? at + *known(in[*axis]) : at);
    sizes[*axis] = b.getIndexAttr(1);
    Value slice = tensor::ExtractSliceOp::create(b, n.loc, n.value(data),
                                                 offsets, sizes, strides);
    n.set(0, data.dtype, reshape(b, n.loc, slice, out));
    return llvm::Error::success();
  }

  int64_t k = indices.rank(), rank = out.size();
  SmallVector<AffineExpr> exprs;
  for (int64_t d = 0; d < k; ++d)
    exprs.push_back(b.getAffineDimExpr(*axis + d));
  Value size = getValueOrCreateConstantIndexOp(b, n.loc, in[*axis]);
  n.set(0, data.dtype,
        gather(n, n.value(data), n.value(indices),
               AffineMap::get(rank, 0, exprs, b.getContext()), out,
               [&](OpBuilder &b, Location loc, ArrayRef<Value> loops,
                   Value index) {
                 SmallVector<Value> at(loops.take_front(*axis));
                 at.push_back(resolveIndex(b, loc, index, size));
                 llvm::append_range(at, loops.drop_front(*axis + k));
                 return at;
               }));
  return llvm::Error::success();
}

llvm::Error buildGatherElements(Node &n) {
  Tensor &data = n.in(0), &indices = n.in(1);
  OpBuilder &b = n.b;
  auto axis = normalizeAxis(n, n.intAttr("axis", 0), data.rank());
  if (!axis)
    return axis.takeError();
  if (data.rank() == 0 || indices.rank() != data.rank())
    return n.invalid("data and indices differ in rank");
  Sizes in = sizesOf(n, data), out = sizesOf(n, indices);
  if (auto error = n.checkIndices(indices, in[*axis]))
    return error;
  for (int64_t d = 0; d < data.rank(); ++d)
    if (d != *axis)
      if (auto error =
              n.require(arith::CmpIPredicate::sle, out[d], in[d],
                        "indices are larger than the data in dim " + Twine(d)))
        return error;
  Value size = getValueOrCreateConstantIndexOp(b, n.loc, in[*axis]);
  n.set(0, data.dtype,
        gather(n, n.value(data), n.value(indices),
               b.getMultiDimIdentityMap(out.size()), out,
               [&](OpBuilder &b, Location loc, ArrayRef<Value> loops,
                   Value index) {
                 SmallVector<Value> at(loops);
                 at[*axis] = resolveIndex(b, loc, index, size);
                 return at;
               }));
  return llvm::Error::success();
}

llvm::Error buildGatherND(Node &n) {
  Tensor &data = n.in(0), &indices = n.in(1);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int64_t batch = n.intAttr("batch_dims", 0);
  if (indices.rank() == 0 || data.rank() == 0 || batch < 0 ||
      batch >= std::min(data.rank(), indices.rank()))
    return n.invalid("batch_dims or ranks");
  int64_t tuple = indices.shape().back();
  if (ShapedType::isDynamic(tuple))
    return n.unsupported("a dynamic number of indices per element");
  if (batch + tuple > data.rank())
    return n.invalid("more indices per element than dims");
  Sizes in = sizesOf(n, data), idx = sizesOf(n, indices);
  Sizes out(idx.begin(), idx.end() - 1);
  int64_t lead = out.size();
  out.append(in.begin() + batch + tuple, in.end());
  if (tuple)
    if (auto error = n.checkIndices(indices, ArrayRef(in).slice(batch, tuple)))
      return error;
  for (int64_t d = 0; d < batch; ++d)
    if (auto error = n.require(arith::CmpIPredicate::eq, idx[d], in[d],
                               "batch dim " + Twine(d) + " differs"))
      return error;
  // All indices of an element are read in the body.
  Value dataValue = n.value(data), indexValue = n.value(indices);
  SmallVector<Value> limits;
  for (int64_t k = 0; k < tuple; ++k)
    limits.push_back(getValueOrCreateConstantIndexOp(b, loc, in[batch + k]));
  int64_t rank = out.size();
  Value init = emptyTensor(b, loc, out, data.elementType());
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      b, loc, TypeRange{init.getType()}, ValueRange{}, ValueRange{init},
      {b.getMultiDimIdentityMap(rank)}, iterators,
      [&](OpBuilder &b, Location loc, ValueRange) {
        SmallVector<Value> loops;
        for (int64_t d = 0; d < rank; ++d)
          loops.push_back(linalg::IndexOp::create(b, loc, d));
        SmallVector<Value> at(ArrayRef(loops).take_front(batch));
        for (int64_t k = 0; k < tuple; ++k) {
          SmallVector<Value> where(ArrayRef(loops).take_front(lead));
          where.push_back(arith::ConstantIndexOp::create(b, loc, k));
          Value index = tensor::ExtractOp::create(b, loc, indexValue, where);
          at.push_back(resolveIndex(b, loc, index, limits[k]));
        }
        llvm::append_range(at, ArrayRef(loops).drop_front(lead));
        Value element = tensor::ExtractOp::create(b, loc, dataValue, at);
        linalg::YieldOp::create(b, loc, element);
      });
  n.set(0, data.dtype, op.getResult(0));
  return llvm::Error::success();
}

} // namespace pto::lowering
