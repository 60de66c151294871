//===- MicroKernel.cpp - A linalg chain as register tiles
//-------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Chain finds what is fused and checks it, on tensors when marking and again on
// memrefs when expanding. Emitter, in call order: loops
// (tile loops with static tails), tile (one register tile: accumulators,
// reduction loops, epilogue, store), access (one operand of one point).
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/MicroKernel.h"
#include "lowering/pipeline/Padding.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir;

namespace pto::lowering {
namespace {

llvm::Error refuse(const Twine &reason) {
  return llvm::createStringError("microkernel: " + reason);
}

/// A position along a dim: a loop's value (none: 0) plus a constant.
struct Index {
  Value base;
  int64_t offset = 0;
  Index plus(int64_t n) const { return {base, offset + n}; }
};

/// One native vector of a tile's last dim.
struct Chunk {
  int64_t offset; ///< Within the tile.
  int64_t width;  ///< Elements in the vector.
  int64_t lanes;  ///< Elements that count; < width: masked.
};

/// What a point reads is the same for all points that agree on these: operand,
/// chunk (if the operand follows the vector dim) and offsets.
using AccessKey = std::pair<unsigned, SmallVector<int64_t>>;

/// Root and what is fused with it, on tensors or on memrefs.
struct Chain {
  linalg::LinalgOp root;
  linalg::LinalgOp anchor; ///< The reduction; root itself, or null.
  linalg::FillOp fill;     ///< Initialises the anchor, or null.
  Value intermediate;      ///< What root reads of another op, the anchor.

  unsigned rank = 0; ///< Of root's result.
  int64_t nativeWidth = 1;
  SmallVector<unsigned> rootLoop, anchorLoop; ///< Loop of each result dim.
  SmallVector<unsigned> reductionLoops;       ///< Of the anchor.
  SmallVector<int64_t> order, unroll;
  SmallVector<int64_t> size; ///< Of the register tile; -1: dynamic last dim.
  bool prefetch = false;
  /// The reduction loop to vectorise, where only reduction loops run along
  /// memory (sums over rows); else the result's last dim is vectorised.
  std::optional<unsigned> rowLoop;

  /// Fills in the rest; an error is a precondition that does not hold.
  llvm::Error analyse(const MicroKernelOptions &options);
};

/// An operand in panels, [N/width][rest...][width], each of which is read from
/// start to end once for every tile of the dims inside the panels' loop.
struct Panels {
  Value flat;                                 ///< The operand as one dim.
  int64_t width = 0, elements = 0, count = 0; ///< Of a panel; panels.
  AffineExpr step;                            ///< Position within `rest`.
  int64_t passes = 1;                         ///< Tiles per panel.
};

/// How the anchor combines its accumulator, if vectors can.
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

/// The value that `kind` leaves every other value unchanged by.
Attribute neutralOf(vector::CombiningKind kind, Type element) {
  Builder b(element.getContext());
  using vector::CombiningKind;
  if (auto type = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    switch (kind) {
    case CombiningKind::MAXIMUMF:
    case CombiningKind::MAXNUMF:
      return b.getFloatAttr(type,
                            APFloat::getInf(semantics, /*Negative=*/true));
    case CombiningKind::MINIMUMF:
    case CombiningKind::MINNUMF:
      return b.getFloatAttr(type, APFloat::getInf(semantics));
    default:
      break;
    }
    return b.getFloatAttr(type, kind == CombiningKind::MUL ? 1.0 : 0.0);
  }
  return b.getIntegerAttr(element, kind == CombiningKind::MUL ? 1 : 0);
}

class Emitter : private Chain {
public:
  Emitter(RewriterBase &b, const Chain &chain)
      : Chain(chain), b(b), loc(root.getLoc()), dest(root.getDpsInits()[0]) {}

  /// Reads a padded operand from its source where the tiles allow it; returns
  /// the buffer that is then not read any more.
  memref::AllocOp readAroundPadding();

  void run() {
    at.assign(rank, Index());
    if (prefetch && anchor)
      findPanels();
    if (rowLoop)
      rowReductions(0);
    else
      loops(0);
  }

private:
  void loops(unsigned level);
  void tile();
  SmallVector<Value> reduce(linalg::LinalgOp op, unsigned level,
                            SmallVector<Value> accs);
  SmallVector<Value> body(linalg::LinalgOp op, ArrayRef<Value> accs);
  SmallVector<Value> epilogue(ArrayRef<Value> accs);
  Value access(linalg::LinalgOp op, OpOperand &operand, ArrayRef<Index> at,
               unsigned vectorLoop, const Chunk &chunk,
               std::map<AccessKey, Value> &cache);
  Value evaluate(linalg::LinalgOp op, ArrayRef<Value> blockArgs, int64_t width);
  SmallVector<Index> pointOf(linalg::LinalgOp op, ArrayRef<int64_t> point,
                             const Chunk &chunk) const;
  Value indexValue(AffineExpr expr, ArrayRef<Index> at);
  Value maskFor(const Chunk &chunk);
  Value constantIndex(int64_t v) {
    return arith::ConstantIndexOp::create(b, loc, v);
  }
  Value sizeOf(unsigned dim) {
    return b.createOrFold<memref::DimOp>(loc, dest, dim);
  }
  void forEachPoint(llvm::function_ref<void(ArrayRef<int64_t>, const Chunk &)>);
  void rowReductions(unsigned dim);
  void rowReduction();
  void findPanels();
  void prefetchNextPanel();
  const PaddedAxis *paddedAxis(unsigned resultDim) const;
  const PaddedAxis *paddedReduction(unsigned loop) const;
  std::pair<int64_t, int64_t> fullWindows(const PaddedAxis &axis,
                                          int64_t extent) const;
  bool isOutside(ArrayRef<Index> point) const;
  SmallVector<Value> clampedLoop(linalg::LinalgOp op, unsigned level,
                                 const PaddedAxis &axis,
                                 SmallVector<Value> accs);
  unsigned resultDimOf(unsigned loop) const {
    return llvm::find(anchorLoop, loop) - anchorLoop.begin();
  }
  static bool isContiguous(AffineMap map, unsigned loop, const Chunk &chunk,
                           bool alignedTile);

  RewriterBase &b;
  Location loc;
  Value dest;
  std::optional<Padding> padding;
  std::optional<Panels> panels;
  SmallVector<int64_t> savedSize;

  // State while emitting.
  SmallVector<Index> at; ///< The tile's position, per result dim.
  Value dynamicLanes;    ///< Elements in a dynamic last dim.
  SmallVector<Chunk> chunks;
  SmallVector<Index> reductionAt; ///< Position of each reduction loop.
  /// Result dims along which the tile's windows may reach over the edge.
  llvm::SmallDenseSet<unsigned> edges;
};

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

  // A dim that both factors have says which product it is: nothing is shared
  // along it, wherever it lies in the result.
  auto isBatch = [&](unsigned d) {
    if (!anchor || anchor.getNumDpsInputs() != 2 || d + 1 == rank)
      return false;
    return llvm::all_of(anchor.getDpsInputOperands(), [&](OpOperand *in) {
      AffineMap map = anchor.getMatchingIndexingMap(in);
      AffineExpr loop = getAffineDimExpr(anchorLoop[d], root->getContext());
      return llvm::is_contained(map.getResults(), loop) &&
             llvm::any_of(reductionLoops,
                          [&](unsigned r) { return map.isFunctionOfDim(r); });
    });
  };
  // Tile sizes belong to the last dims that are more than one long (a 1-D
  // convolution's result may be 1x508x1x512); the very last always counts.
  SmallVector<int64_t> tileOf(rank, 1);
  int next = int(options.tile.size()) - 1;
  for (int d = int(rank) - 1; d >= 0 && next >= 0; --d)
    if (d + 1 == int(rank) || (type.getDimSize(d) != 1 && !isBatch(d)))
      tileOf[d] = options.tile[next--];
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

/// One scalar of the result after the other, from dim `dim` on.
void Emitter::rowReductions(unsigned dim) {
  if (dim == rank)
    return rowReduction();
  auto op = scf::ForOp::create(b, loc, constantIndex(0), sizeOf(dim),
                               constantIndex(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  at[dim] = {op.getInductionVar(), 0};
  rowReductions(dim + 1);
}

/// A reduction along memory: partial results in the lanes of a few vectors,
/// then across the lanes.
void Emitter::rowReduction() {
  constexpr int64_t partials = 4;
  Type element = getElementTypeOrSelf(anchor.getDpsInits()[0].getType());
  vector::CombiningKind kind = *reductionKind(anchor);
  auto type = VectorType::get({nativeWidth}, element);
  Value neutral = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, neutralOf(kind, element)));

  // The row's length, from an operand that it indexes.
  Value total;
  for (OpOperand *in : anchor.getDpsInputOperands()) {
    AffineMap map = anchor.getMatchingIndexingMap(in);
    for (auto [d, e] : llvm::enumerate(map.getResults()))
      if (!total && e == b.getAffineDimExpr(*rowLoop))
        total = b.createOrFold<memref::DimOp>(loc, in->get(), d);
  }
  Chunk one{0, 1, 1};
  auto steps = [&](Index k, const Chunk &chunk, ArrayRef<Value> accs,
                   Value mask) {
    SmallVector<Value> out;
    for (auto [u, acc] : llvm::enumerate(accs)) {
      SmallVector<int64_t> zero(rank, 0);
      SmallVector<Index> p = pointOf(anchor, zero, one);
      p[*rowLoop] = k.plus(int64_t(u) * nativeWidth);
      std::map<AccessKey, Value> cache;
      SmallVector<Value> args;
      for (OpOperand *in : anchor.getDpsInputOperands())
        args.push_back(access(anchor, *in, p, *rowLoop, chunk, cache));
      args.push_back(acc);
      Value next = evaluate(anchor, args, chunk.width);
      if (mask)
        next = arith::SelectOp::create(b, loc, mask, next, acc);
      out.push_back(next);
    }
    return out;
  };
  auto loop = [&](Value from, Value to, int64_t by, SmallVector<Value> accs,
                  bool masked) {
    auto op = scf::ForOp::create(b, loc, from, to, constantIndex(by), accs);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.getBody());
    Chunk chunk{0, nativeWidth, nativeWidth};
    Value mask;
    if (masked) {
      chunk.lanes = -1;
      dynamicLanes = arith::SubIOp::create(b, loc, to, op.getInductionVar());
      mask = maskFor(chunk);
    }
    scf::YieldOp::create(b, loc,
                         steps({op.getInductionVar(), 0}, chunk,
                               SmallVector<Value>(op.getRegionIterArgs()),
                               mask));
    return SmallVector<Value>(op.getResults());
  };
  auto floor = [&](int64_t by) -> Value {
    Value rest = arith::RemUIOp::create(b, loc, total, constantIndex(by));
    return arith::SubIOp::create(b, loc, total, rest);
  };
  Value block = floor(partials * nativeWidth), whole = floor(nativeWidth);
  SmallVector<Value> accs(partials, neutral);
  accs = loop(constantIndex(0), block, partials * nativeWidth, accs, false);
  Value acc = accs[0];
  for (Value other : ArrayRef<Value>(accs).drop_front())
    acc = vector::makeArithReduction(b, loc, kind, acc, other);
  acc = loop(block, whole, nativeWidth, {acc}, false)[0];
  acc = loop(whole, total, nativeWidth, {acc}, true)[0];
  Value scalar = vector::ReductionOp::create(b, loc, kind, acc);

  auto indicesOf = [&](linalg::LinalgOp op, OpOperand *operand) {
    SmallVector<Index> p = pointOf(op, SmallVector<int64_t>(rank, 0), one);
    SmallVector<Value> indices;
    for (AffineExpr e : op.getMatchingIndexingMap(operand).getResults())
      indices.push_back(indexValue(e, p));
    return indices;
  };
  OpOperand *init = anchor.getDpsInitOperand(0);
  Value start = fill ? fill.getInputs()[0]
                     : memref::LoadOp::create(b, loc, init->get(),
                                              indicesOf(anchor, init))
                           .getResult();
  scalar = vector::makeArithReduction(b, loc, kind, start, scalar);
  if (anchor != root) {
    chunks = {one};
    std::swap(size, savedSize);
    size.assign(rank, 1);
    Value lane = vector::BroadcastOp::create(
        b, loc, VectorType::get({1}, element), scalar);
    Value result = epilogue({lane})[0];
    std::swap(size, savedSize);
    scalar = vector::ExtractOp::create(b, loc, result, ArrayRef<int64_t>{0});
  }
  memref::StoreOp::create(b, loc, scalar, dest,
                          indicesOf(root, root.getDpsInitOperand(0)));
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

  AccessKey key{operand.getOperandNumber(), {chunk.width}};
  for (unsigned l = 0; l < map.getNumDims(); ++l)
    key.second.push_back(map.isFunctionOfDim(l) ? point[l].offset : 0);
  Value &known = cache[key];
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

memref::AllocOp Emitter::readAroundPadding() {
  if (!anchor)
    return {};
  std::optional<Padding> found = resolvePadding(anchor);
  if (!found)
    return {};
  ArrayRef<int64_t> shape = cast<ShapedType>(dest.getType()).getShape();
  for (const PaddedAxis &axis : found->axes) {
    unsigned dim = resultDimOf(axis.parallelLoop);
    if (dim + 1 == rank) // Vectors would have to be masked by position.
      return {};
    // Edge tiles need constant positions and windows known while compiling.
    if (size[dim] > 1 && (ShapedType::isDynamic(shape[dim]) ||
                          !isConstantIntValue(axis.offset, 0)))
      return {};
    if (ShapedType::isDynamic(anchor.getStaticLoopRanges()[axis.reductionLoop]))
      return {};
  }
  padding = std::move(found);
  return padding->buffer;
}

/// Finds the operand worth prefetching: packed along the result's last dim,
/// whose loop is the outermost, with more than one panel and more than one pass
/// over each.
void Emitter::findPanels() {
  auto result = cast<ShapedType>(dest.getType());
  if (order.front() != int64_t(rank) - 1 || !result.hasStaticShape())
    return;
  int64_t passes = 1;
  for (unsigned d = 0; d + 1 < rank; ++d)
    passes *= llvm::divideCeil(result.getDimSize(d), size[d]);
  if (passes < 2)
    return;
  AffineExpr last = b.getAffineDimExpr(anchorLoop[rank - 1]);
  for (OpOperand *in : anchor.getDpsInputOperands()) {
    auto type = dyn_cast<MemRefType>(in->get().getType());
    AffineMap map = anchor.getMatchingIndexingMap(in);
    if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity() ||
        map.getNumResults() < 3)
      continue;
    int64_t width = type.getShape().back(), count = type.getShape().front();
    if (map.getResults().front() != last.floorDiv(width) ||
        map.getResults().back() != last % width || count < 2 ||
        size[rank - 1] != width)
      continue;
    Panels found;
    found.width = width;
    found.count = count;
    found.elements = type.getNumElements() / count;
    found.passes = passes;
    found.step = b.getAffineConstantExpr(0);
    for (auto [e, extent] :
         llvm::zip_equal(map.getResults().drop_front().drop_back(),
                         type.getShape().drop_front().drop_back()))
      found.step = found.step * extent + e;
    ReassociationIndices all;
    for (int64_t i = 0; i < type.getRank(); ++i)
      all.push_back(i);
    found.flat = memref::CollapseShapeOp::create(
        b, loc, in->get(), ArrayRef<ReassociationIndices>{all});
    panels = found;
    return;
  }
}

/// Each pass over a panel asks for its share of the next one: what memory
/// delivers during all passes would else be waited for in the first.
void Emitter::prefetchNextPanel() {
  unsigned last = rank - 1;
  if (!at[last].base)
    return; // The tail panel: none follows.
  auto result = cast<ShapedType>(dest.getType());
  SmallVector<Index> p(at);
  AffineExpr pass = b.getAffineConstantExpr(0);
  for (unsigned d = 0; d < last; ++d)
    pass = pass * int64_t(llvm::divideCeil(result.getDimSize(d), size[d])) +
           b.getAffineDimExpr(d).floorDiv(size[d]);
  AffineExpr next = b.getAffineDimExpr(last).floorDiv(panels->width) + 1;
  // The reduction's position, in the anchor's loops.
  SmallVector<AffineExpr> reduction(anchor.getNumLoops(),
                                    b.getAffineConstantExpr(0));
  for (auto [i, loop] : llvm::enumerate(reductionLoops)) {
    reduction[loop] = b.getAffineDimExpr(p.size());
    p.push_back(reductionAt[i]);
  }
  AffineExpr share =
      pass * (panels->elements / panels->passes) +
      panels->step.replaceDims(reduction) *
          int64_t(llvm::divideCeil(panels->width, panels->passes));
  Value index = indexValue(next * panels->elements + share, p);
  memref::PrefetchOp::create(b, loc, panels->flat, index, /*isWrite=*/false,
                             /*localityHint=*/2, /*isDataCache=*/true);
}

const PaddedAxis *Emitter::paddedAxis(unsigned resultDim) const {
  if (padding)
    for (const PaddedAxis &axis : padding->axes)
      if (resultDimOf(axis.parallelLoop) == resultDim)
        return &axis;
  return nullptr;
}

const PaddedAxis *Emitter::paddedReduction(unsigned loop) const {
  if (padding)
    for (const PaddedAxis &axis : padding->axes)
      if (axis.reductionLoop == loop)
        return &axis;
  return nullptr;
}

/// The positions [low, high) along a padded axis whose windows lie inside.
std::pair<int64_t, int64_t> Emitter::fullWindows(const PaddedAxis &axis,
                                                 int64_t extent) const {
  linalg::LinalgOp op = anchor;
  int64_t taps = op.getStaticLoopRanges()[axis.reductionLoop];
  int64_t shift = axis.c - axis.low;
  int64_t low = std::max<int64_t>(0, llvm::divideCeilSigned(-shift, axis.a));
  int64_t last = axis.extent - 1 - shift - axis.b * (taps - 1);
  int64_t high = last < 0 ? 0 : std::min<int64_t>(extent, last / axis.a + 1);
  return {std::min(low, extent), std::max(std::min(low, extent), high)};
}

/// True if a tap of an edge tile lies outside the source.
bool Emitter::isOutside(ArrayRef<Index> point) const {
  if (!padding)
    return false;
  for (const PaddedAxis &axis : padding->axes) {
    if (!edges.contains(resultDimOf(axis.parallelLoop)))
      continue;
    int64_t at = axis.a * point[axis.parallelLoop].offset +
                 axis.b * point[axis.reductionLoop].offset + axis.c - axis.low;
    if (at < 0 || at >= axis.extent)
      return true;
  }
  return false;
}

/// A reduction loop over the taps inside the source only; the tile is one long
/// along the axis.
SmallVector<Value> Emitter::clampedLoop(linalg::LinalgOp op, unsigned level,
                                        const PaddedAxis &axis,
                                        SmallVector<Value> accs) {
  int64_t taps = op.getStaticLoopRanges()[axis.reductionLoop];
  // Source index of tap 0: a * o + start.
  Index o = at[resultDimOf(axis.parallelLoop)];
  AffineExpr first = b.getAffineDimExpr(0) * axis.a + axis.c - axis.low;
  SmallVector<Index> position{o};
  if (std::optional<int64_t> c = getConstantIntValue(axis.offset)) {
    first = first + *c;
  } else {
    first = first + b.getAffineDimExpr(1);
    position.push_back({cast<Value>(axis.offset), 0});
  }
  auto bound = [&](AffineExpr e) { return indexValue(e, position); };
  Value low = arith::MaxSIOp::create(b, loc, constantIndex(0),
                                     bound((-first).ceilDiv(axis.b)));
  Value high =
      arith::MinSIOp::create(b, loc, constantIndex(taps),
                             bound((-first + axis.extent).ceilDiv(axis.b)));
  auto loopOp = scf::ForOp::create(b, loc, low, high, constantIndex(1), accs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loopOp.getBody());
  reductionAt.push_back({loopOp.getInductionVar(), 0});
  SmallVector<Value> inner =
      reduce(op, level + 1, SmallVector<Value>(loopOp.getRegionIterArgs()));
  reductionAt.pop_back();
  scf::YieldOp::create(b, loc, inner);
  return SmallVector<Value>(loopOp.getResults());
}

constexpr StringLiteral kMicroKernel = "pto.microkernel";
constexpr StringLiteral kFused = "pto.fused";

/// The chain of a root on tensors, by what it uses.
Chain findOnTensors(linalg::LinalgOp root) {
  Chain chain;
  chain.root = root;
  auto fusable = [&](Operation *op) {
    return op && op->getBlock() == root->getBlock() && op->hasOneUse() &&
           !op->hasAttr(kMicroKernel);
  };
  linalg::LinalgOp reducer = root;
  if (root.getNumReductionLoops() == 0) {
    reducer = {};
    for (OpOperand *in : root.getDpsInputOperands()) {
      auto producer = in->get().getDefiningOp<linalg::LinalgOp>();
      if (producer && fusable(producer) && producer->getNumResults() == 1 &&
          producer.getNumReductionLoops() > 0) {
        reducer = chain.anchor = producer;
        chain.intermediate = in->get();
        break;
      }
    }
  }
  if (reducer) {
    auto fill = reducer.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
    if (fill && fusable(fill))
      chain.fill = fill;
  }
  return chain;
}

/// The op before `user` in its block that is marked as fused and writes
/// `buffer`.
linalg::LinalgOp fusedWriter(linalg::LinalgOp user, Value buffer) {
  for (Operation *op = user->getPrevNode(); op; op = op->getPrevNode())
    if (auto writer = dyn_cast<linalg::LinalgOp>(op))
      if (op->hasAttr(kFused) && writer.getDpsInits()[0] == buffer)
        return writer;
  return {};
}

/// The same chain after bufferisation, by what it writes.
Chain findOnBuffers(linalg::LinalgOp root) {
  Chain chain;
  chain.root = root;
  linalg::LinalgOp reducer = root;
  if (root.getNumReductionLoops() == 0) {
    reducer = {};
    for (OpOperand *in : root.getDpsInputOperands())
      if (linalg::LinalgOp writer = fusedWriter(root, in->get())) {
        reducer = chain.anchor = writer;
        chain.intermediate = in->get();
        break;
      }
  }
  if (reducer)
    if (linalg::LinalgOp writer =
            fusedWriter(reducer, reducer.getDpsInits()[0]))
      chain.fill = dyn_cast<linalg::FillOp>(writer.getOperation());
  return chain;
}

MicroKernelOptions readOptions(DictionaryAttr attr) {
  MicroKernelOptions options;
  options.tile =
      llvm::to_vector(attr.getAs<DenseI64ArrayAttr>("tile_sizes").asArrayRef());
  options.unroll =
      llvm::to_vector(attr.getAs<DenseI64ArrayAttr>("unroll").asArrayRef());
  options.vectorLoop = attr.getAs<IntegerAttr>("vector_loop").getInt();
  options.vectorBits = attr.getAs<IntegerAttr>("vector_bits").getInt();
  options.prefetch = attr.getAs<BoolAttr>("prefetch").getValue();
  return options;
}

} // namespace

llvm::Error markMicroKernel(linalg::LinalgOp root,
                            const MicroKernelOptions &options) {
  if (root->hasAttr(kMicroKernel) || root->hasAttr(kFused))
    return llvm::Error::success();
  if (root->getNumResults() != 1)
    return refuse("the op is not on tensors, or has several results");
  Chain chain = findOnTensors(root);
  if (llvm::Error e = chain.analyse(options))
    return e;
  Builder b(root->getContext());
  root->setAttr(
      kMicroKernel,
      b.getDictionaryAttr(
          {b.getNamedAttr("prefetch", b.getBoolAttr(options.prefetch)),
           b.getNamedAttr("tile_sizes", b.getDenseI64ArrayAttr(options.tile)),
           b.getNamedAttr("unroll", b.getDenseI64ArrayAttr(options.unroll)),
           b.getNamedAttr("vector_bits",
                          b.getI64IntegerAttr(options.vectorBits)),
           b.getNamedAttr("vector_loop",
                          b.getI64IntegerAttr(options.vectorLoop))}));
  // Numbered, so that equal ones of two chains stay two.
  int64_t number = 0;
  root->getParentOfType<FunctionOpInterface>()->walk(
      [&](Operation *op) { number += op->hasAttr(kMicroKernel); });
  if (chain.anchor && chain.anchor != root)
    chain.anchor->setAttr(kFused, b.getI64IntegerAttr(number));
  if (chain.fill)
    chain.fill->setAttr(kFused, b.getI64IntegerAttr(number));
  return llvm::Error::success();
}

LogicalResult expandMicroKernels(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  SmallVector<linalg::LinalgOp> roots;
  module.walk([&](linalg::LinalgOp op) {
    if (op->hasAttr(kMicroKernel))
      roots.push_back(op);
  });
  llvm::SetVector<Operation *> unread;
  for (linalg::LinalgOp root : roots) {
    auto attr = root->getAttrOfType<DictionaryAttr>(kMicroKernel);
    Chain chain = findOnBuffers(root);
    if (llvm::Error e = chain.analyse(readOptions(attr)))
      return root.emitError(llvm::toString(std::move(e)));
    rewriter.setInsertionPoint(root);
    Emitter emitter(rewriter, chain);
    if (memref::AllocOp buffer = emitter.readAroundPadding())
      unread.insert(buffer);
    emitter.run();
    rewriter.eraseOp(root);
    if (chain.anchor && chain.anchor != root)
      rewriter.eraseOp(chain.anchor);
    if (chain.fill)
      rewriter.eraseOp(chain.fill);
  }
  for (Operation *buffer : unread)
    eraseUnreadPadding(rewriter, cast<memref::AllocOp>(buffer));
  return success();
}

} // namespace pto::lowering
