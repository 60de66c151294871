//===- ParallelTails.cpp - Static sizes for the last chunk too ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Where the step of a parallel loop does not divide its range, the last chunk
// has another size than all others, and the body knows neither: no static
// tiles, no unrolled tails. Here the last chunk gets a body of its own:
//
//   scf.forall (%i) = (0) to (197) step (104) {
//     %last = arith.cmpi eq, %i, 104
//     scf.if %last { ... sizes of 93 ... } else { ... sizes of 104 ... }
//   }
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Stages.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace pto::lowering {
namespace {

/// A size of the loop's body: what it is in the last chunk and in all others.
struct ChunkSize {
  affine::AffineMinOp op;
  int64_t last, others;
};

/// The value of `op`, which depends on `iv` alone, where iv is `at`.
std::optional<int64_t> evaluate(affine::AffineMinOp op, int64_t at) {
  Builder b(op.getContext());
  AffineMap map = op.getAffineMap();
  SmallVector<AffineExpr> dims(map.getNumDims(), b.getAffineConstantExpr(at)),
      symbols(map.getNumSymbols(), b.getAffineConstantExpr(at));
  std::optional<int64_t> least;
  for (AffineExpr e : map.getResults()) {
    auto value =
        dyn_cast<AffineConstantExpr>(e.replaceDimsAndSymbols(dims, symbols));
    if (!value)
      return std::nullopt;
    least = least ? std::min(*least, value.getValue()) : value.getValue();
  }
  return least;
}

LogicalResult splitLastChunk(RewriterBase &b, scf::ForallOp loop) {
  if (loop.getRank() != 1 || loop.getNumResults() != 0)
    return failure();
  auto lower = getConstantIntValue(loop.getMixedLowerBound()[0]),
       upper = getConstantIntValue(loop.getMixedUpperBound()[0]),
       step = getConstantIntValue(loop.getMixedStep()[0]);
  if (!lower || !upper || !step || *step <= 0 || *upper - *lower <= *step)
    return failure();
  int64_t last = *lower + (*upper - *lower - 1) / *step * *step;
  Value iv = loop.getInductionVar(0);
  SmallVector<ChunkSize> sizes;
  for (auto op : loop.getBody()->getOps<affine::AffineMinOp>()) {
    if (llvm::any_of(op->getOperands(), [&](Value v) { return v != iv; }))
      continue;
    // A minimum of affine functions is concave: equal at both ends of the
    // other chunks, it is so or greater between them; bounded by a constant
    // of that value, it is the same everywhere.
    std::optional<int64_t> first = evaluate(op, *lower),
                           before = evaluate(op, last - *step),
                           end = evaluate(op, last);
    bool bounded = llvm::any_of(op.getAffineMap().getResults(), [&](auto e) {
      auto constant = dyn_cast<AffineConstantExpr>(e);
      return constant && first && constant.getValue() == *first;
    });
    if (end && before && first && *before == *first && bounded)
      sizes.push_back({op, *end, *first});
  }
  if (llvm::all_of(sizes, [](ChunkSize s) { return s.last == s.others; }))
    return failure();

  SmallVector<Operation *> body;
  for (Operation &op : loop.getBody()->without_terminator())
    body.push_back(&op);
  Location loc = loop.getLoc();
  b.setInsertionPoint(loop.getBody()->getTerminator());
  Value isLast =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, iv,
                            arith::ConstantIndexOp::create(b, loc, last));
  auto choice = scf::IfOp::create(b, loc, isLast, /*withElseRegion=*/true);
  for (bool inLast : {true, false}) {
    b.setInsertionPointToStart(inLast ? choice.thenBlock()
                                      : choice.elseBlock());
    IRMapping map;
    for (ChunkSize size : sizes)
      map.map(size.op.getResult(), arith::ConstantIndexOp::create(
                                       b, loc, inLast ? size.last : size.others)
                                       .getResult());
    for (Operation *op : body)
      if (!isa<affine::AffineMinOp>(op) || !map.contains(op->getResult(0)))
        b.clone(*op, map);
  }
  for (Operation *op : llvm::reverse(body))
    b.eraseOp(op);
  return success();
}

} // namespace

bool splitParallelTails(ModuleOp module) {
  IRRewriter b(module.getContext());
  SmallVector<scf::ForallOp> loops;
  module.walk<WalkOrder::PreOrder>([&](scf::ForallOp loop) {
    loops.push_back(loop);
    return WalkResult::skip();
  });
  bool changed = false;
  for (scf::ForallOp loop : loops)
    changed |= succeeded(splitLastChunk(b, loop));
  return changed;
}

} // namespace pto::lowering
