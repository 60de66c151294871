//===- Across.cpp - Operands that lie across the vectors ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Packing and transposing read along one dim and write along another. Lane by
// lane that takes two instructions an element; here squares of W x W elements
// are read as W vectors and transposed in registers: log2(W) instructions a
// vector.
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/microkernel/Emitter.h"

using namespace mlir;

namespace pto::lowering::microkernel {

/// Swaps the off-diagonal blocks of a square of vectors, of half its size
/// first, of single elements last.
static void transpose(RewriterBase &b, Location loc,
                      MutableArrayRef<Value> rows) {
  int64_t width = rows.size();
  for (int64_t block = width / 2; block > 0; block /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t j = 0; j < width; ++j) {
      low.push_back(j & block ? width + j - block : j);
      high.push_back(j & block ? width + j : j + block);
    }
    for (int64_t i = 0; i < width; ++i) {
      if (i & block)
        continue;
      Value first = rows[i], second = rows[i + block];
      rows[i] = vector::ShuffleOp::create(b, loc, first, second, low);
      rows[i + block] = vector::ShuffleOp::create(b, loc, first, second, high);
    }
  }
}

/// True if the tile has enough points along crossDim to transpose what they
/// read through `map`.
bool Emitter::isAcross(linalg::LinalgOp op, AffineMap map,
                       const Chunk &chunk) const {
  return crossDim && op == root && chunk.lanes >= 4 && size[*crossDim] >= 4 &&
         crossLoop(map, rootLoop[rank - 1]) == rootLoop[*crossDim];
}

/// The vectors of `chunk` at the points of the tile from `first` along crossDim
/// on, at most nativeWidth of them. `read` reads along crossDim, for one lane.
SmallVector<Value> Emitter::readAcross(
    Type element, int64_t first, const Chunk &chunk,
    llvm::function_ref<Value(int64_t, VectorType, Value)> read) {
  int64_t points = std::min(nativeWidth, size[*crossDim] - first);
  auto type = VectorType::get({nativeWidth}, element);
  Value mask = maskFor({0, nativeWidth, points});
  SmallVector<Value> vectors;
  for (int64_t lane = 0; lane < nativeWidth; ++lane)
    vectors.push_back(lane < chunk.lanes ? read(lane, type, mask)
                                         : arith::ConstantOp::create(
                                               b, loc, b.getZeroAttr(type))
                                               .getResult());
  transpose(b, loc, vectors);
  vectors.truncate(points);
  if (chunk.width < nativeWidth)
    for (Value &v : vectors)
      v = vector::ExtractStridedSliceOp::create(b, loc, v, ArrayRef<int64_t>{0},
                                                ArrayRef<int64_t>{chunk.width},
                                                ArrayRef<int64_t>{1});
  return vectors;
}

} // namespace pto::lowering::microkernel
