//===- Panels.cpp - The next panel of a packed operand is fetched early ---===//
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

} // namespace pto::lowering::microkernel
