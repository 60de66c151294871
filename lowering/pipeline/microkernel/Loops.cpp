//===- Loops.cpp - Tile loops, and what one register tile does ------------===//
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

/// The tile loops from `level` of the order on: whole tiles, then the tail.
void Emitter::loops(unsigned level) {
  if (level == rank)
    return tile();
  unsigned dim = order[level];
  int64_t step = size[dim];
  int64_t extent = cast<ShapedType>(dest.getType()).getDimSize(dim);
  auto loop = [&](Value low, Value high, int64_t by) {
    auto op = scf::ForOp::create(b, loc, low, high, constantIndex(by));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.getBody());
    at[dim] = {op.getInductionVar(), 0};
    loops(level + 1);
  };
  if (const PaddedAxis *axis = paddedAxis(dim); axis && step > 1) {
    // Tiles at the edges stand alone, at constant positions, so that the taps
    // outside are known; those between them share one loop.
    std::pair<int64_t, int64_t> full = fullWindows(*axis, extent);
    int64_t low = full.first, high = full.second;
    int64_t begin = llvm::divideCeilSigned(low, step) * step;
    int64_t end = std::max(begin, high / step * step);
    auto alone = [&](int64_t from, int64_t to) {
      for (int64_t o = from; o < to; o += step) {
        at[dim] = {Value(), o};
        size[dim] = std::min(step, extent - o);
        if (o < low || o + size[dim] > high)
          edges.insert(dim);
        loops(level + 1);
        edges.erase(dim);
      }
      size[dim] = step;
    };
    alone(0, std::min(begin, extent));
    if (begin < end)
      loop(constantIndex(begin), constantIndex(end), step);
    if (begin < extent)
      alone(end, extent);
    return;
  }
  if (extent != ShapedType::kDynamic) {
    int64_t whole = extent / step * step;
    if (whole == step) {
      at[dim] = {};
      loops(level + 1);
    } else if (whole > 0) {
      loop(constantIndex(0), constantIndex(whole), step);
    }
    if (int64_t tail = extent - whole) {
      at[dim] = {Value(), whole};
      size[dim] = tail;
      loops(level + 1);
      size[dim] = step;
    }
    return;
  }
  // Dynamic: whole tiles, then ever smaller ones, or masked vectors if it is
  // the vectorised dim.
  Value total = sizeOf(dim);
  Value tail = arith::RemUIOp::create(b, loc, total, constantIndex(step));
  Value whole = arith::SubIOp::create(b, loc, total, tail);
  loop(constantIndex(0), whole, step);
  if (dim + 1 == rank && nativeWidth > 1) {
    int64_t by = std::min<int64_t>(step, nativeWidth);
    size[dim] = -1;
    auto op = scf::ForOp::create(b, loc, whole, total, constantIndex(by));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.getBody());
    at[dim] = {op.getInductionVar(), 0};
    Value left = arith::SubIOp::create(b, loc, total, op.getInductionVar());
    dynamicLanes = arith::MinUIOp::create(b, loc, left, constantIndex(by));
    loops(level + 1);
  } else {
    Value from = whole;
    for (int64_t by = llvm::PowerOf2Ceil(step) / 2; by > 0; by /= 2) {
      Value rest = arith::SubIOp::create(b, loc, total, from);
      Value part = arith::RemUIOp::create(b, loc, rest, constantIndex(by));
      Value to = arith::SubIOp::create(b, loc, total, part);
      size[dim] = by;
      loop(from, to, by);
      from = to;
    }
  }
  size[dim] = step;
}

void Emitter::forEachPoint(
    llvm::function_ref<void(ArrayRef<int64_t>, const Chunk &)> visit) {
  SmallVector<int64_t> point(rank, 0);
  while (true) {
    for (const Chunk &chunk : chunks)
      visit(point, chunk);
    int d = int(rank) - 2;
    for (; d >= 0; --d) {
      if (++point[d] < size[d])
        break;
      point[d] = 0;
    }
    if (d < 0)
      return;
  }
}

Value Emitter::maskFor(const Chunk &chunk) {
  if (chunk.lanes == chunk.width)
    return Value();
  auto type = VectorType::get({chunk.width}, b.getI1Type());
  if (chunk.lanes < 0)
    return vector::CreateMaskOp::create(b, loc, type, ValueRange{dynamicLanes});
  return vector::ConstantMaskOp::create(b, loc, type,
                                        ArrayRef<int64_t>{chunk.lanes});
}

/// The loop positions of `op` for a point of the tile.
SmallVector<Index> Emitter::pointOf(linalg::LinalgOp op,
                                    ArrayRef<int64_t> point,
                                    const Chunk &chunk) const {
  const SmallVector<unsigned> &loopOf = op == anchor ? anchorLoop : rootLoop;
  SmallVector<Index> result(op.getNumLoops());
  for (unsigned d = 0; d < rank; ++d)
    result[loopOf[d]] = at[d].plus(d + 1 == rank ? chunk.offset : point[d]);
  if (op == anchor)
    for (auto [i, loop] : llvm::enumerate(reductionLoops))
      if (i < reductionAt.size())
        result[loop] = reductionAt[i];
  return result;
}

/// One register tile.
void Emitter::tile() {
  chunks.clear();
  int64_t n = size[rank - 1];
  if (n < 0) {
    chunks.push_back({0, nativeWidth, -1});
  } else {
    for (int64_t o = 0; o < n;) {
      int64_t lanes = std::min(n - o, nativeWidth);
      int64_t width = int64_t(llvm::PowerOf2Ceil(lanes));
      chunks.push_back({o, width, lanes});
      o += lanes;
    }
  }

  // Accumulators: the fill's value, or what the destination holds.
  SmallVector<Value> accs;
  if (anchor) {
    Type element = getElementTypeOrSelf(anchor.getDpsInits()[0].getType());
    std::map<AccessKey, Value> cache;
    std::map<int64_t, Value> splats;
    OpOperand *init = anchor.getDpsInitOperand(0);
    forEachPoint([&](ArrayRef<int64_t> point, const Chunk &chunk) {
      if (fill) {
        Value &splat = splats[chunk.width];
        if (!splat)
          splat = vector::BroadcastOp::create(
              b, loc, VectorType::get({chunk.width}, element),
              fill.getInputs()[0]);
        accs.push_back(splat);
        return;
      }
      // Accumulating in place: read what the tile holds.
      Value source = init->get();
      SmallVector<Index> p = pointOf(anchor, point, chunk);
      AffineMap map = anchor.getMatchingIndexingMap(init);
      SmallVector<Value> indices;
      for (AffineExpr e : map.getResults())
        indices.push_back(indexValue(e, p));
      auto type = VectorType::get({chunk.width}, element);
      Value pad = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
      Value mask = maskFor(chunk);
      accs.push_back(vector::TransferReadOp::create(
          b, loc, type, source, indices,
          AffineMapAttr::get(b.getMultiDimIdentityMap(rank).getMinorIdentityMap(
              rank, 1, b.getContext())),
          pad, mask, b.getBoolArrayAttr({true})));
    });
    reductionAt.clear();
    accs = reduce(anchor, 0, accs);
  }
  SmallVector<Value> results = anchor == root ? accs : epilogue(accs);

  // Stores.
  unsigned i = 0;
  AffineMap minor = AffineMap::getMinorIdentityMap(rank, 1, b.getContext());
  forEachPoint([&](ArrayRef<int64_t> point, const Chunk &chunk) {
    SmallVector<Value> indices;
    for (unsigned d = 0; d < rank; ++d)
      indices.push_back(
          indexValue(b.getAffineDimExpr(0),
                     at[d].plus(d + 1 == rank ? chunk.offset : point[d])));
    vector::TransferWriteOp::create(b, loc, TypeRange{}, results[i++], dest,
                                    indices, AffineMapAttr::get(minor),
                                    maskFor(chunk), b.getBoolArrayAttr({true}));
  });
}

/// The reduction loops from `level` on, accumulators carried.
SmallVector<Value> Emitter::reduce(linalg::LinalgOp op, unsigned level,
                                   SmallVector<Value> accs) {
  if (level == reductionLoops.size())
    return body(op, accs);
  unsigned loop = reductionLoops[level];
  int64_t extent = op.getStaticLoopRanges()[loop];
  int64_t by = std::max<int64_t>(1, unroll[level]);
  if (const PaddedAxis *axis = paddedReduction(loop)) {
    unsigned dim = resultDimOf(axis->parallelLoop);
    if (size[dim] == 1 && !edges.contains(dim))
      return clampedLoop(op, level, *axis, std::move(accs));
    if (edges.contains(dim))
      by = extent; // Each tap's own position must be known.
  }
  auto step = [&](Index index, SmallVector<Value> in) {
    reductionAt.push_back(index);
    SmallVector<Value> out = reduce(op, level + 1, std::move(in));
    reductionAt.pop_back();
    return out;
  };
  if (extent != ShapedType::kDynamic && extent <= by) {
    for (int64_t k = 0; k < extent; ++k)
      accs = step({Value(), k}, accs);
    return accs;
  }
  Value total;
  if (extent != ShapedType::kDynamic) {
    total = constantIndex(extent / by * by);
  } else {
    // The loop's size from the first operand dim that it indexes alone.
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      for (auto [d, e] : llvm::enumerate(map.getResults()))
        if (!total && e == b.getAffineDimExpr(loop))
          total = b.createOrFold<memref::DimOp>(loc, operand.get(), d);
    }
    by = 1;
  }
  auto loopOp = scf::ForOp::create(b, loc, constantIndex(0), total,
                                   constantIndex(by), accs);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loopOp.getBody());
    SmallVector<Value> inner(loopOp.getRegionIterArgs());
    for (int64_t u = 0; u < by; ++u)
      inner = step({loopOp.getInductionVar(), u}, inner);
    scf::YieldOp::create(b, loc, inner);
  }
  accs.assign(loopOp.getResults().begin(), loopOp.getResults().end());
  if (extent != ShapedType::kDynamic)
    for (int64_t k = extent / by * by; k < extent; ++k)
      accs = step({Value(), k}, accs);
  return accs;
}

/// One reduction step for every accumulator of the tile.
SmallVector<Value> Emitter::body(linalg::LinalgOp op, ArrayRef<Value> accs) {
  std::map<AccessKey, Value> cache;
  SmallVector<Value> results;
  unsigned i = 0;
  if (panels)
    prefetchNextPanel();
  forEachPoint([&](ArrayRef<int64_t> point, const Chunk &chunk) {
    SmallVector<Index> p = pointOf(op, point, chunk);
    if (isOutside(p)) {
      results.push_back(accs[i++]);
      return;
    }
    SmallVector<Value> args;
    for (OpOperand *in : op.getDpsInputOperands())
      args.push_back(access(op, *in, p, anchorLoop[rank - 1], chunk, cache));
    args.push_back(accs[i++]);
    results.push_back(evaluate(op, args, chunk.width));
  });
  return results;
}

/// Root's body on the finished accumulators.
SmallVector<Value> Emitter::epilogue(ArrayRef<Value> accs) {
  std::map<AccessKey, Value> cache;
  SmallVector<Value> results;
  unsigned i = 0;
  forEachPoint([&](ArrayRef<int64_t> point, const Chunk &chunk) {
    SmallVector<Index> p = pointOf(root, point, chunk);
    SmallVector<Value> args;
    for (OpOperand &operand : root->getOpOperands()) {
      BlockArgument arg = root.getMatchingBlockArgument(&operand);
      if (anchor && operand.get() == intermediate)
        args.push_back(accs[i]);
      else if (arg.use_empty())
        args.push_back(Value());
      else
        args.push_back(
            access(root, operand, p, rootLoop[rank - 1], chunk, cache));
    }
    results.push_back(evaluate(root, args, chunk.width));
    ++i;
  });
  return results;
}

} // namespace pto::lowering::microkernel
