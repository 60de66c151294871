//===- AlignShapes.cpp - Ops take the shape of their producers ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/AlignShapes.h"
#include "lowering/graph/Permutation.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>

using namespace mlir;

namespace pto::lowering {
namespace {

/// Loops of an op and the dims that they become: the same elements.
struct Cut {
  SmallVector<unsigned> loops, dims;
};

/// An op in its new shape.
class Aligner {
public:
  Aligner(linalg::GenericOp op, ArrayRef<int64_t> shape)
      : op(op), ranges(op.getStaticLoopRanges()), shape(shape), b(op) {}
  /// The op in its new shape; null, with nothing changed, if it has none.
  linalg::GenericOp rewrite();

private:
  bool cut();
  std::optional<AffineMap> mapFor(AffineMap map);
  RankedTensorType typeFor(AffineMap map, Type element);
  Value operandFor(Value value, AffineMap map);

  linalg::GenericOp op;
  SmallVector<int64_t> ranges;
  ArrayRef<int64_t> shape;
  OpBuilder b;
  SmallVector<Cut> cuts;
  SmallVector<utils::IteratorType> iterators;
};

} // namespace

static bool isReshape(Operation *op) {
  return op && isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op);
}

/// Both shapes are cut where the products of their dims agree.
bool Aligner::cut() {
  unsigned i = 0, j = 0;
  while (i < ranges.size() || j < shape.size()) {
    Cut now;
    int64_t a = 1, b = 1;
    auto takeLoop = [&]() {
      a *= ranges[i];
      now.loops.push_back(i++);
    };
    auto takeDim = [&]() {
      b *= shape[j];
      now.dims.push_back(j++);
    };
    if (i < ranges.size())
      takeLoop();
    if (j < shape.size())
      takeDim();
    while (a != b) {
      if (a < b ? i == ranges.size() : j == shape.size())
        return false;
      a < b ? takeLoop() : takeDim();
    }
    bool rest = now.loops.empty() || now.dims.empty();
    if (rest && cuts.empty())
      return false;
    if (rest) {
      // Trailing dims of size one.
      cuts.back().loops.append(now.loops);
      cuts.back().dims.append(now.dims);
      continue;
    }
    cuts.push_back(now);
  }
  // A new dim is walked in one way.
  auto old = op.getIteratorTypesArray();
  iterators.resize(shape.size());
  for (const Cut &c : cuts) {
    std::optional<utils::IteratorType> type;
    for (unsigned loop : c.loops) {
      if (ranges[loop] == 1 && c.loops.size() > 1 &&
          old[loop] == utils::IteratorType::parallel)
        continue;
      if (type && *type != old[loop])
        return false;
      type = old[loop];
    }
    for (unsigned dim : c.dims)
      iterators[dim] = type.value_or(utils::IteratorType::parallel);
  }
  return true;
}

/// The map over the new loops of a tensor that walks all loops of a cut, or
/// none. Loops of size one do not count.
std::optional<AffineMap> Aligner::mapFor(AffineMap map) {
  SmallVector<unsigned> walked;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim && !isa<AffineConstantExpr>(expr))
      return std::nullopt;
    if (!dim && cast<AffineConstantExpr>(expr).getValue() != 0)
      return std::nullopt;
    if (dim && ranges[dim.getPosition()] != 1)
      walked.push_back(dim.getPosition());
  }
  SmallVector<AffineExpr> results;
  ArrayRef<unsigned> rest = walked;
  // A tensor with all loops keeps the new dims of size one, so that it stays
  // what it is: walked as a whole.
  bool whole = llvm::is_sorted(walked) &&
               walked.size() == static_cast<size_t>(llvm::count_if(
                                    ranges, [](int64_t r) { return r != 1; }));
  if (whole)
    return b.getMultiDimIdentityMap(shape.size());
  while (!rest.empty()) {
    const Cut *c = llvm::find_if(cuts, [&](const Cut &c) {
      return llvm::is_contained(c.loops, rest.front());
    });
    for (unsigned loop : c->loops) {
      if (ranges[loop] == 1)
        continue;
      if (rest.empty() || rest.front() != loop)
        return std::nullopt;
      rest = rest.drop_front();
    }
    for (unsigned dim : c->dims)
      if (shape[dim] != 1)
        results.push_back(b.getAffineDimExpr(dim));
  }
  return AffineMap::get(shape.size(), 0, results, b.getContext());
}

RankedTensorType Aligner::typeFor(AffineMap map, Type element) {
  SmallVector<int64_t> sizes;
  for (AffineExpr expr : map.getResults())
    sizes.push_back(shape[cast<AffineDimExpr>(expr).getPosition()]);
  return RankedTensorType::get(sizes, element);
}

Value Aligner::operandFor(Value value, AffineMap map) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return value;
  RankedTensorType wanted = typeFor(map, type.getElementType());
  // It may have had this shape before.
  for (Value before = value;; before = before.getDefiningOp()->getOperand(0)) {
    if (before.getType() == wanted)
      return before;
    if (!isReshape(before.getDefiningOp()))
      break;
  }
  return reshapeTo(b, op.getLoc(), value, wanted);
}

linalg::GenericOp Aligner::rewrite() {
  if (!cut())
    return {};
  OpOperand &init = *op.getDpsInitOperand(0);
  SmallVector<AffineMap> maps;
  for (AffineMap map : op.getIndexingMapsArray()) {
    std::optional<AffineMap> now = mapFor(map);
    if (!now)
      return {};
    maps.push_back(*now);
  }
  // A reduction's dims of size one would be summed and kept at once.
  for (AffineExpr expr : maps.back().getResults())
    if (iterators[cast<AffineDimExpr>(expr).getPosition()] !=
        utils::IteratorType::parallel)
      return {};
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (iterators[dim] == utils::IteratorType::parallel &&
        !maps.back().isFunctionOfDim(dim)) {
      if (shape[dim] != 1)
        return {};
      // Its result is indexed by every parallel loop.
      SmallVector<AffineExpr> results;
      for (unsigned d = 0; d < shape.size(); ++d)
        if (iterators[d] == utils::IteratorType::parallel)
          results.push_back(b.getAffineDimExpr(d));
      maps.back() = AffineMap::get(shape.size(), 0, results, b.getContext());
    }
  SmallVector<Value> inputs;
  for (auto [operand, map] : llvm::zip(op.getDpsInputs(), maps)) {
    inputs.push_back(operandFor(operand, map));
    if (!inputs.back())
      return {};
  }
  Location loc = op.getLoc();
  auto oldType = cast<RankedTensorType>(op.getResult(0).getType());
  RankedTensorType type = typeFor(maps.back(), oldType.getElementType());
  Value destination;
  if (auto fill = init.get().getDefiningOp<linalg::FillOp>()) {
    destination =
        tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    destination =
        linalg::FillOp::create(b, fill.getLoc(), fill.getInputs(), destination)
            .getResult(0);
  } else if (op.getMatchingBlockArgument(&init).use_empty()) {
    destination =
        tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  } else {
    destination = operandFor(init.get(), maps.back());
  }
  if (!destination)
    return {};
  auto now =
      linalg::GenericOp::create(b, loc, TypeRange{type}, inputs,
                                ValueRange{destination}, maps, iterators);
  now->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  Value result = reshapeTo(b, loc, now.getResult(0), oldType);
  if (!result) {
    now.erase();
    return {};
  }
  now.getRegion().takeBody(op.getRegion());
  op.getResult(0).replaceAllUsesWith(result);
  op.erase();
  return now;
}

/// The op whose result `value` is, seen through reshapes.
static Operation *producer(Value value) {
  while (isReshape(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value.getDefiningOp();
}

static bool canAlign(linalg::GenericOp op) {
  OpKind kind = opKind(op);
  if ((kind != OpKind::Elementwise && kind != OpKind::Reduction) ||
      op.getNumResults() != 1 || op.hasIndexSemantics() ||
      llvm::any_of(op.getStaticLoopRanges(),
                   [](int64_t r) { return ShapedType::isDynamic(r) || !r; }) ||
      llvm::any_of(*op.getBody(), [](Operation &inner) {
        return isa<tensor::ExtractOp>(inner);
      }))
    return false;
  return llvm::all_of(op->getOperandTypes(), [](Type type) {
    auto shaped = dyn_cast<RankedTensorType>(type);
    return !shaped || shaped.hasStaticShape();
  });
}

void alignShapes(func::FuncOp main) {
  SmallVector<linalg::GenericOp> ops;
  for (auto op : main.getBody().front().getOps<linalg::GenericOp>())
    if (canAlign(op))
      ops.push_back(op);
  for (linalg::GenericOp op : ops) {
    OpOperand *latest = nullptr;
    Operation *latestProducer = nullptr;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Operation *def = producer(operand->get());
      if (!op.getMatchingIndexingMap(operand).isIdentity() ||
          !isa_and_nonnull<linalg::GenericOp>(def))
        continue;
      if (!latest || latestProducer->isBeforeInBlock(def)) {
        latest = operand;
        latestProducer = def;
      }
    }
    if (!latest || !isReshape(latest->get().getDefiningOp()))
      continue;
    Value source = latest->get();
    while (isReshape(source.getDefiningOp()))
      source = source.getDefiningOp()->getOperand(0);
    auto type = cast<RankedTensorType>(source.getType());
    if (type.hasStaticShape() && type.getRank() != 0)
      Aligner(op, type.getShape()).rewrite();
  }
}

} // namespace pto::lowering
