//===- Emitter.h - A chain as loops over register tiles ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// In call order: loops (tile loops with static tails), tile (one register tile:
// accumulators, reduction loops, epilogue, store), access (one operand of one
// point). Loops.cpp has the first two, Access.cpp what reads and writes memory,
// Across.cpp operands that lie across the vectors, Panels.cpp the prefetching
// of packed operands, Edges.cpp windows that reach over the edge of a padded
// operand.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_PIPELINE_MICROKERNEL_EMITTER_H
#define PTO_LOWERING_PIPELINE_MICROKERNEL_EMITTER_H

#include "lowering/pipeline/Padding.h"
#include "lowering/pipeline/microkernel/Chain.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

namespace pto::lowering::microkernel {

/// A position along a dim: a loop's value (none: 0) plus a constant.
struct Index {
  mlir::Value base;
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
using AccessKey = std::pair<unsigned, llvm::SmallVector<int64_t>>;

/// An operand in panels, [N/width][rest...][width], each of which is read from
/// start to end once for every tile of the dims inside the panels' loop.
struct Panels {
  mlir::Value flat;                           ///< The operand as one dim.
  int64_t width = 0, elements = 0, count = 0; ///< Of a panel; panels.
  mlir::AffineExpr step;                      ///< Position within `rest`.
  int64_t passes = 1;                         ///< Tiles per panel.
};

class Emitter : private Chain {
public:
  Emitter(mlir::RewriterBase &b, const Chain &chain)
      : Chain(chain), b(b), loc(root.getLoc()), dest(root.getDpsInits()[0]) {}

  /// Reads a padded operand from its source where the tiles allow it; returns
  /// the buffer that is then not read any more.
  mlir::memref::AllocOp readAroundPadding();

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
  llvm::SmallVector<mlir::Value> reduce(mlir::linalg::LinalgOp op,
                                        unsigned level,
                                        llvm::SmallVector<mlir::Value> accs);
  llvm::SmallVector<mlir::Value> body(mlir::linalg::LinalgOp op,
                                      llvm::ArrayRef<mlir::Value> accs);
  llvm::SmallVector<mlir::Value> epilogue(llvm::ArrayRef<mlir::Value> accs);
  mlir::Value access(mlir::linalg::LinalgOp op, mlir::OpOperand &operand,
                     llvm::ArrayRef<Index> at, unsigned vectorLoop,
                     const Chunk &chunk,
                     std::map<AccessKey, mlir::Value> &cache);
  bool isAcross(mlir::linalg::LinalgOp op, mlir::AffineMap map,
                const Chunk &chunk) const;
  llvm::SmallVector<mlir::Value>
  readAcross(mlir::Type element, int64_t first, const Chunk &chunk,
             llvm::function_ref<mlir::Value(int64_t lane, mlir::VectorType type,
                                            mlir::Value mask)>
                 read);
  mlir::Value evaluate(mlir::linalg::LinalgOp op,
                       llvm::ArrayRef<mlir::Value> blockArgs, int64_t width);
  llvm::SmallVector<Index> pointOf(mlir::linalg::LinalgOp op,
                                   llvm::ArrayRef<int64_t> point,
                                   const Chunk &chunk) const;
  mlir::Value indexValue(mlir::AffineExpr expr, llvm::ArrayRef<Index> at);
  mlir::Value maskFor(const Chunk &chunk);
  mlir::Value constantIndex(int64_t v) {
    return mlir::arith::ConstantIndexOp::create(b, loc, v);
  }
  mlir::Value sizeOf(unsigned dim) {
    return b.createOrFold<mlir::memref::DimOp>(loc, dest, dim);
  }
  void forEachPoint(
      llvm::function_ref<void(llvm::ArrayRef<int64_t>, const Chunk &)>);
  void rowReductions(unsigned dim);
  void rowReduction();
  void findPanels();
  void prefetchNextPanel();
  const PaddedAxis *paddedAxis(unsigned resultDim) const;
  const PaddedAxis *paddedReduction(unsigned loop) const;
  std::pair<int64_t, int64_t> fullWindows(const PaddedAxis &axis,
                                          int64_t extent) const;
  bool isOutside(llvm::ArrayRef<Index> point) const;
  llvm::SmallVector<mlir::Value>
  clampedLoop(mlir::linalg::LinalgOp op, unsigned level, const PaddedAxis &axis,
              llvm::SmallVector<mlir::Value> accs);
  unsigned resultDimOf(unsigned loop) const {
    return llvm::find(anchorLoop, loop) - anchorLoop.begin();
  }
  static bool isContiguous(mlir::AffineMap map, unsigned loop,
                           const Chunk &chunk, bool alignedTile);

  mlir::RewriterBase &b;
  mlir::Location loc;
  mlir::Value dest;
  std::optional<Padding> padding;
  std::optional<Panels> panels;
  llvm::SmallVector<int64_t> savedSize;

  // State while emitting.
  llvm::SmallVector<Index> at; ///< The tile's position, per result dim.
  mlir::Value dynamicLanes;    ///< Elements in a dynamic last dim.
  llvm::SmallVector<Chunk> chunks;
  llvm::SmallVector<Index> reductionAt; ///< Position of each reduction loop.
  /// Result dims along which the tile's windows may reach over the edge.
  llvm::SmallDenseSet<unsigned> edges;
};

} // namespace pto::lowering::microkernel

#endif // PTO_LOWERING_PIPELINE_MICROKERNEL_EMITTER_H
