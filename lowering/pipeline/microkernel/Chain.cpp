//===- Chain.cpp - What a micro-kernel computes ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/microkernel/Chain.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pto::lowering::microkernel {

llvm::Error refuse(const Twine &reason) {
  return llvm::createStringError("microkernel: " + reason);
}

std::optional<vector::CombiningKind> reductionKind(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  Value acc = op.getMatchingBlockArgument(op.getDpsInitOperand(0));
  Operation *combine = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!combine || combine->getNumOperands() != 2 || !acc.hasOneUse() ||
      (combine->getOperand(0) != acc && combine->getOperand(1) != acc))
    return std::nullopt;
  using vector::CombiningKind;
  if (isa<arith::AddFOp, arith::AddIOp>(combine))
    return CombiningKind::ADD;
  if (isa<arith::MulFOp, arith::MulIOp>(combine))
    return CombiningKind::MUL;
  if (isa<arith::MaximumFOp>(combine))
    return CombiningKind::MAXIMUMF;
  if (isa<arith::MinimumFOp>(combine))
    return CombiningKind::MINIMUMF;
  if (isa<arith::MaxNumFOp>(combine))
    return CombiningKind::MAXNUMF;
  if (isa<arith::MinNumFOp>(combine))
    return CombiningKind::MINNUMF;
  return std::nullopt;
}

std::optional<unsigned> crossLoop(AffineMap map, unsigned vectorLoop) {
  if (map.getNumResults() < 2 || !map.isFunctionOfDim(vectorLoop))
    return std::nullopt;
  auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
  if (!last || last.getPosition() == vectorLoop ||
      llvm::any_of(map.getResults().drop_back(), [&](AffineExpr e) {
        return e.isFunctionOfDim(last.getPosition());
      }))
    return std::nullopt;
  return last.getPosition();
}

llvm::Error Chain::analyse(const MicroKernelOptions &options) {
  if (root.getNumDpsInits() != 1)
    return refuse("the op has " + Twine(root.getNumDpsInits()) + " results");
  auto type = dyn_cast<ShapedType>(root.getDpsInits()[0].getType());
  if (!type || !type.hasRank())
    return refuse("the result has no rank");
  rank = type.getRank();
  if (rank == 0)
    return refuse("a rank-0 result has no dim to vectorise");
  AffineMap out = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
  if (!out.isProjectedPermutation())
    return refuse("the result's indexing map is not a permutation");
  for (unsigned d = 0; d < rank; ++d)
    rootLoop.push_back(out.getDimPosition(d));

  if (!anchor && root.getNumReductionLoops() == 0) {
    if (root.getNumLoops() != rank)
      return refuse("a parallel loop does not occur in the result");
  } else if (!anchor) {
    anchor = root;
  } else if (root.getNumReductionLoops()) {
    return refuse("the op after the anchor reduces too");
  }
  if (anchor) {
    AffineMap map = anchor.getMatchingIndexingMap(anchor.getDpsInitOperand(0));
    if (!map.isProjectedPermutation())
      return refuse("the anchor's result map is not a permutation");
    if (anchor == root) {
      anchorLoop = rootLoop;
    } else {
      // The anchor's dims in terms of root's result dims.
      OpOperand *use = nullptr;
      for (OpOperand *in : root.getDpsInputOperands())
        if (in->get() == intermediate)
          use = in;
      AffineMap read = root.getMatchingIndexingMap(use);
      if (!read.isPermutation())
        return refuse("the anchor's result is broadcast");
      anchorLoop.assign(rank, 0);
      for (unsigned d = 0; d < rank; ++d)
        for (unsigned k = 0; k < rank; ++k)
          if (read.getDimPosition(k) == rootLoop[d])
            anchorLoop[d] = map.getDimPosition(k);
    }
    for (auto [i, t] : llvm::enumerate(anchor.getIteratorTypesArray()))
      if (t == utils::IteratorType::reduction)
        reductionLoops.push_back(i);
    if (anchor.getNumLoops() != rank + reductionLoops.size())
      return refuse("a parallel loop of the anchor is not in its result");
  }

  unsigned bits = 8;
  for (linalg::LinalgOp op : {root, anchor}) {
    if (!op)
      continue;
    for (Value v : op->getOperands()) {
      Type element = getElementTypeOrSelf(v.getType());
      if (!element.isIntOrFloat())
        return refuse("element type is not an integer or a float");
      bits = std::max(bits, element.getIntOrFloatBitWidth());
    }
    for (Operation &inner : op.getBlock()->without_terminator())
      if (!OpTrait::hasElementwiseMappableTraits(&inner) &&
          !inner.hasTrait<OpTrait::ConstantLike>())
        return refuse("'" + inner.getName().getStringRef() +
                      "' in the body is not elementwise");
  }
  nativeWidth = std::max<int64_t>(1, options.vectorBits / bits);
  if (anchor && reductionLoops.size() <= 1 && reductionKind(anchor)) {
    bool alongResult = false, alongRow = false;
    for (OpOperand *in : anchor.getDpsInputOperands()) {
      AffineMap map = anchor.getMatchingIndexingMap(in);
      if (map.getNumResults() == 0)
        continue;
      AffineExpr last = map.getResults().back();
      alongResult |= last.isFunctionOfDim(anchorLoop[rank - 1]);
      alongRow |=
          last == getAffineDimExpr(reductionLoops[0], root->getContext());
    }
    if (alongRow && !alongResult)
      rowLoop = reductionLoops[0];
  }

  auto isBatch = [&](unsigned d) {
    return anchor && d + 1 != rank &&
           numbersProducts(anchor,
                           getAffineDimExpr(anchorLoop[d], root->getContext()));
  };
  // Tile sizes belong to the last dims that are more than one long (a 1-D
  // convolution's result may be 1x508x1x512); the very last always counts.
  SmallVector<int64_t> tileOf(rank, 1);
  int next = int(options.tile.size()) - 1;
  for (int d = int(rank) - 1; d >= 0 && next >= 0; --d)
    if (d + 1 == int(rank) || (type.getDimSize(d) != 1 && !isBatch(d)))
      tileOf[d] = options.tile[next--];
  // Squares of native vectors, where an input lies across the result.
  if (!anchor && nativeWidth >= 4 && nativeWidth <= 16)
    for (OpOperand *in : root.getDpsInputOperands())
      if (auto loop =
              crossLoop(root.getMatchingIndexingMap(in), rootLoop[rank - 1])) {
        crossDim = llvm::find(rootLoop, *loop) - rootLoop.begin();
        tileOf[*crossDim] = tileOf[rank - 1] = nativeWidth;
        break;
      }
  int64_t position = options.vectorLoop < 0
                         ? rank - 1
                         : std::min<int64_t>(options.vectorLoop, rank - 1);
  for (bool batch : {true, false})
    for (unsigned d = 0; d + 1 < rank; ++d)
      if (isBatch(d) == batch)
        order.push_back(d);
  order.insert(order.begin() + position, rank - 1);
  if (options.unroll.size() > reductionLoops.size())
    return refuse("more unroll factors than reduction loops (" +
                  Twine(reductionLoops.size()) + ")");
  prefetch = options.prefetch;
  unroll.assign(reductionLoops.size() - options.unroll.size(), 1);
  unroll.append(options.unroll.begin(), options.unroll.end());
  int64_t points = 1;
  for (auto [i, loop] : llvm::enumerate(reductionLoops)) {
    int64_t extent = anchor.getStaticLoopRanges()[loop];
    if (unroll[i] == 0)
      unroll[i] = extent == ShapedType::kDynamic ? 1 : extent;
    points *= std::max<int64_t>(1, unroll[i]);
  }

  // Register pressure is the schedule's business, code size is not.
  int64_t vectors = 1;
  for (unsigned d = 0; d < rank; ++d) {
    int64_t dim = type.getDimSize(d);
    int64_t t = tileOf[d];
    if (t < 0)
      return refuse("a tile size is negative");
    if (t == 0 && dim == ShapedType::kDynamic)
      return refuse("tile size 0 (the whole dim) on a dynamic dim");
    if (t == 0 || (dim != ShapedType::kDynamic && t > dim))
      t = dim;
    size.push_back(t);
    vectors *= d + 1 == rank ? llvm::divideCeil(t, nativeWidth) : t;
  }
  constexpr int64_t maxVectors = 2048;
  if (vectors * points > maxVectors)
    return refuse("too large: " + Twine(vectors * points) +
                  " vector operations in an unrolled tile, limit " +
                  Twine(maxVectors));
  return llvm::Error::success();
}

} // namespace pto::lowering::microkernel
