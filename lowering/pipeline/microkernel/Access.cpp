//===- Access.cpp - Bodies, and what they read and write ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/microkernel/Emitter.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pto::lowering::microkernel {

/// Clones `op`'s scalar body on vectors of `width`.
Value Emitter::evaluate(linalg::LinalgOp op, ArrayRef<Value> blockArgs,
                        int64_t width) {
  IRMapping map;
  Block *block = op.getBlock();
  for (auto [arg, value] : llvm::zip_equal(block->getArguments(), blockArgs))
    if (value)
      map.map(arg, value);
  auto vectorOf = [&](Value v) -> Value {
    if (Value known = map.lookupOrNull(v))
      return known;
    // Defined outside the body, or a constant inside: the same in all lanes.
    Value scalar = v;
    if (Operation *def = v.getDefiningOp(); def && def->getBlock() == block)
      scalar = b.clone(*def)->getResult(0);
    Value splat = vector::BroadcastOp::create(
        b, loc, VectorType::get({width}, v.getType()), scalar);
    map.map(v, splat);
    return splat;
  };
  for (Operation &inner : block->without_terminator()) {
    if (inner.hasTrait<OpTrait::ConstantLike>())
      continue;
    SmallVector<Value> operands;
    for (Value v : inner.getOperands())
      operands.push_back(vectorOf(v));
    SmallVector<Type> types;
    for (Type t : inner.getResultTypes())
      types.push_back(VectorType::get({width}, t));
    OperationState state(loc, inner.getName());
    state.addOperands(operands);
    state.addTypes(types);
    state.addAttributes(inner.getDiscardableAttrDictionary().getValue());
    state.propertiesAttr = inner.getPropertiesAsAttribute();
    Operation *made = b.create(state);
    map.map(inner.getResults(), made->getResults());
  }
  return vectorOf(block->getTerminator()->getOperand(0));
}

Value Emitter::indexValue(AffineExpr expr, ArrayRef<Index> at) {
  // Substitute d_i -> d_i + offset_i; dims without a base become constants.
  SmallVector<AffineExpr> dims;
  SmallVector<OpFoldResult> bases;
  for (auto [i, index] : llvm::enumerate(at)) {
    AffineExpr e = b.getAffineConstantExpr(index.offset);
    if (index.base) {
      e = b.getAffineDimExpr(bases.size()) + e;
      bases.push_back(index.base);
    }
    dims.push_back(e);
  }
  AffineExpr full = expr.replaceDims(dims);
  OpFoldResult folded = affine::makeComposedFoldedAffineApply(
      b, loc, AffineMap::get(bases.size(), 0, full), bases);
  return getValueOrCreateConstantIndexOp(b, loc, folded);
}

/// True when neighbouring values of `loop` are neighbours in memory, over the
/// whole chunk: the loop occurs once, in the last result with coefficient 1;
/// or the access is blocked (x floordiv N, ..., x mod N) and the chunk does not
/// cross a block.
bool Emitter::isContiguous(AffineMap map, unsigned loop, const Chunk &chunk,
                           bool alignedTile) {
  MLIRContext *ctx = map.getContext();
  unsigned n = map.getNumResults();
  AffineExpr dim = getAffineDimExpr(loop, ctx);
  auto slope = [&](AffineExpr e) -> std::optional<int64_t> {
    AffineExpr moved = e.replace(dim, dim + 1);
    AffineExpr d = simplifyAffineExpr(moved - e, map.getNumDims(), 0);
    if (auto c = dyn_cast<AffineConstantExpr>(d))
      return c.getValue();
    return std::nullopt;
  };
  AffineExpr last = map.getResult(n - 1);
  int64_t block = 0;
  if (auto mod = dyn_cast<AffineBinaryOpExpr>(last);
      mod && mod.getKind() == AffineExprKind::Mod) {
    auto c = dyn_cast<AffineConstantExpr>(mod.getRHS());
    if (!c || mod.getLHS() != dim || !alignedTile ||
        c.getValue() % chunk.width != 0)
      return false;
    block = c.getValue();
  } else if (slope(last) != 1) {
    return false;
  }
  for (AffineExpr e : map.getResults().drop_back()) {
    if (!e.isFunctionOfDim(loop))
      continue;
    auto div = dyn_cast<AffineBinaryOpExpr>(e);
    auto c = div ? dyn_cast<AffineConstantExpr>(div.getRHS())
                 : AffineConstantExpr(nullptr);
    if (!block || !div || div.getKind() != AffineExprKind::FloorDiv || !c ||
        c.getValue() != block || div.getLHS() != dim)
      return false;
  }
  return true;
}

/// An operand's value for one vector of the tile.
Value Emitter::access(linalg::LinalgOp op, OpOperand &operand,
                      ArrayRef<Index> point, unsigned vectorLoop,
                      const Chunk &chunk, std::map<AccessKey, Value> &cache) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  Type element = getElementTypeOrSelf(operand.get().getType());
  bool varies = map.isFunctionOfDim(vectorLoop);
  auto type = VectorType::get({chunk.width}, element);

  auto knownAt = [&](ArrayRef<Index> where) -> Value & {
    AccessKey key{operand.getOperandNumber(), {chunk.width}};
    for (unsigned l = 0; l < map.getNumDims(); ++l)
      key.second.push_back(map.isFunctionOfDim(l) ? where[l].offset : 0);
    return cache[key];
  };
  Value &known = knownAt(point);
  if (known)
    return known;

  if (!isa<MemRefType>(operand.get().getType()))
    return known = vector::BroadcastOp::create(b, loc, type, operand.get());
  Value memory = operand.get();
  bool padded = padding && padding->operand == &operand;
  if (padded)
    memory = padding->source;
  auto indices = [&](ArrayRef<Index> where) {
    SmallVector<Value> values;
    for (auto [i, e] : llvm::enumerate(map.getResults())) {
      if (!padded) {
        values.push_back(indexValue(e, where));
        continue;
      }
      auto [start, low] = padding->shift[i];
      SmallVector<Index> shifted(where);
      if (std::optional<int64_t> c = getConstantIntValue(start))
        shifted.push_back({Value(), *c - low});
      else
        shifted.push_back({cast<Value>(start), -low});
      values.push_back(
          indexValue(e + b.getAffineDimExpr(where.size()), shifted));
    }
    return values;
  };
  if (!varies) {
    Value scalar = memref::LoadOp::create(b, loc, memory, indices(point));
    return known = vector::BroadcastOp::create(b, loc, type, scalar);
  }
  int64_t step = size[rank - 1];
  bool aligned =
      !at[rank - 1].base || (step > 0 && step % chunk.width == 0) || step < 0;
  if (isContiguous(map, vectorLoop, chunk, aligned)) {
    Value pad = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    AffineMap minor =
        AffineMap::getMinorIdentityMap(map.getNumResults(), 1, b.getContext());
    return known = vector::TransferReadOp::create(
               b, loc, type, memory, indices(point), AffineMapAttr::get(minor),
               pad, maskFor(chunk), b.getBoolArrayAttr({true}));
  }
  if (!padded && isAcross(op, map, chunk)) {
    unsigned loop = rootLoop[*crossDim];
    int64_t begin = at[*crossDim].offset;
    int64_t first = (point[loop].offset - begin) / nativeWidth * nativeWidth;
    SmallVector<Index> where(point);
    where[loop].offset = begin + first;
    Value pad = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    AffineMap minor =
        AffineMap::getMinorIdentityMap(map.getNumResults(), 1, b.getContext());
    SmallVector<Value> vectors = readAcross(
        element, first, chunk, [&](int64_t lane, VectorType row, Value mask) {
          SmallVector<Index> from(where);
          from[vectorLoop] = from[vectorLoop].plus(lane);
          return vector::TransferReadOp::create(
                     b, loc, row, memory, indices(from),
                     AffineMapAttr::get(minor), pad, mask,
                     b.getBoolArrayAttr({true}))
              .getResult();
        });
    for (auto [i, v] : llvm::enumerate(vectors)) {
      SmallVector<Index> there(where);
      there[loop] = there[loop].plus(int64_t(i));
      knownAt(there) = v;
    }
    return known;
  }
  // Strided: lane by lane.
  if (chunk.lanes < 0) {
    // A dynamic tail: lanes past the end re-read the last element.
    Value result = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    Value last = arith::SubIOp::create(b, loc, dynamicLanes, constantIndex(1));
    for (int64_t l = 0; l < chunk.width; ++l) {
      SmallVector<Index> where(point);
      Value lane = arith::MinUIOp::create(b, loc, last, constantIndex(l));
      Value base = where[vectorLoop].base;
      where[vectorLoop].base =
          base ? arith::AddIOp::create(b, loc, base, lane).getResult() : lane;
      Value scalar = memref::LoadOp::create(b, loc, memory, indices(where));
      result = vector::InsertOp::create(b, loc, scalar, result, l);
    }
    return known = result;
  }
  SmallVector<Value> lanes;
  for (int64_t l = 0; l < chunk.width; ++l) {
    SmallVector<Index> where(point);
    where[vectorLoop] = where[vectorLoop].plus(std::min(l, chunk.lanes - 1));
    lanes.push_back(memref::LoadOp::create(b, loc, memory, indices(where)));
  }
  return known = vector::FromElementsOp::create(b, loc, type, lanes);
}

} // namespace pto::lowering::microkernel
