//===- Rows.cpp - Sums along memory ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Where only reduction loops run along memory, the accumulator is a vector of
// partial results, combined at the end of the row.
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

static Attribute neutralOf(vector::CombiningKind kind, Type element) {
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

} // namespace pto::lowering::microkernel
