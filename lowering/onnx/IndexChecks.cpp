//===- IndexChecks.cpp - Indices that come with the data ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Code that reads at computed places clamps them, so that memory is never
// touched out of bounds; a small reduction of its own finds the least index
// out of bounds, for the run to report. It is a value like any other: fusion
// and schedules need not know of it, and the reads stay vectorisable.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/SizeChecks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "targets/cpu/runtime/pto_artifact.h"

using namespace mlir;

namespace pto::lowering {

static std::string nameOf(Node &n) {
  auto name = dyn_cast<NameLoc>(n.loc);
  return "node '" + (name ? name.getName().str() : std::string()) + "' (" +
         n.op().str() + ")";
}

llvm::Error Node::require(arith::CmpIPredicate predicate, OpFoldResult x,
                          OpFoldResult y, const Twine &message) {
  if (requireSizes(b, loc, predicate, x, y,
                   nameOf(*this) + ": " + message.str()))
    return llvm::Error::success();
  return invalid(message);
}

/// Known indices; true if nothing is left for run time.
static llvm::Expected<bool> checkKnown(Node &n, Tensor &indices,
                                       ArrayRef<OpFoldResult> limits) {
  auto values = knownIntegers(indices);
  bool all = values.has_value();
  for (size_t i = 0; values && i < values->size(); ++i) {
    auto limit = known(limits[i % limits.size()]);
    int64_t v = (*values)[i];
    all &= limit.has_value();
    if (limit && (v < -*limit || v >= *limit))
      return n.invalid("index " + Twine(v) + " is out of bounds for size " +
                       Twine(*limit));
  }
  return all;
}

llvm::Error Node::checkIndices(Tensor &indices, ArrayRef<OpFoldResult> limits) {
  if (!isSigned(indices.dtype))
    return invalid("indices of type " + onnxTypeName(indices.dtype));
  auto done = checkKnown(*this, indices, limits);
  if (!done)
    return done.takeError();
  Sizes sizes = sizesOf(*this, indices);
  OpFoldResult count = product(b, loc, sizes);
  if (*done || known(count) == 0)
    return llvm::Error::success();
  // Clamped indices still need something to point at.
  for (OpFoldResult limit : limits)
    if (known(limit) != 1 && (!known(limit) || *known(limit) == 0))
      if (auto error = require(arith::CmpIPredicate::sle,
                               minSizes(b, loc, count, b.getIndexAttr(1)),
                               limit, "indices into an empty dim"))
        return error;

  Value list = value(indices);
  if (indices.rank() == 0)
    list = reshape(b, loc, list, {b.getIndexAttr(1)});
  int64_t rank = cast<RankedTensorType>(list.getType()).getRank();
  SmallVector<Value> bounds;
  for (OpFoldResult limit : limits)
    bounds.push_back(getValueOrCreateConstantIndexOp(b, loc, limit));
  Value none =
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(PTO_NO_BAD_INDEX));
  Value worst = reduce(
      b, loc, list, llvm::to_vector(llvm::seq<int64_t>(0, rank)), none,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        Type i64 = b.getI64Type();
        Value bound = bounds[0];
        if (bounds.size() > 1) {
          Value place = linalg::IndexOp::create(b, loc, rank - 1);
          for (size_t k = 1; k < bounds.size(); ++k) {
            Value here = arith::CmpIOp::create(
                b, loc, arith::CmpIPredicate::eq, place,
                arith::ConstantIndexOp::create(b, loc, k));
            bound = arith::SelectOp::create(b, loc, here, bounds[k], bound);
          }
        }
        bound = arith::IndexCastOp::create(b, loc, i64, bound);
        Value index = v[0].getType() == i64
                          ? v[0]
                          : arith::ExtSIOp::create(b, loc, i64, v[0]);
        Value zero = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
        Value lowest = arith::SubIOp::create(b, loc, zero, bound);
        Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                            index, lowest);
        Value above = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                            index, bound);
        Value bad = arith::OrIOp::create(b, loc, below, above);
        Value fill = arith::ConstantOp::create(
            b, loc, b.getI64IntegerAttr(PTO_NO_BAD_INDEX));
        Value found = arith::SelectOp::create(b, loc, bad, index, fill);
        return arith::MinSIOp::create(b, loc, found, v[1]);
      });
  checks->emplace_back(worst, nameOf(*this));
  return llvm::Error::success();
}

} // namespace pto::lowering
