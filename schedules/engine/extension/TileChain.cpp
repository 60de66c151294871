//===- TileChain.cpp - Tile an op together with what it consumes ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "schedules/engine/extension/TileChain.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include <numeric>

using namespace mlir;

namespace pto::schedules {

/// The panel size by which `op` indexes an operand along `loop` (packed
/// layouts: `loop mod panel`), or 1.
static int64_t panelOf(linalg::LinalgOp op, unsigned loop) {
  int64_t panel = 1;
  for (AffineMap map : op.getIndexingMapsArray())
    for (AffineExpr e : map.getResults()) {
      auto mod = dyn_cast<AffineBinaryOpExpr>(e);
      if (!mod || mod.getKind() != AffineExprKind::Mod ||
          mod.getLHS() != getAffineDimExpr(loop, op->getContext()))
        continue;
      if (auto c = dyn_cast<AffineConstantExpr>(mod.getRHS()))
        panel = std::lcm(panel, c.getValue());
    }
  return panel;
}

int64_t panelAlong(linalg::LinalgOp root, unsigned loop) {
  int64_t panel = panelOf(root, loop);
  // The producers that are tiled along, through root's plain operands.
  for (OpOperand *in : root.getDpsInputOperands()) {
    auto producer = in->get().getDefiningOp<linalg::LinalgOp>();
    AffineMap read = root.getMatchingIndexingMap(in);
    if (!producer || !read.isProjectedPermutation())
      continue;
    AffineMap written =
        producer.getMatchingIndexingMap(producer.getDpsInitOperand(0));
    for (unsigned d = 0; d < read.getNumResults(); ++d)
      if (read.getDimPosition(d) == loop)
        if (auto dim = dyn_cast<AffineDimExpr>(written.getResult(d)))
          panel = std::lcm(panel, panelOf(producer, dim.getPosition()));
  }
  return panel;
}

/// Sizes of `op`'s results that are still asked for come from its destinations:
/// nothing else then keeps an op alive whose tiled copy does the work.
static void takeSizesFromInits(RewriterBase &rewriter, linalg::LinalgOp op) {
  for (OpResult result : op->getResults())
    for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
      if (auto dim = dyn_cast<tensor::DimOp>(user)) {
        rewriter.setInsertionPoint(dim);
        Value init = op.getDpsInits()[result.getResultNumber()];
        rewriter.replaceOp(dim, rewriter.createOrFold<tensor::DimOp>(
                                    dim.getLoc(), init, dim.getIndex()));
      }
}

/// Erases `op` if it is unused, then what only it used.
static void eraseUnused(RewriterBase &rewriter, Operation *first) {
  llvm::SetVector<Operation *> work;
  work.insert(first);
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      takeSizesFromInits(rewriter, linalgOp);
    if (!op->use_empty() || !isa<linalg::LinalgOp, tensor::EmptyOp>(op))
      continue;
    for (Value v : op->getOperands())
      if (Operation *def = v.getDefiningOp())
        work.insert(def);
    rewriter.eraseOp(op);
  }
}

/// The one slice of `op`'s result that is read, if it is read in `loop` alone.
static tensor::ExtractSliceOp onlySlice(linalg::LinalgOp op, Operation *loop) {
  if (op->getNumResults() != 1 || !op->hasOneUse())
    return nullptr;
  auto slice = dyn_cast<tensor::ExtractSliceOp>(*op->user_begin());
  return slice && loop->isProperAncestor(slice) ? slice : nullptr;
}

/// Fuses producers that several ops in the loops read at the same place (the
/// exponentials of a softmax: their sum, and its quotients).
static void fuseShared(RewriterBase &rewriter,
                       MutableArrayRef<LoopLikeOpInterface> loops) {
  Operation *outer = loops.front();
  auto function = outer->getParentOfType<func::FuncOp>();
  // Slices of the same place become one. (This erases any op but the loop.)
  auto mergeSlices = [&] {
    DominanceInfo dominance(function);
    eliminateCommonSubExpressions(rewriter, dominance, function);
  };
  auto fuseLast = [&] {
    for (Operation *op = outer->getPrevNode(); op; op = op->getPrevNode()) {
      auto producer = dyn_cast<linalg::LinalgOp>(op);
      if (!producer || op->hasAttr("pto.pack"))
        continue;
      takeSizesFromInits(rewriter, producer);
      tensor::ExtractSliceOp slice = onlySlice(producer, outer);
      if (slice && scf::tileAndFuseProducerOfSlice(rewriter, slice, loops)) {
        rewriter.eraseOp(slice);
        eraseUnused(rewriter, op);
        return true;
      }
    }
    return false;
  };
  // Readers come behind what they read: in this order, all have been fused.
  do
    mergeSlices();
  while (fuseLast());
}

/// Values that live in the loops alone need no more than a tile of memory.
static void shrinkEmpties(RewriterBase &rewriter, Operation *loop) {
  loop->walk([&](tensor::ExtractSliceOp slice) {
    if (!slice.getSource().getDefiningOp<tensor::EmptyOp>() ||
        slice.getType().getRank() != slice.getSourceType().getRank())
      return;
    rewriter.setInsertionPoint(slice);
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(
        slice, slice.getMixedSizes(), slice.getType().getElementType());
  });
}

FailureOr<TiledChain> tileChain(RewriterBase &rewriter, linalg::LinalgOp root,
                                ArrayRef<OpFoldResult> sizes,
                                ArrayRef<int64_t> interchange, bool parallel) {
  bool any = false, reduces = false;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    if (isConstantIntValue(size, 0))
      continue;
    bool reduction =
        root.getIteratorTypesArray()[i] == utils::IteratorType::reduction;
    any = true;
    reduces |= reduction;
    if (reduction && parallel)
      return root.emitError("tile_chain: loop ")
             << i << " is a reduction: its iterations cannot run in parallel";
  }
  if (!any)
    return TiledChain{root, {}};
  for (auto [loop, mixed] : llvm::enumerate(sizes)) {
    std::optional<int64_t> size = getConstantIntValue(mixed);
    int64_t panel = panelAlong(root, loop);
    if (size && *size % panel && *size < root.getStaticLoopRanges()[loop])
      return root.emitError("tile_chain: tile size ")
             << *size << " cuts the panels of " << panel
             << " in which an operand is packed";
  }
  scf::SCFTileAndFuseOptions options;
  options.tilingOptions.setTileSizes(sizes);
  options.tilingOptions.setLoopType(
      parallel ? scf::SCFTilingOptions::LoopType::ForallOp
               : scf::SCFTilingOptions::LoopType::ForOp);
  if (!interchange.empty())
    options.tilingOptions.setInterchange(interchange);
  // Fused: linalg ops that nothing outside the chain uses (and fills, which
  // cost nothing to repeat).
  llvm::SmallPtrSet<Operation *, 4> chain{root};
  options.setFusionControlFn(
      [&](tensor::ExtractSliceOp slice, OpResult producer, bool isDestination)
          -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
        Operation *op = producer.getOwner();
        // A reduction's loop carries the accumulator: its fill stays before.
        if (isDestination && reduces)
          return std::nullopt;
        bool ours = llvm::all_of(op->getUsers(), [&](Operation *user) {
          return user == slice || chain.contains(user) ||
                 isa<tensor::DimOp>(user);
        });
        if (!isa<linalg::LinalgOp>(op) || op->hasAttr("pto.pack") ||
            !(ours || isa<linalg::FillOp>(op)))
          return std::nullopt;
        chain.insert(op);
        return scf::SCFTileAndFuseOptions::ControlFnResult{};
      });
  rewriter.setInsertionPoint(root);
  FailureOr<scf::SCFTileAndFuseResult> tiled =
      scf::tileConsumerAndFuseProducersUsingSCF(
          rewriter, cast<TilingInterface>(root.getOperation()), options);
  if (failed(tiled))
    return root.emitError("tile_chain: tiling failed");
  TiledChain result;
  result.root = cast<linalg::LinalgOp>(tiled->tiledAndFusedOps.front());
  for (LoopLikeOpInterface loop : tiled->loops)
    result.loops.push_back(loop);
  for (auto [from, to] : tiled->replacements)
    rewriter.replaceAllUsesWith(from, to);
  eraseUnused(rewriter, root);
  if (!reduces) {
    fuseShared(rewriter, result.loops);
    shrinkEmpties(rewriter, result.loops.front());
  }
  return result;
}

} // namespace pto::schedules
