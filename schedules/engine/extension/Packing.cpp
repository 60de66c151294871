//===- Packing.cpp - Operand layouts, and work done before run time
//---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "schedules/engine/extension/Packing.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pto::schedules {

llvm::Expected<linalg::GenericOp> packOperand(RewriterBase &b,
                                              linalg::GenericOp op,
                                              unsigned operand, unsigned loop,
                                              int64_t tile) {
  auto refuse = [](const Twine &reason) {
    return llvm::createStringError("pack_operand: " + reason);
  };
  if (operand >= op.getNumDpsInputs())
    return refuse("the op has no input " + Twine(operand));
  if (tile < 2)
    return refuse("a panel needs at least 2 elements");
  OpOperand *use = op.getDpsInputOperand(operand);
  auto type = dyn_cast<RankedTensorType>(use->get().getType());
  AffineMap map = op.getMatchingIndexingMap(use);
  if (!type || !map.isProjectedPermutation())
    return refuse("the operand is not a tensor indexed by plain loops");
  std::optional<unsigned> found =
      map.getResultPosition(b.getAffineDimExpr(loop));
  if (!found)
    return refuse("loop " + Twine(loop) + " does not index operand " +
                  Twine(operand));
  unsigned axis = *found;
  int64_t size = type.getDimSize(axis);
  if (ShapedType::isDynamic(size))
    return refuse("the packed axis has a dynamic size");

  // [N/tile][rest...][tile], the panel axis first.
  Location loc = op.getLoc();
  SmallVector<int64_t> shape{llvm::divideCeilSigned(size, tile)};
  SmallVector<AffineExpr> exprs{b.getAffineDimExpr(loop).floorDiv(tile)};
  SmallVector<Value> dynamic;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    if (i == axis)
      continue;
    shape.push_back(type.getDimSize(i));
    if (type.isDynamicDim(i))
      dynamic.push_back(b.createOrFold<tensor::DimOp>(loc, use->get(), i));
    exprs.push_back(map.getResult(i));
  }
  shape.push_back(tile);
  exprs.push_back(b.getAffineDimExpr(loop) % tile);

  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  Value empty =
      tensor::EmptyOp::create(b, loc, shape, type.getElementType(), dynamic);
  // Copies that schedule like any other op; `pto.pack` marks them.
  unsigned rank = shape.size();
  SmallVector<AffineExpr> source;
  for (int64_t i = 0, kept = 1; i < type.getRank(); ++i)
    source.push_back(i == axis ? b.getAffineDimExpr(0) * tile +
                                     b.getAffineDimExpr(rank - 1)
                               : b.getAffineDimExpr(kept++));
  SmallVector<AffineMap> maps{AffineMap::get(rank, 0, source, b.getContext()),
                              b.getMultiDimIdentityMap(rank)};
  SmallVector<utils::IteratorType> parallel(rank,
                                            utils::IteratorType::parallel);
  auto copy = [&](Value from, Value into) -> Value {
    auto made = linalg::GenericOp::create(
        b, loc, into.getType(), from, into, maps, parallel,
        [](OpBuilder &nested, Location at, ValueRange args) {
          linalg::YieldOp::create(nested, at, args[0]);
        });
    made->setAttr("pto.pack", b.getUnitAttr());
    return made.getResult(0);
  };
  int64_t whole = size / tile, rest = size % tile;
  Value packed = empty;
  if (rest == 0) {
    packed = copy(use->get(), empty);
  } else {
    // Whole panels, then what is left, beside zeros.
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, use->get());
    SmallVector<OpFoldResult> panels = tensor::getMixedSizes(b, loc, empty);
    SmallVector<OpFoldResult> zeros(rank, b.getIndexAttr(0)),
        ones(rank, b.getIndexAttr(1));
    auto from = [&](int64_t begin, int64_t count) -> Value {
      SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
          counts(sizes), strides(sizes.size(), b.getIndexAttr(1));
      offsets[axis] = b.getIndexAttr(begin);
      counts[axis] = b.getIndexAttr(count);
      return tensor::ExtractSliceOp::create(b, loc, use->get(), offsets, counts,
                                            strides);
    };
    auto into = [&](int64_t panel, int64_t count, int64_t width,
                    llvm::function_ref<Value(Value)> make) {
      SmallVector<OpFoldResult> offsets(zeros), counts(panels);
      offsets[0] = b.getIndexAttr(panel);
      counts[0] = b.getIndexAttr(count);
      counts[rank - 1] = b.getIndexAttr(width);
      Value slice =
          tensor::ExtractSliceOp::create(b, loc, packed, offsets, counts, ones);
      packed = tensor::InsertSliceOp::create(b, loc, make(slice), packed,
                                             offsets, counts, ones);
    };
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
    if (whole)
      into(0, whole, tile,
           [&](Value slice) { return copy(from(0, whole * tile), slice); });
    into(whole, 1, tile, [&](Value slice) {
      return linalg::FillOp::create(b, loc, zero, slice).getResult(0);
    });
    into(whole, 1, rest,
         [&](Value slice) { return copy(from(whole * tile, rest), slice); });
  }
  b.modifyOpInPlace(op, [&] {
    use->set(packed);
    SmallVector<AffineMap> packedMaps = op.getIndexingMapsArray();
    packedMaps[use->getOperandNumber()] =
        AffineMap::get(map.getNumDims(), 0, exprs, b.getContext());
    op.setIndexingMapsAttr(b.getAffineMapArrayAttr(packedMaps));
  });
  return op;
}

llvm::Error splitPrepack(RewriterBase &b, func::FuncOp kernel) {
  Block &entry = kernel.getBody().front();
  auto role = [&](unsigned i) {
    auto attr = kernel.getArgAttrOfType<StringAttr>(i, "pto.role");
    return attr ? attr.getValue() : StringRef();
  };
  // What follows from weights and constants alone, in program order.
  llvm::SetVector<Operation *> early;
  llvm::DenseSet<Value> known;
  for (BlockArgument arg : entry.getArguments())
    if (role(arg.getArgNumber()) == "weight")
      known.insert(arg);
  bool any = false;
  for (Operation &op : entry.without_terminator()) {
    bool all = op.getNumRegions() == 0 || isa<linalg::LinalgOp>(op);
    bool usesWeight = false;
    for (Value v : op.getOperands()) {
      all &= known.contains(v);
      Operation *def = v.getDefiningOp();
      usesWeight |= !def || early.contains(def);
    }
    op.walk([&](Operation *inner) {
      if (inner == &op)
        return;
      for (Value v : inner->getOperands()) {
        Operation *def = v.getDefiningOp();
        bool inside = isa<BlockArgument>(v)
                          ? cast<BlockArgument>(v).getOwner() != &entry
                          : op.isProperAncestor(def);
        all &= inside || known.contains(v);
      }
    });
    if (!all || op.getNumResults() == 0)
      continue;
    early.insert(&op);
    known.insert(op.result_begin(), op.result_end());
    any |= usesWeight && isa<linalg::LinalgOp, linalg::PackOp>(op);
  }
  if (!any)
    return llvm::Error::success();

  // Values that cross: computed early from a weight, used by what stays.
  auto isWeightDerived = [&](Value v) {
    SmallVector<Value> work{v};
    while (!work.empty()) {
      Value at = work.pop_back_val();
      if (auto arg = dyn_cast<BlockArgument>(at)) {
        if (arg.getOwner() == &entry)
          return true;
        continue;
      }
      work.append(at.getDefiningOp()->operand_begin(),
                  at.getDefiningOp()->operand_end());
    }
    return false;
  };
  llvm::SetVector<Value> crossing;
  for (Operation &op : entry) {
    if (early.contains(&op))
      continue;
    op.walk([&](Operation *inner) {
      for (Value v : inner->getOperands())
        if (Operation *def = v.getDefiningOp();
            def && early.contains(def) && isWeightDerived(v))
          crossing.insert(v);
    });
  }
  SmallVector<unsigned> weights;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (role(i) == "weight")
      weights.push_back(i);
  for (Value v : crossing)
    if (!isa<RankedTensorType>(v.getType()) ||
        !cast<RankedTensorType>(v.getType()).hasStaticShape())
      return llvm::createStringError(
          "split_prepack: a packed weight has a dynamic shape");

  // @kernel_prepack(weights..., outs...) -> packed weights.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(kernel);
  SmallVector<Type> inputs, results;
  for (unsigned i : weights)
    inputs.push_back(kernel.getArgument(i).getType());
  for (Value v : crossing)
    results.push_back(v.getType());
  SmallVector<Type> all(inputs);
  all.append(results);
  auto prepack = func::FuncOp::create(b, kernel.getLoc(),
                                      (kernel.getName() + "_prepack").str(),
                                      b.getFunctionType(all, results));
  Block *body = prepack.addEntryBlock();
  for (auto [k, i] : llvm::enumerate(weights)) {
    prepack.setArgAttr(k, "pto.arg", b.getI64IntegerAttr(i));
    prepack.setArgAttr(k, "bufferization.writable", b.getBoolAttr(false));
  }
  b.setInsertionPointToStart(body);
  IRMapping map;
  for (auto [k, i] : llvm::enumerate(weights))
    map.map(kernel.getArgument(i), body->getArgument(k));
  for (Operation *op : early)
    b.clone(*op, map);
  SmallVector<Value> returned;
  for (Value v : crossing)
    returned.push_back(map.lookup(v));
  func::ReturnOp::create(b, kernel.getLoc(), returned);

  // The kernel takes the packed weights instead, where the first raw weight
  // was; raw ones stay if something still uses them.
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    kernel.setArgAttr(i, "pto.arg", b.getI64IntegerAttr(i));
  unsigned position = weights.front();
  for (auto [j, v] : llvm::enumerate(crossing)) {
    unsigned at = position + j;
    SmallVector<NamedAttribute> attrs{
        b.getNamedAttr("pto.role", b.getStringAttr("weight")),
        b.getNamedAttr("pto.prepack", b.getI64IntegerAttr(j))};
    if (failed(kernel.insertArgument(
            at, v.getType(), b.getDictionaryAttr(attrs), kernel.getLoc())))
      return llvm::createStringError("split_prepack: cannot add an argument");
    b.replaceUsesWithIf(v, kernel.getArgument(at), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      while (user->getBlock() != &entry)
        user = user->getParentOp();
      return !early.contains(user);
    });
  }
  for (Operation *op : llvm::reverse(early.getArrayRef()))
    if (op->use_empty())
      b.eraseOp(op);
  for (int i = int(kernel.getNumArguments()) - 1; i >= 0; --i)
    if (role(i) == "weight" && kernel.getArgAttr(i, "pto.arg") &&
        kernel.getArgument(i).use_empty())
      if (failed(kernel.eraseArgument(i)))
        return llvm::createStringError("split_prepack: cannot drop a weight");
  return llvm::Error::success();
}

} // namespace pto::schedules
