//===- Scatter.cpp - Writes at computed indices ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Turned round: each element of the result looks for the updates that name it,
// in their order. That needs no data-dependent stores, at the price of work in
// proportion to elements times updates; large scatters are refused.
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

/// Element times updates beyond which a loop over the updates is due.
constexpr int64_t kMostComparisons = int64_t(1) << 26;

static llvm::Error checkWork(Node &n, ArrayRef<OpFoldResult> out,
                             OpFoldResult updates) {
  int64_t work = known(updates).value_or(1);
  for (OpFoldResult s : out)
    work *= known(s).value_or(1);
  if (work > kMostComparisons)
    return n.unsupported("a scatter of this size");
  return llvm::Error::success();
}

static Value combine(Node &n, OpBuilder &b, Location loc, StringRef reduction,
                     int dtype, Value old, Value update) {
  if (reduction == "add")
    return scalarAdd(b, loc, old, update);
  if (reduction == "mul")
    return scalarMul(b, loc, old, update);
  if (reduction == "max")
    return scalarMax(b, loc, dtype, old, update);
  if (reduction == "min")
    return scalarMin(b, loc, dtype, old, update);
  return update;
}

/// The index with negative values wrapped; out of bounds hits nothing (and the
/// run reports it: IndexChecks.cpp).
static Value wrap(OpBuilder &b, Location loc, Value index, Value size) {
  Value i = b.createOrFold<arith::IndexCastOp>(loc, b.getIndexType(), index);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value negative =
      b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, i, zero);
  Value wrapped = b.createOrFold<arith::AddIOp>(loc, i, size);
  return b.createOrFold<arith::SelectOp>(loc, negative, wrapped, i);
}

/// A generic over the result's dims and one reduction over the updates, with
/// the data as the initial value. `find` gives (hit, update).
static Value
scatter(Node &n, Tensor &data, OpFoldResult updates, StringRef reduction,
        llvm::function_ref<std::pair<Value, Value>(OpBuilder &, Location,
                                                   ArrayRef<Value>, Value)>
            find) {
  OpBuilder &b = n.b;
  int64_t rank = data.rank();
  Value count = emptyTensor(b, n.loc, {updates}, data.elementType());
  SmallVector<AffineExpr> exprs;
  for (int64_t d = 0; d < rank; ++d)
    exprs.push_back(b.getAffineDimExpr(d));
  SmallVector<utils::IteratorType> iterators(rank + 1,
                                             utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  Value init = n.value(data);
  return linalg::GenericOp::create(
             b, n.loc, TypeRange{init.getType()}, ValueRange{count},
             ValueRange{init},
             {AffineMap::get(rank + 1, 0, b.getAffineDimExpr(rank)),
              AffineMap::get(rank + 1, 0, exprs, b.getContext())},
             iterators,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               SmallVector<Value> loops;
               for (int64_t d = 0; d < rank; ++d)
                 loops.push_back(linalg::IndexOp::create(b, loc, d));
               Value u = linalg::IndexOp::create(b, loc, rank);
               auto [hit, update] = find(b, loc, loops, u);
               Value merged =
                   combine(n, b, loc, reduction, data.dtype, args[1], update);
               Value kept =
                   arith::SelectOp::create(b, loc, hit, merged, args[1]);
               linalg::YieldOp::create(b, loc, kept);
             })
      .getResult(0);
}

llvm::Error buildScatterElements(Node &n) {
  Tensor &data = n.in(0), &indices = n.in(1), &updates = n.in(2);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  auto axis = normalizeAxis(n, n.intAttr("axis", 0), data.rank());
  if (!axis)
    return axis.takeError();
  if (data.rank() == 0 || indices.rank() != data.rank() ||
      updates.rank() != data.rank() || !isSigned(indices.dtype))
    return n.invalid("ranks or types of data, indices and updates");
  Sizes out = sizesOf(n, data), given = sizesOf(n, indices);
  if (auto error = checkWork(n, out, given[*axis]))
    return error;
  if (auto error = n.checkIndices(indices, out[*axis]))
    return error;
  Sizes own = sizesOf(n, updates);
  for (int64_t d = 0; d < data.rank(); ++d) {
    if (auto error = n.require(arith::CmpIPredicate::eq, own[d], given[d],
                               "indices and updates differ in dim " + Twine(d)))
      return error;
    if (d != *axis)
      if (auto error =
              n.require(arith::CmpIPredicate::sle, given[d], out[d],
                        "updates are larger than the data in dim " + Twine(d)))
        return error;
  }
  if (known(product(b, loc, given)) == 0) {
    n.set(0, data);
    return llvm::Error::success();
  }
  Value idx = n.value(indices), upd = n.value(updates);
  SmallVector<Value> limits;
  for (OpFoldResult s : given)
    limits.push_back(getValueOrCreateConstantIndexOp(b, loc, s));
  Value size = getValueOrCreateConstantIndexOp(b, loc, out[*axis]);
  std::string reduction = n.stringAttr("reduction", "none");
  n.set(0, data.dtype,
        scatter(
            n, data, given[*axis], reduction,
            [&](OpBuilder &b, Location loc, ArrayRef<Value> loops, Value u) {
              // Updates may cover only a corner of the data.
              SmallVector<Value> at(loops);
              at[*axis] = u;
              Value hit;
              Value zero = arith::ConstantIndexOp::create(b, loc, 0);
              for (int64_t d = 0; d < data.rank(); ++d) {
                if (d == *axis ||
                    (known(given[d]) && known(given[d]) == known(out[d])))
                  continue;
                Value in = arith::CmpIOp::create(
                    b, loc, arith::CmpIPredicate::slt, loops[d], limits[d]);
                at[d] = arith::SelectOp::create(b, loc, in, loops[d], zero);
                hit = hit ? arith::AndIOp::create(b, loc, hit, in).getResult()
                          : in;
              }
              Value target = wrap(
                  b, loc, tensor::ExtractOp::create(b, loc, idx, at), size);
              Value equal = arith::CmpIOp::create(
                  b, loc, arith::CmpIPredicate::eq, target, loops[*axis]);
              hit = hit ? arith::AndIOp::create(b, loc, hit, equal).getResult()
                        : equal;
              Value update = tensor::ExtractOp::create(b, loc, upd, at);
              return std::make_pair(hit, update);
            }));
  return llvm::Error::success();
}

llvm::Error buildScatterND(Node &n) {
  Tensor &data = n.in(0);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  Sizes out = sizesOf(n, data), given = sizesOf(n, n.in(1));
  if (given.empty() || !isSigned(n.in(1).dtype))
    return n.invalid("indices");
  auto tuple = known(given.back());
  if (!tuple)
    return n.unsupported("a dynamic number of indices per update");
  if (*tuple < 1 || *tuple > data.rank())
    return n.invalid("more indices per update than dims");
  OpFoldResult count = product(b, loc, ArrayRef(given).drop_back());
  if (auto error = checkWork(n, out, count))
    return error;
  if (auto error = n.checkIndices(n.in(1), ArrayRef(out).take_front(*tuple)))
    return error;
  Tensor indices = reshape(n, n.in(1), {count, given.back()});
  Sizes updateSizes = {count};
  updateSizes.append(out.begin() + *tuple, out.end());
  Tensor updates = reshape(n, n.in(2), updateSizes);
  Value idx = n.value(indices), upd = n.value(updates);
  SmallVector<Value> limits;
  for (OpFoldResult s : out)
    limits.push_back(getValueOrCreateConstantIndexOp(b, loc, s));
  std::string reduction = n.stringAttr("reduction", "none");
  n.set(0, data.dtype,
        scatter(
            n, data, count, reduction,
            [&](OpBuilder &b, Location loc, ArrayRef<Value> loops, Value u) {
              Value hit;
              for (int64_t k = 0; k < *tuple; ++k) {
                Value column = arith::ConstantIndexOp::create(b, loc, k);
                Value stored = tensor::ExtractOp::create(b, loc, idx,
                                                         ValueRange{u, column});
                Value equal = arith::CmpIOp::create(
                    b, loc, arith::CmpIPredicate::eq,
                    wrap(b, loc, stored, limits[k]), loops[k]);
                hit =
                    hit ? arith::AndIOp::create(b, loc, hit, equal).getResult()
                        : equal;
              }
              SmallVector<Value> at = {u};
              llvm::append_range(at, loops.drop_front(*tuple));
              Value update = tensor::ExtractOp::create(b, loc, upd, at);
              return std::make_pair(hit, update);
            }));
  return llvm::Error::success();
}

} // namespace pto::lowering
