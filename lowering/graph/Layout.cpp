//===- Layout.cpp - Rewrites @main to the assigned layouts ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Walks @main once, in order. Every value with a layout gets a stored form;
// linalg.generic reads stored forms through permuted indexing maps, so that
// transposes vanish into it. Other ops are rewritten where their layout allows
// it; the rest sees transposed copies.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/LayoutAssignment.h"
#include "lowering/graph/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace pto::lowering {
namespace {

class LayoutRewriter {
public:
  LayoutRewriter(func::FuncOp main)
      : main(main), rewriter(main.getContext()), layouts(main) {}
  void run();

private:
  /// `value` as the model means it, in its own order of dims.
  Value logical(Value value);
  /// `value` in the order `perm`.
  Value inOrder(Value value, ArrayRef<int64_t> perm);
  void setStored(Value value, Value stored, Permutation perm);

  void rewriteGeneric(linalg::GenericOp op);
  /// A destination like `init` for a result stored in order `perm`.
  Value rewriteInit(Value init, ArrayRef<int64_t> perm);
  SmallVector<unsigned> loopOrder(linalg::GenericOp op,
                                  std::optional<LoopRoles> roles,
                                  AffineMap outMap, AffineMap inMap);
  bool rewriteSameRank(Operation *op);
  bool rewriteReshape(Operation *op);
  bool rewriteDim(tensor::DimOp op);
  void rewriteOther(Operation *op);

  func::FuncOp main;
  IRRewriter rewriter;
  LayoutAssignment layouts;
  struct Stored {
    Value value;
    Permutation perm;
  };
  /// Values that are stored in another order than their own.
  DenseMap<Value, Stored> stored;
  /// Copies made so far, by value and order.
  DenseMap<Value, SmallVector<Stored>> copies;
  SmallVector<Operation *> dead;
};

} // namespace

void LayoutRewriter::setStored(Value value, Value storedValue,
                               Permutation perm) {
  if (isIdentity(perm))
    rewriter.replaceAllUsesWith(value, storedValue);
  else
    stored[value] = {storedValue, perm};
}

Value LayoutRewriter::logical(Value value) { return inOrder(value, {}); }

Value LayoutRewriter::inOrder(Value value, ArrayRef<int64_t> perm) {
  auto it = stored.find(value);
  Value source = it == stored.end() ? value : it->second.value;
  Permutation have = it == stored.end() ? Permutation() : it->second.perm;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || (isIdentity(have) && isIdentity(perm)))
    return source;
  Permutation from = have, to(perm);
  for (Permutation *p : {&from, &to})
    if (p->empty())
      for (int64_t i = 0; i < type.getRank(); ++i)
        p->push_back(i);
  if (from == to)
    return source;
  for (Stored &copy : copies[value])
    if (copy.perm == to)
      return copy.value;
  // Dim i of the copy is dim to[i] of the value, which is stored at
  // position[to[i]].
  Permutation position = inverse(from), move;
  for (int64_t dim : to)
    move.push_back(position[dim]);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointAfterValue(source);
  Value copy = transposeValue(rewriter, value.getLoc(), source, move);
  copies[value].push_back({copy, to});
  return copy;
}

Value LayoutRewriter::rewriteInit(Value init, ArrayRef<int64_t> perm) {
  if (isIdentity(perm))
    return logical(init);
  if (auto empty = init.getDefiningOp<tensor::EmptyOp>())
    return tensor::EmptyOp::create(
        rewriter, empty.getLoc(),
        permuted(ArrayRef(empty.getMixedSizes()), perm),
        empty.getType().getElementType());
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    return linalg::FillOp::create(rewriter, fill.getLoc(), fill.getInputs(),
                                  rewriteInit(fill.getOutputs()[0], perm))
        .getResult(0);
  return inOrder(init, perm);
}

/// Parallel loops as the result is stored; reductions in the order of the
/// window, then of the channels, else as the first input is stored.
SmallVector<unsigned> LayoutRewriter::loopOrder(linalg::GenericOp op,
                                                std::optional<LoopRoles> roles,
                                                AffineMap outMap,
                                                AffineMap inMap) {
  SmallVector<unsigned> order;
  auto add = [&](unsigned loop) {
    if (!llvm::is_contained(order, loop))
      order.push_back(loop);
  };
  auto iterators = op.getIteratorTypesArray();
  for (AffineExpr expr : outMap.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      add(dim.getPosition());
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (iterators[loop] == utils::IteratorType::parallel)
      add(loop);
  if (roles)
    for (unsigned loop : roles->window)
      add(loop);
  if (inMap)
    for (AffineExpr expr : inMap.getResults())
      for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
        if (expr.isFunctionOfDim(loop) &&
            iterators[loop] == utils::IteratorType::reduction)
          add(loop);
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    add(loop);
  return order;
}

/// The order in which a kernel likes to walk a constant operand.
static Permutation constantOrder(AffineMap map, ArrayRef<unsigned> loops,
                                 std::optional<LoopRoles> roles,
                                 bool isWeights) {
  SmallVector<unsigned> order(loops);
  if (isWeights && roles) {
    // Groups, then what is summed, then output channels, contiguous. Depthwise
    // weights have their channels last.
    auto last = roles->out.empty() ? roles->channel : roles->out;
    SmallVector<unsigned> tail;
    llvm::erase_if(order, [&](unsigned loop) {
      bool isLast = llvm::is_contained(last, loop);
      if (isLast)
        tail.push_back(loop);
      return isLast;
    });
    order.append(tail);
  }
  Permutation perm;
  for (unsigned loop : order)
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (auto d = dyn_cast<AffineDimExpr>(expr))
        if (d.getPosition() == loop)
          perm.push_back(dim);
  // Windows (a convolution of a constant) stay as they are.
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (isa<AffineConstantExpr>(expr))
      perm.insert(perm.begin(), dim);
    else if (!isa<AffineDimExpr>(expr))
      return {};
  }
  if (perm.size() != map.getNumResults())
    return {};
  return perm;
}

void LayoutRewriter::rewriteGeneric(linalg::GenericOp op) {
  rewriter.setInsertionPoint(op);
  std::optional<LoopRoles> roles = loopRoles(op);
  bool weighted = roles && !layouts.isConstant(op.getDpsInputs()[0]);
  SmallVector<AffineMap> maps;
  SmallVector<Value> inputs, inits;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    auto it = stored.find(operand->get());
    inputs.push_back(it == stored.end() ? operand->get() : it->second.value);
    maps.push_back(it == stored.end() ? map
                                      : permuteResults(map, it->second.perm));
  }
  SmallVector<Type> types;
  SmallVector<Permutation> perms;
  for (auto [result, init] :
       llvm::zip_equal(op->getResults(), op.getDpsInits())) {
    Permutation perm = layouts.of(result);
    inits.push_back(rewriteInit(init, perm));
    types.push_back(inits.back().getType());
    maps.push_back(
        permuteResults(op.getIndexingMapMatchingResult(result), perm));
    perms.push_back(perm);
  }
  SmallVector<unsigned> order = loopOrder(
      op, roles, maps[inputs.size()], inputs.empty() ? AffineMap() : maps[0]);
  for (auto [i, operand] : llvm::enumerate(op.getDpsInputOperands())) {
    if (!layouts.isConstant(operand->get()) ||
        operand->get().getDefiningOp<tensor::EmptyOp>() ||
        !isa<RankedTensorType>(operand->get().getType()))
      continue;
    Permutation perm = constantOrder(maps[i], order, roles, weighted && i == 1);
    inputs[i] = inOrder(operand->get(), perm);
    maps[i] = permuteResults(maps[i], perm);
  }
  rewriter.setInsertionPoint(op);
  auto rewritten = linalg::GenericOp::create(
      rewriter, op.getLoc(), types, inputs, inits, maps,
      op.getIteratorTypesArray(), nullptr, linalg::getPrunedAttributeList(op));
  rewriter.cloneRegionBefore(op.getRegion(), rewritten.getRegion(),
                             rewritten.getRegion().begin());
  SmallVector<unsigned> same(order.size());
  for (unsigned i = 0; i < same.size(); ++i)
    same[i] = i;
  if (order != same)
    if (auto interchanged =
            linalg::interchangeGenericOp(rewriter, rewritten, order);
        succeeded(interchanged))
      rewritten = *interchanged;
  for (auto [result, now, perm] :
       llvm::zip_equal(op->getResults(), rewritten->getResults(), perms))
    setStored(result, now, perm);
  dead.push_back(op);
}

/// Ops whose result has the dims of their operand, one for one.
bool LayoutRewriter::rewriteSameRank(Operation *op) {
  if (!isa<tensor::PadOp, tensor::CastOp, tensor::ConcatOp,
           tensor::ExtractSliceOp, tensor::InsertSliceOp>(op))
    return false;
  Value result = op->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  Permutation perm = layouts.of(result);
  if (perm.empty())
    return false;
  rewriter.setInsertionPoint(op);
  Location loc = op->getLoc();
  RankedTensorType newType = permuted(type, perm);
  Value now;
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    Value value = pad.getConstantPaddingValue();
    if (!value)
      return false;
    now = tensor::PadOp::create(rewriter, loc, newType,
                                inOrder(pad.getSource(), perm),
                                permuted(ArrayRef(pad.getMixedLowPad()), perm),
                                permuted(ArrayRef(pad.getMixedHighPad()), perm),
                                value, pad.getNofold());
    // The value may be defined inside of the op that goes away.
    if (pad->isAncestor(value.getParentBlock()->getParentOp())) {
      auto newPad = now.getDefiningOp<tensor::PadOp>();
      rewriter.setInsertionPoint(newPad);
      Operation *clone = rewriter.clone(*value.getDefiningOp());
      newPad.getBody()->getTerminator()->setOperand(0, clone->getResult(0));
    }
  } else if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    now = tensor::CastOp::create(rewriter, loc, newType,
                                 inOrder(cast.getSource(), perm));
  } else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    SmallVector<Value> inputs;
    for (Value input : concat.getInputs())
      inputs.push_back(inOrder(input, perm));
    rewriter.setInsertionPoint(op);
    now = tensor::ConcatOp::create(rewriter, loc,
                                   inverse(perm)[concat.getDim()], inputs);
  } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (slice.getSourceType().getRank() != type.getRank())
      return false;
    Value source = inOrder(slice.getSource(), perm);
    rewriter.setInsertionPoint(op);
    now = tensor::ExtractSliceOp::create(
        rewriter, loc, newType, source,
        permuted(ArrayRef(slice.getMixedOffsets()), perm),
        permuted(ArrayRef(slice.getMixedSizes()), perm),
        permuted(ArrayRef(slice.getMixedStrides()), perm));
  } else if (auto slice = dyn_cast<tensor::InsertSliceOp>(op)) {
    if (slice.getSourceType().getRank() != type.getRank())
      return false;
    Value source = inOrder(slice.getSource(), perm);
    Value dest = rewriteInit(slice.getDest(), perm);
    rewriter.setInsertionPoint(op);
    now = tensor::InsertSliceOp::create(
        rewriter, loc, source, dest,
        permuted(ArrayRef(slice.getMixedOffsets()), perm),
        permuted(ArrayRef(slice.getMixedSizes()), perm),
        permuted(ArrayRef(slice.getMixedStrides()), perm));
  }
  setStored(result, now, perm);
  dead.push_back(op);
  return true;
}

bool LayoutRewriter::rewriteReshape(Operation *op) {
  if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
    return false;
  Value source = op->getOperand(0), result = op->getResult(0);
  Permutation to = layouts.of(result);
  auto it = stored.find(source);
  Permutation from = it == stored.end() ? Permutation() : it->second.perm;
  if (from.empty() && to.empty())
    return false;
  auto sourceType = cast<RankedTensorType>(source.getType());
  auto resultType = cast<RankedTensorType>(result.getType());
  // Free if the elements lie in the same order on both sides.
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
  auto groups = collapse
                    ? collapse.getReassociationIndices()
                    : cast<tensor::ExpandShapeOp>(op).getReassociationIndices();
  auto sequence = [&](RankedTensorType type, ArrayRef<int64_t> perm,
                      bool large) {
    SmallVector<int64_t> dims;
    for (int64_t i = 0; i < type.getRank(); ++i) {
      int64_t dim = perm.empty() ? i : perm[i];
      if (large)
        dims.push_back(dim);
      else
        dims.append(groups[dim].begin(), groups[dim].end());
    }
    ArrayRef<int64_t> shape = (collapse ? sourceType : resultType).getShape();
    llvm::erase_if(dims, [&](int64_t dim) { return shape[dim] == 1; });
    return dims;
  };
  if (sequence(sourceType, from, static_cast<bool>(collapse)) !=
      sequence(resultType, to, !collapse))
    return false;
  rewriter.setInsertionPoint(op);
  Value now = reshapeTo(rewriter, op->getLoc(),
                        it == stored.end() ? source : it->second.value,
                        permuted(resultType, to));
  if (!now)
    return false;
  setStored(result, now, to);
  dead.push_back(op);
  return true;
}

bool LayoutRewriter::rewriteDim(tensor::DimOp op) {
  auto it = stored.find(op.getSource());
  std::optional<int64_t> index = op.getConstantIndex();
  if (it == stored.end() || !index)
    return false;
  rewriter.setInsertionPoint(op);
  rewriter.replaceOpWithNewOp<tensor::DimOp>(op, it->second.value,
                                             inverse(it->second.perm)[*index]);
  return true;
}

/// Operands in their own order; results are transposed if they have a layout.
void LayoutRewriter::rewriteOther(Operation *op) {
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands())
      if (stored.count(operand.get()))
        operand.set(logical(operand.get()));
  });
  rewriter.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    Permutation perm = layouts.of(result);
    if (!perm.empty())
      stored[result] = {transposeValue(rewriter, op->getLoc(), result, perm),
                        perm};
  }
}

void LayoutRewriter::run() {
  SmallVector<Operation *> ops;
  for (Operation &op : main.getBody().front())
    ops.push_back(&op);
  for (Operation *op : ops) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (generic && !layouts.isConstant(generic.getResult(0))) {
      rewriteGeneric(generic);
      continue;
    }
    if (auto dim = dyn_cast<tensor::DimOp>(op); dim && rewriteDim(dim))
      continue;
    if (!rewriteSameRank(op) && !rewriteReshape(op))
      rewriteOther(op);
  }
  for (Operation *op : llvm::reverse(dead))
    rewriter.eraseOp(op);
}

LogicalResult assignLayouts(ModuleOp module) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  LayoutRewriter(main).run();
  return success();
}

} // namespace pto::lowering
