//===- SplitProducts.cpp - Products that are cut apart afterwards ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Attention often computes queries, keys and values in one product and cuts
// the result, which then costs a copy per part. Products with constant weights
// are cut before: each part has its own columns of the weights, and the slices
// move on to constants.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Passes.h"
#include "lowering/graph/Permutation.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace pto::lowering {
namespace {

/// Fewer columns than this make no product of their own.
constexpr int64_t kMinColumns = 16;

/// The elements of `dim` from `offset` on.
struct Range {
  unsigned dim = 0;
  int64_t offset = 0, size = 0;
};

class Splitter {
public:
  explicit Splitter(IRRewriter &rewriter) : rewriter(rewriter) {}
  /// Cuts what leads to `slices`, all users of one value; false if it stays.
  bool split(MutableArrayRef<tensor::ExtractSliceOp> slices);

private:
  std::optional<Range> before(Operation *op, Range range);
  Value chainOperand(linalg::GenericOp op);
  Value sliced(Value value, Range range);
  Value rebuild(Value value, Range range);

  IRRewriter &rewriter;
  ConstantValues constants;
  linalg::GenericOp product;
};

} // namespace

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static RankedTensorType withRange(RankedTensorType type, Range range) {
  SmallVector<int64_t> shape(type.getShape());
  shape[range.dim] = range.size;
  return RankedTensorType::get(shape, type.getElementType());
}

/// The one dim that `slice` cuts.
static std::optional<Range> rangeOf(tensor::ExtractSliceOp slice) {
  RankedTensorType source = slice.getSourceType();
  if (!source.hasStaticShape() || !slice.hasUnitStride())
    return std::nullopt;
  std::optional<Range> range;
  for (int64_t i = 0; i < source.getRank(); ++i) {
    int64_t offset = slice.getStaticOffset(i), size = slice.getStaticSize(i);
    if (ShapedType::isDynamic(offset) || ShapedType::isDynamic(size))
      return std::nullopt;
    if (size == source.getDimSize(i))
      continue;
    if (range)
      return std::nullopt;
    range = Range{unsigned(i), offset, size};
  }
  return range;
}

/// The operand of an elementwise op that is not constant, if it is the only
/// one and is walked as a whole.
Value Splitter::chainOperand(linalg::GenericOp op) {
  Value found;
  if (!isElementwise(op) || op.getNumResults() != 1 || op.hasIndexSemantics() ||
      !op.getIndexingMapsArray().back().isIdentity() ||
      !op.getMatchingBlockArgument(op.getDpsInitOperand(0)).use_empty())
    return {};
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    if (constants.isConstant(operand->get())) {
      if (!map.isProjectedPermutation())
        return {};
      continue;
    }
    if (found || !map.isPermutation())
      return {};
    found = operand->get();
  }
  return found;
}

/// The range of the chain's value in front of `op` that gives `range` of its
/// result.
std::optional<Range> Splitter::before(Operation *op, Range range) {
  auto outermost = [](ArrayRef<int64_t> dims, ArrayRef<int64_t> shape,
                      int64_t &inner) -> std::optional<unsigned> {
    std::optional<unsigned> first;
    inner = 1;
    for (int64_t dim : dims) {
      if (first)
        inner *= shape[dim];
      else if (shape[dim] != 1)
        first = dim;
    }
    return first;
  };
  int64_t inner;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    for (auto [i, dims] : llvm::enumerate(expand.getReassociationIndices()))
      if (llvm::is_contained(dims, int64_t(range.dim))) {
        if (outermost(dims, expand.getResultType().getShape(), inner) !=
            range.dim)
          return std::nullopt;
        return Range{unsigned(i), range.offset * inner, range.size * inner};
      }
    return std::nullopt;
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    std::optional<unsigned> first =
        outermost(collapse.getReassociationIndices()[range.dim],
                  collapse.getSrcType().getShape(), inner);
    if (!first || range.offset % inner || range.size % inner)
      return std::nullopt;
    return Range{*first, range.offset / inner, range.size / inner};
  }
  auto generic = cast<linalg::GenericOp>(op);
  Value operand = chainOperand(generic);
  for (OpOperand *use : generic.getDpsInputOperands())
    if (use->get() == operand) {
      std::optional<unsigned> dim =
          generic.getMatchingIndexingMap(use).getResultPosition(
              rewriter.getAffineDimExpr(range.dim));
      if (!dim)
        return std::nullopt;
      return Range{*dim, range.offset, range.size};
    }
  return std::nullopt;
}

Value Splitter::sliced(Value value, Range range) {
  RankedTensorType type = typeOf(value);
  SmallVector<OpFoldResult> offsets(type.getRank(), rewriter.getIndexAttr(0)),
      sizes = getAsIndexOpFoldResult(rewriter.getContext(), type.getShape()),
      strides(type.getRank(), rewriter.getIndexAttr(1));
  offsets[range.dim] = rewriter.getIndexAttr(range.offset);
  sizes[range.dim] = rewriter.getIndexAttr(range.size);
  return tensor::ExtractSliceOp::create(rewriter, value.getLoc(), value,
                                        offsets, sizes, strides);
}

/// `range` of `value`, computed by itself.
Value Splitter::rebuild(Value value, Range range) {
  Operation *op = value.getDefiningOp();
  Location loc = op->getLoc();
  RankedTensorType type = withRange(typeOf(value), range);
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    IRMapping mapping;
    Value chain = generic == product ? Value() : chainOperand(generic);
    unsigned loop =
        generic.getIndexingMapsArray().back().getDimPosition(range.dim);
    for (OpOperand *use : generic.getDpsInputOperands()) {
      auto dim = generic.getMatchingIndexingMap(use).getResultPosition(
          rewriter.getAffineDimExpr(loop));
      if (!dim)
        continue;
      Range part{*dim, range.offset, range.size};
      mapping.map(use->get(), use->get() == chain ? rebuild(chain, part)
                                                  : sliced(use->get(), part));
    }
    Value init = generic.getDpsInits()[0];
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    if (auto fill = init.getDefiningOp<linalg::FillOp>())
      empty = linalg::FillOp::create(rewriter, loc, fill.getInputs(), empty)
                  .getResult(0);
    mapping.map(init, empty);
    Operation *copy = rewriter.clone(*op, mapping);
    copy->getResult(0).setType(type);
    return copy->getResult(0);
  }
  Value source = rebuild(op->getOperand(0), *before(op, range));
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return tensor::ExpandShapeOp::create(rewriter, loc, type, source,
                                         expand.getReassociationIndices());
  return tensor::CollapseShapeOp::create(
      rewriter, loc, type, source,
      cast<tensor::CollapseShapeOp>(op).getReassociationIndices());
}

bool Splitter::split(MutableArrayRef<tensor::ExtractSliceOp> slices) {
  SmallVector<Range> ranges;
  int64_t covered = 0;
  Value source = slices.front().getSource();
  for (tensor::ExtractSliceOp slice : slices) {
    std::optional<Range> range = rangeOf(slice);
    if (!range)
      return false;
    for (const Range &other : ranges)
      if (other.dim != range->dim ||
          (range->offset < other.offset + other.size &&
           other.offset < range->offset + range->size))
        return false;
    covered += range->size;
    ranges.push_back(*range);
  }
  if (covered > typeOf(source).getDimSize(ranges.front().dim))
    return false;
  // The way to the product is the same for all; ranges are checked one by one.
  SmallVector<Range> now = ranges;
  Value value = source;
  product = {};
  while (!product) {
    Operation *op = value.getDefiningOp();
    if (!op || (value != source && !value.hasOneUse()) ||
        !typeOf(value).hasStaticShape())
      return false;
    if (opKind(op) == OpKind::Contraction) {
      product = cast<linalg::GenericOp>(op);
      break;
    }
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (generic ? !chainOperand(generic)
                : !isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      return false;
    for (Range &range : now) {
      std::optional<Range> next = before(op, range);
      if (!next)
        return false;
      range = *next;
    }
    value = generic ? chainOperand(generic) : op->getOperand(0);
  }
  std::optional<LoopRoles> roles = loopRoles(product);
  AffineMap out = product.getIndexingMapsArray().back();
  Value init = product.getDpsInits()[0];
  if (!constants.isConstant(product.getDpsInputs()[1]) ||
      !out.isProjectedPermutation() || !init.getDefiningOp<linalg::FillOp>())
    return false;
  for (const Range &range : now)
    if (range.size < kMinColumns ||
        !llvm::is_contained(roles->out, out.getDimPosition(range.dim)))
      return false;
  for (auto [slice, range] : llvm::zip_equal(slices, ranges)) {
    rewriter.setInsertionPoint(slice);
    // Slices may drop dims of size one, which reshapes can always do.
    rewriter.replaceOp(slice,
                       reshapeTo(rewriter, slice.getLoc(),
                                 rebuild(source, range), slice.getType()));
  }
  constants = ConstantValues();
  return true;
}

LogicalResult splitProducts(ModuleOp module) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  SmallVector<SmallVector<tensor::ExtractSliceOp>> candidates;
  for (Operation &op : main.getBody().front())
    for (Value result : op.getResults()) {
      SmallVector<tensor::ExtractSliceOp> slices;
      for (Operation *user : result.getUsers())
        if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
            slice && slice.getSource() == result)
          slices.push_back(slice);
      if (slices.size() > 1 &&
          size_t(std::distance(result.user_begin(), result.user_end())) ==
              slices.size())
        candidates.push_back(slices);
    }
  IRRewriter rewriter(module.getContext());
  for (MutableArrayRef<tensor::ExtractSliceOp> slices : candidates)
    Splitter(rewriter).split(slices);
  return success();
}

} // namespace pto::lowering
