//===- LayoutAssignment.cpp - Which tensor is stored in which order -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/LayoutAssignment.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace pto::lowering {

/// Inputs with fewer channels are read as they are: a kernel reads this
/// operand element by element, and a transpose of its own would cost more.
constexpr int64_t kFewChannels = 4;

static bool isRankedTensor(Value value, int64_t minRank = 2) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() >= minRank;
}

/// The dims of `map`'s tensor, sorted by the rank of the loop that walks them.
/// `keys[dim]` is what to sort by.
static Permutation sortedBy(ArrayRef<double> keys) {
  Permutation perm(keys.size());
  for (size_t i = 0; i < perm.size(); ++i)
    perm[i] = i;
  llvm::sort(perm, [&](int64_t a, int64_t b) {
    return std::make_pair(keys[a], a) < std::make_pair(keys[b], b);
  });
  return perm;
}

LayoutAssignment::LayoutAssignment(func::FuncOp main) {
  for (BlockArgument argument : main.getArguments())
    layouts[argument] = {};
  for (Operation &op : main.getBody().front()) {
    OpKind kind = opKind(&op);
    if (kind == OpKind::Convolution || kind == OpKind::Depthwise)
      seed(cast<linalg::GenericOp>(op));
  }
  spread();
  // A transpose of a product costs nothing if the product is stored as the
  // transpose is read: attention's heads go back to their places.
  for (Operation &op : main.getBody().front()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || constants.isConstant(generic.getResult(0)))
      continue;
    if (auto perm = linalg::isaTransposeOpInterface(generic))
      storeTransposed(generic, Permutation(perm->begin(), perm->end()));
  }
  spread();
  // A transpose costs nothing if its users read the operand as it is stored.
  for (Operation &op : main.getBody().front()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || !linalg::isaTransposeOpInterface(generic) ||
        constants.isConstant(generic.getResult(0)))
      continue;
    spreadThrough(&op, generic.getDpsInputs()[0]);
    spread();
  }
}

Permutation LayoutAssignment::of(Value value) const {
  return layouts.lookup(value);
}

bool LayoutAssignment::assign(Value value, Permutation perm) {
  if (!isRankedTensor(value) || constants.isConstant(value) ||
      layouts.count(value))
    return false;
  if (isIdentity(perm))
    perm.clear();
  layouts[value] = std::move(perm);
  worklist.push_back(value);
  return true;
}

void LayoutAssignment::seed(linalg::GenericOp convolution) {
  std::optional<LoopRoles> roles = loopRoles(convolution);
  auto maps = convolution.getIndexingMapsArray();
  SmallVector<int64_t> ranges = convolution.getStaticLoopRanges();
  // Batch, image, groups, then channels.
  SmallVector<double> order(convolution.getNumLoops(), 0);
  int64_t channels = 1;
  for (unsigned loop : roles->image)
    order[loop] = 1;
  for (unsigned loop : roles->channel) {
    order[loop] = 2;
    channels *= ranges[loop];
  }
  for (unsigned loop : roles->in) {
    order[loop] = 3;
    channels *= ranges[loop];
  }
  for (unsigned loop : roles->out)
    order[loop] = 3;
  auto layoutOf = [&](AffineMap map) {
    SmallVector<double> keys;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      keys.push_back(dim ? order[dim.getPosition()] : 1);
    }
    return sortedBy(keys);
  };
  assign(convolution.getResult(0), layoutOf(maps[2]));
  if (ShapedType::isDynamic(channels) || channels > kFewChannels ||
      channels <= 0)
    assign(convolution.getDpsInputs()[0], layoutOf(maps[0]));
}

void LayoutAssignment::storeTransposed(linalg::GenericOp transpose,
                                       Permutation perm) {
  if (!of(transpose.getResult(0)).empty())
    return;
  SmallVector<std::pair<Value, Permutation>> chain;
  Value value = transpose.getDpsInputs()[0];
  while (true) {
    Operation *def = value.getDefiningOp();
    if (!def || !value.hasOneUse() || layouts.count(value))
      return;
    chain.push_back({value, perm});
    auto through = [&](Value large, SmallVector<ReassociationIndices> groups) {
      std::optional<Permutation> next = layoutThroughReshape(
          groups, cast<RankedTensorType>(large.getType()).getShape(), perm,
          /*fromLarge=*/large == value);
      if (next)
        perm = *next;
      value = def->getOperand(0);
      return next.has_value();
    };
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(def)) {
      if (!through(expand.getResult(), expand.getReassociationIndices()))
        return;
      continue;
    }
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(def)) {
      if (!through(collapse.getSrc(), collapse.getReassociationIndices()))
        return;
      continue;
    }
    auto generic = dyn_cast<linalg::GenericOp>(def);
    OpKind kind = opKind(def);
    if (kind == OpKind::Contraction) {
      // Its vectors stay along the columns of the second operand.
      AffineMap out = generic.getIndexingMapsArray().back();
      unsigned last = perm.empty() ? out.getNumResults() - 1 : perm.back();
      auto dim = dyn_cast<AffineDimExpr>(out.getResult(last));
      if (!dim ||
          !llvm::is_contained(loopRoles(generic)->out, dim.getPosition()))
        return;
      break;
    }
    if (kind != OpKind::Elementwise || generic.getNumResults() != 1 ||
        !generic.getIndexingMapsArray().back().isIdentity())
      return;
    Value next;
    for (OpOperand *operand : generic.getDpsInputOperands())
      if (!next && generic.getMatchingIndexingMap(operand).isIdentity() &&
          operand->get().hasOneUse() && operand->get().getDefiningOp())
        next = operand->get();
    if (!next)
      return;
    value = next;
  }
  for (auto &[value, perm] : chain)
    assign(value, perm);
  assign(transpose.getResult(0), {});
}

void LayoutAssignment::spread() {
  for (size_t i = 0; i < worklist.size(); ++i) {
    Value value = worklist[i];
    if (Operation *op = value.getDefiningOp())
      spreadThrough(op, value);
    for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
      spreadThrough(user, value);
  }
  worklist.clear();
}

/// The position of each loop of `op` in the stored order of the tensor that
/// `map` walks; -1 for loops that do not walk it.
static SmallVector<double> loopKeys(linalg::GenericOp op, AffineMap map,
                                    ArrayRef<int64_t> perm) {
  SmallVector<double> keys(op.getNumLoops(), -1);
  auto iterators = op.getIteratorTypesArray();
  for (unsigned stored = 0; stored < map.getNumResults(); ++stored) {
    AffineExpr expr = map.getResult(perm.empty() ? stored : perm[stored]);
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (expr.isFunctionOfDim(loop) &&
          (isa<AffineDimExpr>(expr) ||
           iterators[loop] == utils::IteratorType::parallel))
        keys[loop] = stored;
  }
  return keys;
}

/// A layout for the tensor that `map` walks which follows `keys`. Dims that no
/// loop walks (unit dims) follow `like`, the layout of a tensor of the same
/// rank, or stay behind the dim before them.
static Permutation followLoops(AffineMap map, ArrayRef<double> keys,
                               ArrayRef<int64_t> like) {
  SmallVector<double> dims;
  bool sameRank = like.size() == map.getNumResults();
  Permutation position = sameRank ? inverse(like) : Permutation();
  double last = -1;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    double key = -1;
    for (unsigned loop = 0; loop < keys.size(); ++loop)
      if (expr.isFunctionOfDim(loop))
        key = std::max(key, keys[loop]);
    if (key < 0)
      key = sameRank ? position[dim] : last;
    dims.push_back(key);
    last = key;
  }
  return sortedBy(dims);
}

std::optional<Permutation>
layoutThroughReshape(ArrayRef<SmallVector<int64_t, 2>> groups,
                     ArrayRef<int64_t> large, ArrayRef<int64_t> from,
                     bool fromLarge) {
  if (!fromLarge) {
    Permutation result;
    for (size_t i = 0; i < groups.size(); ++i) {
      int64_t dim = from.empty() ? i : from[i];
      result.append(groups[dim].begin(), groups[dim].end());
    }
    return result;
  }
  // Each group's dims must lie together in order, but for unit dims.
  SmallVector<int64_t> groupOf(large.size());
  for (auto [group, dims] : llvm::enumerate(groups))
    for (int64_t dim : dims)
      groupOf[dim] = group;
  Permutation result;
  SmallVector<int64_t> lastDim(groups.size(), -1);
  for (size_t i = 0; i < large.size(); ++i) {
    int64_t dim = from.empty() ? i : from[i];
    if (large[dim] == 1)
      continue;
    int64_t group = groupOf[dim];
    if (result.empty() || result.back() != group) {
      if (lastDim[group] >= 0)
        return std::nullopt;
      result.push_back(group);
    }
    if (dim < lastDim[group])
      return std::nullopt;
    lastDim[group] = dim;
  }
  // Groups of unit dims go behind the group before them.
  for (size_t group = 0; group < groups.size(); ++group) {
    if (lastDim[group] >= 0)
      continue;
    auto at =
        group == 0 ? result.begin() : std::next(llvm::find(result, group - 1));
    result.insert(at, group);
  }
  return result;
}

void LayoutAssignment::spreadThrough(Operation *op, Value from) {
  Permutation perm = of(from);
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    OpKind kind = opKind(op);
    if (kind != OpKind::Elementwise && kind != OpKind::Window &&
        kind != OpKind::Reduction)
      return;
    AffineMap fromMap;
    bool fromResult = from.getDefiningOp() == op;
    for (OpOperand *operand : generic.getDpsInputOperands())
      if (!fromResult && operand->get() == from)
        fromMap = generic.getMatchingIndexingMap(operand);
    if (fromResult)
      fromMap = generic.getIndexingMapMatchingResult(cast<OpResult>(from));
    if (!fromMap || (kind == OpKind::Reduction && fromResult))
      return;
    SmallVector<double> keys = loopKeys(generic, fromMap, perm);
    // A dim that `from` does not have says nothing about the others' order.
    Permutation like = perm;
    if (like.empty())
      for (unsigned i = 0; i < fromMap.getNumResults(); ++i)
        like.push_back(i);
    auto covers = [&](AffineMap map) {
      unsigned walked = 0, known = 0;
      for (unsigned loop = 0; loop < keys.size(); ++loop)
        if (map.isFunctionOfDim(loop)) {
          ++walked;
          known += keys[loop] >= 0;
        }
      return kind != OpKind::Elementwise || known == walked;
    };
    for (OpResult result : generic->getResults()) {
      AffineMap map = generic.getIndexingMapMatchingResult(result);
      if (covers(map))
        assign(result, followLoops(map, keys, like));
    }
    if (kind == OpKind::Reduction)
      return;
    for (OpOperand *operand : generic.getDpsInputOperands()) {
      AffineMap map = generic.getMatchingIndexingMap(operand);
      // A window's size is given by a tensor without contents.
      if (!isRankedTensor(operand->get()) ||
          operand->get().getDefiningOp<tensor::EmptyOp>())
        continue;
      if (covers(map))
        assign(operand->get(), followLoops(map, keys, like));
    }
    return;
  }
  if (isa<tensor::PadOp, tensor::CastOp, tensor::ConcatOp,
          tensor::ExtractSliceOp, tensor::InsertSliceOp>(op)) {
    auto rank = cast<RankedTensorType>(from.getType()).getRank();
    auto same = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      return type && type.getRank() == rank;
    };
    for (Value result : op->getResults())
      if (!same(result))
        return;
    for (Value operand : op->getOperands())
      if (same(operand))
        assign(operand, perm);
    for (Value result : op->getResults())
      assign(result, perm);
    return;
  }
  auto throughReshape = [&](Value small, Value large,
                            SmallVector<ReassociationIndices> groups) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(large.getType()).getShape();
    bool fromLarge = from == large;
    if (auto result = layoutThroughReshape(groups, shape, perm, fromLarge))
      assign(fromLarge ? small : large, *result);
  };
  if (auto reshape = dyn_cast<tensor::CollapseShapeOp>(op))
    throughReshape(reshape.getResult(), reshape.getSrc(),
                   reshape.getReassociationIndices());
  else if (auto reshape = dyn_cast<tensor::ExpandShapeOp>(op))
    throughReshape(reshape.getSrc(), reshape.getResult(),
                   reshape.getReassociationIndices());
}

} // namespace pto::lowering
