//===- Shapes.cpp - Sizes, reshapes and broadcasts ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Shapes.h"
#include "lowering/onnx/SizeChecks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace pto::lowering {

//===- Scalars ------------------------------------------------------------===//

Value scalarValue(OpBuilder &b, Location loc, OpFoldResult element) {
  if (auto value = dyn_cast<Value>(element))
    return value;
  return arith::ConstantOp::create(b, loc,
                                   cast<TypedAttr>(cast<Attribute>(element)));
}

Value scalarConstant(OpBuilder &b, Location loc, Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(b, loc,
                                   b.getIntegerAttr(type, int64_t(value)));
}

OpFoldResult toIndex(OpBuilder &b, Location loc, OpFoldResult element) {
  if (auto attr = dyn_cast<Attribute>(element))
    return b.getIndexAttr(cast<IntegerAttr>(attr).getValue().getSExtValue());
  // A size that went through an integer tensor is the same SSA value again.
  if (auto back = cast<Value>(element).getDefiningOp<arith::IndexCastOp>())
    if (back.getIn().getType().isIndex())
      return back.getIn();
  return getAsOpFoldResult(b.createOrFold<arith::IndexCastOp>(
      loc, b.getIndexType(), cast<Value>(element)));
}

OpFoldResult fromIndex(OpBuilder &b, Location loc, OpFoldResult size,
                       Type type) {
  if (auto v = known(size))
    return b.getIntegerAttr(type, *v);
  return getAsOpFoldResult(
      b.createOrFold<arith::IndexCastOp>(loc, type, cast<Value>(size)));
}

std::optional<int64_t> known(OpFoldResult size) {
  return getConstantIntValue(size);
}

//===- Arithmetic on sizes ------------------------------------------------===//

bool nonNegative(OpFoldResult size) {
  if (auto attr = dyn_cast<Attribute>(size)) {
    auto integer = dyn_cast<IntegerAttr>(attr);
    return integer && !integer.getValue().isNegative();
  }
  Operation *op = cast<Value>(size).getDefiningOp();
  if (!op)
    return false;
  if (isa<tensor::DimOp>(op))
    return true;
  if (matchPattern(op->getResult(0), m_Constant())) {
    APInt value;
    return matchPattern(op->getResult(0), m_ConstantInt(&value)) &&
           !value.isNegative();
  }
  auto all = [&](ValueRange values) {
    return llvm::all_of(values, [](Value v) { return nonNegative(v); });
  };
  // Sizes are far from overflow.
  if (isa<arith::AddIOp, arith::MulIOp, arith::FloorDivSIOp, arith::DivSIOp,
          arith::MinSIOp, arith::IndexCastOp>(op))
    return all(op->getOperands());
  if (isa<arith::MaxSIOp>(op))
    return nonNegative(op->getOperand(0)) || nonNegative(op->getOperand(1));
  if (isa<arith::SelectOp>(op))
    return all(op->getOperands().drop_front());
  return false;
}

template <typename Op>
static OpFoldResult foldSizes(OpBuilder &b, Location loc, OpFoldResult x,
                              OpFoldResult y) {
  return getAsOpFoldResult(
      b.createOrFold<Op>(loc, getValueOrCreateConstantIndexOp(b, loc, x),
                         getValueOrCreateConstantIndexOp(b, loc, y)));
}

OpFoldResult addSizes(OpBuilder &b, Location loc, OpFoldResult x,
                      OpFoldResult y) {
  if (known(x) && known(y))
    return b.getIndexAttr(*known(x) + *known(y));
  return foldSizes<arith::AddIOp>(b, loc, x, y);
}
OpFoldResult subSizes(OpBuilder &b, Location loc, OpFoldResult x,
                      OpFoldResult y) {
  if (known(x) && known(y))
    return b.getIndexAttr(*known(x) - *known(y));
  return foldSizes<arith::SubIOp>(b, loc, x, y);
}
OpFoldResult mulSizes(OpBuilder &b, Location loc, OpFoldResult x,
                      OpFoldResult y) {
  if (known(x) && known(y))
    return b.getIndexAttr(*known(x) * *known(y));
  return foldSizes<arith::MulIOp>(b, loc, x, y);
}
OpFoldResult divSizes(OpBuilder &b, Location loc, OpFoldResult x,
                      OpFoldResult y) {
  if (known(x) && known(y) && *known(y) != 0)
    return b.getIndexAttr(llvm::divideFloorSigned(*known(x), *known(y)));
  return foldSizes<arith::FloorDivSIOp>(b, loc, x, y);
}
OpFoldResult minSizes(OpBuilder &b, Location loc, OpFoldResult x,
                      OpFoldResult y) {
  if (known(x) && known(y))
    return b.getIndexAttr(std::min(*known(x), *known(y)));
  return foldSizes<arith::MinSIOp>(b, loc, x, y);
}
OpFoldResult maxSizes(OpBuilder &b, Location loc, OpFoldResult x,
                      OpFoldResult y) {
  if (known(x) && known(y))
    return b.getIndexAttr(std::max(*known(x), *known(y)));
  if (known(y) && *known(y) <= 0 && nonNegative(x))
    return x;
  if (known(x) && *known(x) <= 0 && nonNegative(y))
    return y;
  return foldSizes<arith::MaxSIOp>(b, loc, x, y);
}

OpFoldResult product(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes) {
  OpFoldResult result = b.getIndexAttr(1);
  for (OpFoldResult s : sizes)
    result = mulSizes(b, loc, result, s);
  return result;
}

std::optional<Sizes> elementsOf(Node &n, Tensor &tensor) {
  if (auto tracked = trackedElements(tensor))
    return tracked;
  if (!tensor.type.hasStaticShape() ||
      tensor.type.getNumElements() > kMaxTrackedElements || tensor.rank() > 1)
    return std::nullopt;
  Sizes result;
  Value value = n.value(tensor);
  for (int64_t i = 0, e = tensor.type.getNumElements(); i < e; ++i) {
    SmallVector<Value> at;
    if (tensor.rank() == 1)
      at.push_back(arith::ConstantIndexOp::create(n.b, n.loc, i));
    result.push_back(
        tensor::ExtractOp::create(n.b, n.loc, value, at).getResult());
  }
  // The next reader gets the same SSA values.
  tensor.elements = result;
  return result;
}

//===- Tensors ------------------------------------------------------------===//

/// The first argument and dim with the symbol of dim `d` of `value`: dims of
/// one symbol are equal, and should be one SSA value.
static std::pair<Value, int64_t> firstOfSymbol(Value value, int64_t d) {
  auto arg = dyn_cast<BlockArgument>(value);
  auto func = arg ? dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp())
                  : func::FuncOp();
  if (!func)
    return {value, d};
  auto symbols = [&](unsigned i) {
    return func.getArgAttrOfType<ArrayAttr>(i, "pto.dims");
  };
  ArrayAttr own = symbols(arg.getArgNumber());
  if (!own || cast<StringAttr>(own[d]).empty())
    return {value, d};
  for (unsigned i = 0; i <= arg.getArgNumber(); ++i)
    if (ArrayAttr list = symbols(i))
      for (auto [k, symbol] : llvm::enumerate(list))
        if (symbol == own[d])
          return {func.getArgument(i), int64_t(k)};
  return {value, d};
}

Sizes sizesOf(OpBuilder &b, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.hasStaticShape())
    return getAsIndexOpFoldResult(b.getContext(), type.getShape());
  // Sizes are looked up where they come from: equal sizes are then the same
  // SSA value, which is how `reshape` and broadcasts recognise them.
  if (auto empty = value.getDefiningOp<tensor::EmptyOp>())
    return empty.getMixedSizes();
  if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>())
    return getMixedValues(expand.getStaticOutputShape(),
                          expand.getOutputShape(), b);
  if (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>())
    if (slice.getType().getRank() == slice.getSourceType().getRank())
      return slice.getMixedSizes();
  if (auto pad = value.getDefiningOp<tensor::PadOp>()) {
    Sizes result = sizesOf(b, loc, pad.getSource());
    for (auto [size, low, high] :
         llvm::zip(result, pad.getMixedLowPad(), pad.getMixedHighPad()))
      size = addSizes(b, loc, addSizes(b, loc, size, low), high);
    return result;
  }
  if (auto insert = value.getDefiningOp<tensor::InsertSliceOp>())
    return sizesOf(b, loc, insert.getDest());
  if (auto linalg = value.getDefiningOp<linalg::LinalgOp>())
    return sizesOf(
        b, loc,
        linalg.getDpsInitOperand(cast<OpResult>(value).getResultNumber())
            ->get());
  if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>()) {
    Sizes source = sizesOf(b, loc, collapse.getSrc()), result;
    for (const ReassociationIndices &group :
         collapse.getReassociationIndices()) {
      OpFoldResult size = b.getIndexAttr(1);
      for (int64_t d : group)
        size = mulSizes(b, loc, size, source[d]);
      result.push_back(size);
    }
    return result;
  }
  Sizes result;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    if (!type.isDynamicDim(d)) {
      result.push_back(b.getIndexAttr(type.getDimSize(d)));
      continue;
    }
    // One tensor.dim per value and dim, beside the value.
    auto [source, at] = firstOfSymbol(value, d);
    Value dim;
    for (Operation *user : source.getUsers())
      if (auto op = dyn_cast<tensor::DimOp>(user))
        if (op.getConstantIndex() == at)
          dim = op;
    if (!dim) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointAfterValue(source);
      dim = tensor::DimOp::create(b, loc, source, at);
    }
    result.push_back(dim);
  }
  return result;
}

Sizes sizesOf(Node &n, Tensor &tensor) {
  if (tensor.type.hasStaticShape())
    return getAsIndexOpFoldResult(n.b.getContext(), tensor.shape());
  return sizesOf(n.b, n.loc, n.value(tensor));
}

SmallVector<int64_t> staticShape(ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  for (OpFoldResult s : sizes)
    shape.push_back(known(s).value_or(ShapedType::kDynamic));
  return shape;
}

Value emptyTensor(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
                  Type elementType) {
  Sizes folded;
  for (OpFoldResult s : sizes)
    folded.push_back(known(s) ? OpFoldResult(b.getIndexAttr(*known(s))) : s);
  return tensor::EmptyOp::create(b, loc, folded, elementType);
}

Value filledTensor(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
                   Value scalar) {
  Value empty = emptyTensor(b, loc, sizes, scalar.getType());
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

namespace {
/// A product of sizes in a form that can be compared.
struct Product {
  int64_t factor = 1;
  SmallVector<void *> values;
  void multiply(OpFoldResult size) {
    if (auto v = known(size)) {
      factor *= *v;
    } else if (auto mul = cast<Value>(size).getDefiningOp<arith::MulIOp>()) {
      multiply(getAsOpFoldResult(mul.getLhs()));
      multiply(getAsOpFoldResult(mul.getRhs()));
    } else {
      values.push_back(cast<Value>(size).getAsOpaquePointer());
      llvm::sort(values);
    }
  }
  bool operator==(const Product &o) const {
    return factor == o.factor && values == o.values;
  }
};
} // namespace

static SmallVector<Product> prefixProducts(ArrayRef<OpFoldResult> sizes) {
  SmallVector<Product> result(1);
  for (OpFoldResult s : sizes) {
    result.push_back(result.back());
    result.back().multiply(s);
  }
  return result;
}

Value reshape(OpBuilder &b, Location loc, Value value,
              ArrayRef<OpFoldResult> sizes) {
  auto sourceType = cast<RankedTensorType>(value.getType());
  auto targetType = sourceType.clone(staticShape(sizes));
  if (sourceType == targetType && sourceType.getNumDynamicDims() <= 1) {
    Sizes own = sizesOf(b, loc, value);
    for (auto [d, size] : llvm::enumerate(sizes))
      if (!known(size))
        requireSizes(b, loc, arith::CmpIPredicate::eq, own[d], size,
                     nodePrefix(loc) +
                         "a reshape changes the number of elements");
    return value;
  }
  int64_t n = sourceType.getRank(), m = targetType.getRank();
  if (n == 0 && m == 0)
    return value;
  if (n == 0)
    return tensor::ExpandShapeOp::create(b, loc, targetType, value,
                                         ArrayRef<ReassociationIndices>{});
  auto cast = [&](Value v, RankedTensorType type) -> Value {
    return v.getType() == type ? v : tensor::CastOp::create(b, loc, type, v);
  };
  if (m == 0) {
    auto ones = sourceType.clone(SmallVector<int64_t>(n, 1));
    return tensor::CollapseShapeOp::create(b, loc, cast(value, ones),
                                           ArrayRef<ReassociationIndices>{});
  }
  Sizes sourceSizes = sizesOf(b, loc, value);
  if (sourceSizes == Sizes(sizes))
    return value;

  // Cut both shapes wherever their prefixes have equal products; each piece
  // is collapsed to one dim and expanded again.
  auto p = prefixProducts(sourceSizes), q = prefixProducts(sizes);
  SmallVector<ReassociationIndices> from, to;
  int64_t lastI = 0, lastJ = 0;
  auto cut = [&](int64_t i, int64_t j) {
    from.emplace_back();
    llvm::append_range(from.back(), llvm::seq<int64_t>(lastI, i));
    to.emplace_back();
    llvm::append_range(to.back(), llvm::seq<int64_t>(lastJ, j));
    lastI = i, lastJ = j;
  };
  for (int64_t i = 1; i <= n; ++i)
    for (int64_t j = lastJ + 1; j <= m; ++j)
      if (p[i] == q[j]) {
        cut(i, j);
        break;
      }
  if (from.empty())
    cut(n, m);
  for (; lastI < n; ++lastI)
    from.back().push_back(lastI);
  for (; lastJ < m; ++lastJ)
    to.back().push_back(lastJ);

  if (int64_t(from.size()) < n)
    value = tensor::CollapseShapeOp::create(b, loc, value, from);
  SmallVector<int64_t> middle;
  for (const ReassociationIndices &group : to) {
    int64_t size = 1;
    for (int64_t d : group)
      size = targetType.isDynamicDim(d) || ShapedType::isDynamic(size)
                 ? ShapedType::kDynamic
                 : size * targetType.getDimSize(d);
    middle.push_back(size);
  }
  value = cast(value, sourceType.clone(middle));
  if (int64_t(to.size()) < m)
    value = tensor::ExpandShapeOp::create(b, loc, targetType, value, to, sizes);
  return value;
}

Tensor reshape(Node &n, Tensor &tensor, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape = staticShape(sizes);
  if (!tensor.value && !ShapedType::isDynamicShape(shape)) {
    if (tensor.constant)
      return Tensor::fromConstant(tensor.dtype,
                                  reshapeConstant(tensor.constant, shape));
    return Tensor::fromElements(tensor.dtype, tensor.type.clone(shape),
                                *tensor.elements);
  }
  Tensor result = Tensor::fromValue(
      tensor.dtype, reshape(n.b, n.loc, n.value(tensor), sizes));
  if (result.type.hasStaticShape()) {
    result.elements = tensor.elements;
    if (tensor.constant)
      result.constant = reshapeConstant(tensor.constant, shape);
  }
  return result;
}

SmallVector<ReassociationIndices> dropDims(int64_t rank, ArrayRef<bool> drop) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (int64_t d = 0; d < rank; ++d) {
    if (!drop[d]) {
      groups.push_back(leading);
      leading.clear();
      groups.back().push_back(d);
    } else if (groups.empty()) {
      leading.push_back(d);
    } else {
      groups.back().push_back(d);
    }
  }
  return groups;
}

llvm::Expected<Sizes> broadcastSizes(Node &n, ArrayRef<Sizes> shapes) {
  size_t rank = 0;
  for (const Sizes &s : shapes)
    rank = std::max(rank, s.size());
  Sizes result(rank, n.b.getIndexAttr(1));
  for (const Sizes &s : shapes)
    for (size_t i = 0; i < s.size(); ++i) {
      OpFoldResult &r = result[rank - s.size() + i];
      auto have = known(r), other = known(s[i]);
      if (have && *have == 1) {
        r = s[i];
      } else if (other && *other != 1) {
        if (have && *have != *other)
          return n.invalid("sizes " + Twine(*have) + " and " + Twine(*other) +
                           " do not broadcast");
        r = s[i];
      }
    }
  return result;
}

BroadcastOperand broadcastOperand(Node &n, Tensor &tensor,
                                  ArrayRef<OpFoldResult> sizes) {
  int64_t rank = sizes.size(), offset = rank - tensor.rank();
  SmallVector<bool> drop;
  SmallVector<AffineExpr> exprs;
  SmallVector<int64_t> kept;
  for (auto [d, size] : llvm::enumerate(tensor.shape())) {
    drop.push_back(size == 1 && known(sizes[offset + d]) != 1);
    if (!drop.back()) {
      exprs.push_back(n.b.getAffineDimExpr(offset + d));
      kept.push_back(size);
    }
  }
  auto map = AffineMap::get(rank, 0, exprs, n.b.getContext());
  if (!llvm::is_contained(drop, true))
    return {n.value(tensor), map};
  if (tensor.constant)
    return {n.constant(reshapeConstant(tensor.constant, kept)), map};
  return {tensor::CollapseShapeOp::create(n.b, n.loc, tensor.type.clone(kept),
                                          n.value(tensor),
                                          dropDims(tensor.rank(), drop)),
          map};
}

} // namespace pto::lowering
