//===- Permutation.cpp - Stored order of a tensor's dims ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Permutation.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;

namespace pto::lowering {

bool isIdentity(ArrayRef<int64_t> perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i))
      return false;
  return true;
}

Permutation inverse(ArrayRef<int64_t> perm) {
  Permutation result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    result[perm[i]] = i;
  return result;
}

RankedTensorType permuted(RankedTensorType type, ArrayRef<int64_t> perm) {
  return RankedTensorType::get(permuted(type.getShape(), perm),
                               type.getElementType(), type.getEncoding());
}

AffineMap permuteResults(AffineMap map, ArrayRef<int64_t> perm) {
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(),
                        permuted(map.getResults(), perm), map.getContext());
}

static bool movesOnlyUnitDims(RankedTensorType type, ArrayRef<int64_t> perm) {
  int64_t last = -1;
  for (int64_t dim : perm) {
    if (type.getDimSize(dim) == 1)
      continue;
    if (dim < last)
      return false;
    last = dim;
  }
  return true;
}

Value transposeValue(OpBuilder &b, Location loc, Value value,
                     ArrayRef<int64_t> perm) {
  if (isIdentity(perm))
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  RankedTensorType resultType = permuted(type, perm);
  if (movesOnlyUnitDims(type, perm))
    if (Value reshaped = reshapeTo(b, loc, value, resultType))
      return reshaped;
  SmallVector<OpFoldResult> sizes =
      permuted(ArrayRef(tensor::getMixedSizes(b, loc, value)), perm);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  unsigned rank = perm.size();
  // Walk the result in order: result loop i is operand dim perm[i].
  Permutation position = inverse(perm);
  SmallVector<AffineExpr> source;
  for (unsigned dim = 0; dim < rank; ++dim)
    source.push_back(b.getAffineDimExpr(position[dim]));
  AffineMap in = AffineMap::get(rank, 0, source, b.getContext());
  return linalg::GenericOp::create(
             b, loc, TypeRange{resultType}, ValueRange{value},
             ValueRange{empty},
             ArrayRef<AffineMap>{in, b.getMultiDimIdentityMap(rank)},
             SmallVector<utils::IteratorType>(rank,
                                              utils::IteratorType::parallel),
             [](OpBuilder &b, Location loc, ValueRange args) {
               linalg::YieldOp::create(b, loc, args[0]);
             })
      .getResult(0);
}

/// The groups of `shape`'s dims with one non-unit dim each; unit dims join the
/// group before them, leading ones the first.
static SmallVector<ReassociationIndices> unitGroups(ArrayRef<int64_t> shape) {
  SmallVector<ReassociationIndices> groups;
  bool full = true;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (full && (size != 1 || groups.empty())) {
      groups.emplace_back();
      full = false;
    }
    if (!groups.empty())
      groups.back().push_back(dim);
    if (size != 1)
      full = true;
  }
  return groups;
}

static RankedTensorType withoutUnitDims(RankedTensorType type) {
  SmallVector<int64_t> shape;
  for (int64_t size : type.getShape())
    if (size != 1)
      shape.push_back(size);
  return RankedTensorType::get(shape, type.getElementType());
}

static Value collapseUnits(OpBuilder &b, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  RankedTensorType small = withoutUnitDims(type);
  if (small.getRank() == type.getRank())
    return value;
  SmallVector<ReassociationIndices> groups;
  if (small.getRank() != 0)
    groups = unitGroups(type.getShape());
  return tensor::CollapseShapeOp::create(b, loc, small, value, groups);
}

static Value expandUnits(OpBuilder &b, Location loc, Value value,
                         RankedTensorType type) {
  auto small = cast<RankedTensorType>(value.getType());
  if (small.getRank() == type.getRank())
    return value;
  SmallVector<ReassociationIndices> groups;
  if (small.getRank() != 0)
    groups = unitGroups(type.getShape());
  return tensor::ExpandShapeOp::create(b, loc, type, value, groups);
}

Value reshapeTo(OpBuilder &b, Location loc, Value value,
                RankedTensorType type) {
  if (value.getType() == type)
    return value;
  value = collapseUnits(b, loc, value);
  auto from = cast<RankedTensorType>(value.getType());
  RankedTensorType to = withoutUnitDims(type);
  if (from != to) {
    if (from.getRank() == to.getRank())
      return {};
    bool expand = from.getRank() < to.getRank();
    auto groups = expand ? getReassociationIndicesForReshape(to, from)
                         : getReassociationIndicesForReshape(from, to);
    if (!groups)
      return {};
    if (expand)
      value = tensor::ExpandShapeOp::create(b, loc, to, value, *groups);
    else
      value = tensor::CollapseShapeOp::create(b, loc, to, value, *groups);
  }
  return expandUnits(b, loc, value, type);
}

} // namespace pto::lowering
