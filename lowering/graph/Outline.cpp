//===- Outline.cpp - Groups of ops become kernel functions ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A kernel's arguments are the tensors that its group reads, in order of use,
// weights after inputs, then one destination per result. Scalars, fills and
// small constants are made again inside.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Passes.h"
#include "lowering/graph/RowWise.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace pto::lowering {
namespace {

class Outliner {
public:
  Outliner(ModuleOp module, func::FuncOp main)
      : module(module), main(main), b(module.getContext()) {}
  LogicalResult outline(ArrayRef<Operation *> group, int64_t id);

private:
  void collectInputs(Value value);
  Operation *anchorOf();

  ModuleOp module;
  func::FuncOp main;
  OpBuilder b;
  llvm::SetVector<Operation *> ops;    ///< The group.
  llvm::SetVector<Operation *> copied; ///< Made again inside, in order.
  llvm::SetVector<Value> arguments;
};

} // namespace

/// A copy of `source` in `output`.
static Value copyInto(OpBuilder &b, Location loc, Value source, Value output) {
  unsigned rank = cast<RankedTensorType>(output.getType()).getRank();
  AffineMap identity = b.getMultiDimIdentityMap(rank);
  return linalg::GenericOp::create(
             b, loc, TypeRange{output.getType()}, ValueRange{source},
             ValueRange{output}, ArrayRef<AffineMap>{identity, identity},
             SmallVector<utils::IteratorType>(rank,
                                              utils::IteratorType::parallel),
             [](OpBuilder &b, Location loc, ValueRange args) {
               linalg::YieldOp::create(b, loc, args[0]);
             })
      .getResult(0);
}

/// `op`, which has no destination, so that it writes to `output`.
static Value writeInto(OpBuilder &b, Operation *op, IRMapping &mapping,
                       Value output) {
  Location loc = op->getLoc();
  SmallVector<OpFoldResult> ones, zeros;
  int64_t rank = cast<RankedTensorType>(output.getType()).getRank();
  ones.assign(rank, b.getIndexAttr(1));
  zeros.assign(rank, b.getIndexAttr(0));
  auto remap = [&](ArrayRef<OpFoldResult> values) {
    SmallVector<OpFoldResult> result;
    for (OpFoldResult value : values) {
      auto dynamic = dyn_cast<Value>(value);
      result.push_back(dynamic ? OpFoldResult(mapping.lookup(dynamic)) : value);
    }
    return result;
  };
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    if (Value value = pad.getConstantPaddingValue();
        value && !llvm::any_of(pad.getStaticLow(), ShapedType::isDynamic)) {
      Operation *def = value.getDefiningOp();
      if (!mapping.contains(value))
        value = b.clone(*def)->getResult(0);
      else
        value = mapping.lookup(value);
      Value filled =
          linalg::FillOp::create(b, loc, ValueRange{value}, ValueRange{output})
              .getResult(0);
      Value source = mapping.lookup(pad.getSource());
      return tensor::InsertSliceOp::create(
          b, loc, source, filled, remap(pad.getMixedLowPad()),
          tensor::getMixedSizes(b, loc, source), ones);
    }
  }
  if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    OpFoldResult at = b.getIndexAttr(0);
    for (Value operand : concat.getInputs()) {
      Value input = mapping.lookup(operand);
      SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, input);
      SmallVector<OpFoldResult> offsets(zeros);
      offsets[concat.getDim()] = at;
      output = tensor::InsertSliceOp::create(b, loc, input, output, offsets,
                                             sizes, ones);
      AffineExpr x, y;
      bindDims(b.getContext(), x, y);
      at = affine::makeComposedFoldedAffineApply(
          b, loc, AffineMap::get(2, 0, x + y, b.getContext()),
          {at, sizes[concat.getDim()]});
    }
    return output;
  }
  return copyInto(b, loc, b.clone(*op, mapping)->getResult(0), output);
}

/// Ops that cost nothing, or that a kernel should see as what they are.
static bool isRemade(Operation *op) {
  if (isa<tensor::EmptyOp, tensor::DimOp, linalg::FillOp>(op))
    return true;
  if (op->hasTrait<OpTrait::ConstantLike>())
    return !isa<ShapedType>(op->getResult(0).getType()) ||
           splatValue(op->getResult(0));
  return !llvm::any_of(op->getResultTypes(),
                       [](Type type) { return isa<ShapedType>(type); }) &&
         op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         !isa<tensor::ExtractOp>(op);
}

/// Whether `op` uses what its destination `init` holds.
static bool isRead(Operation *op, OpOperand &init) {
  if (init.get().getDefiningOp<tensor::EmptyOp>() || isa<linalg::FillOp>(op))
    return false;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return !generic || !generic.getMatchingBlockArgument(&init).use_empty();
}

/// `output`, holding what the root's `init` holds.
static Value initialOutput(OpBuilder &b, Operation *root, OpOperand &init,
                           IRMapping &mapping, Value output) {
  Location loc = init.get().getLoc();
  if (auto fill = init.get().getDefiningOp<linalg::FillOp>()) {
    Value value = mapping.lookup(fill.getInputs()[0]);
    return linalg::FillOp::create(b, loc, ValueRange{value}, ValueRange{output})
        .getResult(0);
  }
  if (!isRead(root, init))
    return output;
  return copyInto(b, loc, mapping.lookup(init.get()), output);
}

void Outliner::collectInputs(Value value) {
  Operation *def = value.getDefiningOp();
  if (def && (ops.contains(def) || copied.contains(def)))
    return;
  if (def) {
    for (Operation *op : ops)
      if (op->isAncestor(def))
        return;
    if (isRemade(def)) {
      for (Value operand : def->getOperands())
        collectInputs(operand);
      copied.insert(def);
      return;
    }
  } else {
    for (Operation *op : ops)
      if (op->isAncestor(value.getParentBlock()->getParentOp()))
        return;
  }
  arguments.insert(value);
}

static LogicalResult sizesOf(OpBuilder &b, Value result,
                             SmallVector<OpFoldResult> &sizes) {
  auto destination =
      dyn_cast<DestinationStyleOpInterface>(result.getDefiningOp());
  if (destination) {
    Value init = destination.getTiedOpOperand(cast<OpResult>(result))->get();
    sizes = tensor::getMixedSizes(b, result.getLoc(), init);
    return success();
  }
  ReifiedRankedShapedTypeDims shapes;
  auto type = cast<RankedTensorType>(result.getType());
  if (type.hasStaticShape()) {
    sizes = getAsIndexOpFoldResult(b.getContext(), type.getShape());
    return success();
  }
  if (failed(reifyResultShapes(b, result.getDefiningOp(), shapes)))
    return result.getDefiningOp()->emitError("the size of its result cannot "
                                             "be computed beforehand");
  sizes = shapes[cast<OpResult>(result).getResultNumber()];
  return success();
}

Operation *Outliner::anchorOf() {
  for (Operation *op : ops)
    if (opKind(op) != OpKind::Elementwise && !isa<tensor::PadOp>(op))
      return op;
  return ops.back();
}

LogicalResult Outliner::outline(ArrayRef<Operation *> group, int64_t id) {
  ops.clear();
  copied.clear();
  arguments.clear();
  ops.insert(group.begin(), group.end());
  Operation *root = group.back();
  Operation *anchor = anchorOf();
  auto destination = dyn_cast<DestinationStyleOpInterface>(root);
  for (Operation *op : group)
    op->walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands()) {
        if (inner == root && destination && destination.isDpsInit(&operand)) {
          // The destination of a result is an argument of its own; only what
          // it holds before matters.
          if (auto fill = operand.get().getDefiningOp<linalg::FillOp>())
            collectInputs(fill.getInputs()[0]);
          else if (isRead(root, operand))
            collectInputs(operand.get());
          continue;
        }
        collectInputs(operand.get());
      }
    });
  for (Value argument : arguments)
    if (!isa<RankedTensorType>(argument.getType()))
      return root->emitError("a kernel would need a scalar that is computed "
                             "from tensors at run time");

  SmallVector<Value> inputs, weights;
  for (Value argument : arguments) {
    Operation *def = argument.getDefiningOp();
    bool weight = def && (def->hasTrait<OpTrait::ConstantLike>() ||
                          (isa<func::CallOp>(def) &&
                           cast<func::CallOp>(def).getCallee() == "constants"));
    (weight ? weights : inputs).push_back(argument);
  }
  // Empty tensors of dynamic size only need a shape.
  SmallVector<Value> operands(inputs);
  operands.append(weights);
  SmallVector<Type> types;
  for (Value operand : operands)
    types.push_back(operand.getType());
  SmallVector<Value> results(root->getResults());
  for (Value result : results)
    types.push_back(result.getType());

  Location loc = anchor->getLoc();
  b.setInsertionPoint(main);
  auto kernel = func::FuncOp::create(
      b, loc, ("kernel_" + llvm::Twine(id)).str(),
      FunctionType::get(b.getContext(), types, root->getResultTypes()));
  kernel.setPrivate();
  kernel->setAttr("pto.kernel", b.getUnitAttr());
  if (root->hasAttr(kRowOp))
    kernel->setAttr("pto.rowwise", b.getUnitAttr());
  auto setRole = [&](unsigned i, StringRef role) {
    kernel.setArgAttr(i, "pto.role", b.getStringAttr(role));
  };
  for (unsigned i = 0; i < operands.size(); ++i)
    setRole(i, i < inputs.size() ? "input" : "weight");
  Block *entry = kernel.addEntryBlock();
  IRMapping mapping;
  for (auto [operand, argument] : llvm::zip(operands, entry->getArguments()))
    mapping.map(operand, argument);
  for (unsigned i = operands.size(); i < types.size(); ++i) {
    setRole(i, "output");
    kernel.setArgAttr(i, "bufferization.writable", b.getBoolAttr(true));
  }
  b.setInsertionPointToStart(entry);
  for (Operation *op : copied)
    b.clone(*op, mapping);
  SmallVector<Value> returned;
  for (Operation *op : group) {
    bool isRoot = op == root;
    if (isRoot && destination)
      for (auto [i, init] : llvm::enumerate(destination.getDpsInitsMutable()))
        mapping.map(init.get(),
                    initialOutput(b, root, init, mapping,
                                  entry->getArgument(operands.size() + i)));
    if (isRoot && !destination) {
      if (op->getNumResults() != 1)
        return op->emitError("has several results and no destinations for "
                             "them, which no kernel can have");
      returned.push_back(
          writeInto(b, op, mapping, entry->getArgument(operands.size())));
      Operation *writer = returned.back().getDefiningOp();
      writer->removeAttr("pto.group");
      writer->setAttr("pto.root", b.getUnitAttr());
      writer->setAttr("pto.anchor", b.getUnitAttr());
      continue;
    }
    Operation *clone = b.clone(*op, mapping);
    clone->removeAttr("pto.group");
    if (op == anchor)
      clone->setAttr("pto.anchor", b.getUnitAttr());
    if (isRoot) {
      clone->setAttr("pto.root", b.getUnitAttr());
      returned.append(clone->result_begin(), clone->result_end());
    }
  }
  for (Operation &op : *entry)
    op.removeAttr("pto.group");
  func::ReturnOp::create(b, loc, returned);

  b.setInsertionPoint(root);
  for (Value result : results) {
    SmallVector<OpFoldResult> sizes;
    if (failed(sizesOf(b, result, sizes)))
      return failure();
    auto type = cast<RankedTensorType>(result.getType());
    operands.push_back(tensor::EmptyOp::create(b, result.getLoc(), sizes,
                                               type.getElementType()));
  }
  auto call = func::CallOp::create(b, loc, kernel, operands);
  call->setAttr("pto.region", b.getI64IntegerAttr(id));
  for (auto [result, now] : llvm::zip_equal(results, call.getResults()))
    result.replaceAllUsesWith(now);
  for (Operation *op : llvm::reverse(group)) {
    if (!op->use_empty())
      return op->emitError("is still used after its kernel was formed");
    op->erase();
  }
  return success();
}

namespace {

/// Notes the dims of tensors that are asked for.
struct DimCollector : RewriterBase::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    if (auto dim = dyn_cast<tensor::DimOp>(op))
      dims.push_back(dim);
  }
  SmallVector<tensor::DimOp> dims;
};

} // namespace

/// Sizes of what moves into kernels, from what they are computed from.
static LogicalResult resolveSizes(func::FuncOp main) {
  DimCollector collector;
  main.walk([&](tensor::DimOp dim) { collector.dims.push_back(dim); });
  IRRewriter rewriter(main.getContext(), &collector);
  while (!collector.dims.empty()) {
    tensor::DimOp dim = collector.dims.pop_back_val();
    auto result = dyn_cast<OpResult>(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!result || !index || !result.getOwner()->hasAttr("pto.group"))
      continue;
    rewriter.setInsertionPoint(result.getOwner());
    SmallVector<OpFoldResult> sizes;
    if (failed(sizesOf(rewriter, result, sizes)))
      return failure();
    rewriter.replaceOp(dim, getValueOrCreateConstantIndexOp(
                                rewriter, dim.getLoc(), sizes[*index]));
  }
  return success();
}

LogicalResult outlineGroups(ModuleOp module) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main || failed(resolveSizes(main)))
    return failure();
  llvm::MapVector<int64_t, SmallVector<Operation *>> groups;
  for (Operation &op : main.getBody().front())
    if (auto id = op.getAttrOfType<IntegerAttr>("pto.group"))
      groups[id.getInt()].push_back(&op);
  // Regions are numbered in the order of their results.
  SmallVector<SmallVector<Operation *>> ordered;
  for (auto &[id, ops] : groups)
    ordered.push_back(ops);
  llvm::sort(ordered, [](auto &a, auto &b) {
    return a.back()->isBeforeInBlock(b.back());
  });
  Outliner outliner(module, main);
  for (auto [id, ops] : llvm::enumerate(ordered))
    if (failed(outliner.outline(ops, id)))
      return failure();
  // What only the groups used.
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(main.getBody().front())))
    if (op.use_empty() && op.getNumResults() != 0 && isMemoryEffectFree(&op))
      op.erase();
  return success();
}

} // namespace pto::lowering
