//===- Constants.cpp - What depends on constants alone, evaluated once ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The ops of @main that depend on constants only move to @constants, whose
// results are what the rest of the model uses: folded and transposed weights,
// tables, sizes. Fills and empty tensors stay where they are used: they are
// cheaper made than stored.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/ConstantTranspose.h"
#include "lowering/graph/Passes.h"
#include "lowering/graph/Structure.h"
#include "lowering/pipeline/Pipeline.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace pto::lowering {

/// Constants and tensors of one value: not worth evaluating.
static bool isTrivial(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<tensor::EmptyOp>(op))
    return true;
  return op->getNumResults() == 1 && op->getNumOperands() != 0 &&
         isa<linalg::FillOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
             tensor::CastOp>(op) &&
         splatValue(op->getResult(0));
}

static bool canEvaluate(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.hasStaticShape() && tensor.getNumElements() != 0 &&
           tensor.getElementType().isIntOrFloat();
  return type.isIntOrIndexOrFloat();
}

/// True for the first parts of a concatenation: `insert` and those below it
/// leave elements of a tensor.empty unwritten. (Parts never overlap.)
static bool leavesGaps(tensor::InsertSliceOp insert) {
  int64_t written = 0, size = insert.getResultType().getNumElements();
  Value into = insert.getResult();
  while (auto part = into.getDefiningOp<tensor::InsertSliceOp>()) {
    written += part.getSourceType().getNumElements();
    into = part.getDest();
  }
  return into.getDefiningOp<tensor::EmptyOp>() && written < size;
}

/// The constant results that the rest of `main` uses.
static SmallVector<Value> findRoots(func::FuncOp main) {
  Block &block = main.getBody().front();
  ConstantValues constants;
  llvm::SmallPtrSet<Operation *, 32> moved;
  SmallVector<Value> roots;
  for (Operation &op : llvm::reverse(block)) {
    if (op.getNumResults() == 0 || isTrivial(&op) ||
        !constants.isConstant(op.getResult(0)))
      continue;
    auto staysUsed = [&](Value result) {
      return llvm::any_of(result.getUsers(), [&](Operation *user) {
        return !moved.contains(block.findAncestorOpInBlock(*user));
      });
    };
    // A constant with gaps would store what happened to be in memory.
    auto insert = dyn_cast<tensor::InsertSliceOp>(op);
    if (insert && canEvaluate(insert.getType()) && leavesGaps(insert) &&
        staysUsed(insert))
      continue;
    moved.insert(&op);
    for (Value result : llvm::reverse(op.getResults()))
      if (staysUsed(result) && canEvaluate(result.getType()))
        roots.push_back(result);
  }
  std::reverse(roots.begin(), roots.end());
  return roots;
}

/// The ops that compute `roots`, in the order of the block.
static SmallVector<Operation *> slice(Block &block, ArrayRef<Value> roots) {
  llvm::SmallPtrSet<Operation *, 32> needed;
  SmallVector<Operation *> worklist;
  auto need = [&](Value value) {
    Operation *op = value.getDefiningOp();
    Operation *outer = op ? block.findAncestorOpInBlock(*op) : nullptr;
    if (outer && needed.insert(outer).second)
      worklist.push_back(outer);
  };
  for (Value root : roots)
    need(root);
  while (!worklist.empty())
    worklist.pop_back_val()->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        need(operand);
    });
  SmallVector<Operation *> ordered;
  for (Operation &op : block)
    if (needed.contains(&op))
      ordered.push_back(&op);
  return ordered;
}

static func::FuncOp buildFunction(func::FuncOp main, ArrayRef<Value> roots) {
  MLIRContext *context = main.getContext();
  OpBuilder b(main);
  SmallVector<Type> types;
  for (Value root : roots) {
    Type type = root.getType();
    if (!isa<RankedTensorType>(type))
      type = RankedTensorType::get(
          {}, type.isIndex() ? IntegerType::get(context, 64) : type);
    types.push_back(type);
  }
  auto function =
      func::FuncOp::create(b, main.getLoc(), "constants",
                           FunctionType::get(context, TypeRange(), types));
  function.setPrivate();
  b.setInsertionPointToStart(function.addEntryBlock());
  IRMapping mapping;
  for (Operation *op : slice(main.getBody().front(), roots))
    b.clone(*op, mapping);
  SmallVector<Value> results;
  for (auto [root, type] : llvm::zip_equal(roots, types)) {
    Value value = mapping.lookup(root);
    if (!isa<RankedTensorType>(root.getType())) {
      Type element = cast<RankedTensorType>(type).getElementType();
      if (value.getType().isIndex())
        value = arith::IndexCastOp::create(b, root.getLoc(), element, value);
      value = tensor::FromElementsOp::create(b, root.getLoc(), type, value);
    }
    results.push_back(value);
  }
  func::ReturnOp::create(b, main.getLoc(), results);
  return function;
}

/// `tensor` (of rank 0 if the root is a scalar) as the root's own type.
static Value asRoot(OpBuilder &b, Value root, Value tensor) {
  if (tensor.getType() == root.getType())
    return tensor;
  Location loc = root.getLoc();
  Value scalar = tensor::ExtractOp::create(b, loc, tensor, ValueRange());
  if (root.getType().isIndex())
    scalar = arith::IndexCastOp::create(b, loc, b.getIndexType(), scalar);
  return scalar;
}

static Value constantFor(OpBuilder &b, Value root, ElementsAttr attr) {
  Location loc = root.getLoc();
  if (isa<RankedTensorType>(root.getType()))
    return arith::ConstantOp::create(b, loc, cast<TypedAttr>(attr));
  auto element = cast<DenseElementsAttr>(attr).getSplatValue<Attribute>();
  if (root.getType().isIndex())
    element = b.getIndexAttr(cast<IntegerAttr>(element).getInt());
  return arith::ConstantOp::create(b, loc, cast<TypedAttr>(element));
}

/// Transposed constants need no code; what is left is compiled.
static void foldTransposes(func::FuncOp main) {
  for (auto op : llvm::make_early_inc_range(
           main.getBody().front().getOps<linalg::GenericOp>())) {
    ElementsAttr value = transposedConstant(op);
    if (!value)
      continue;
    OpBuilder b(op);
    auto constant =
        arith::ConstantOp::create(b, op.getLoc(), cast<TypedAttr>(value));
    op.getResult(0).replaceAllUsesWith(constant.getResult());
    op.erase();
  }
}

LogicalResult extractConstants(ModuleOp module, bool evaluate) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  if (evaluate)
    foldTransposes(main);
  SmallVector<Value> roots = findRoots(main);
  if (roots.empty())
    return success();
  OpBuilder b = OpBuilder::atBlockBegin(&main.getBody().front());
  SmallVector<Value> values;
  if (evaluate) {
    // LLVM's instruction selection is quadratic in what one function holds.
    constexpr size_t kRootsAtOnce = 8;
    for (size_t i = 0; i < roots.size(); i += kRootsAtOnce) {
      auto some = ArrayRef(roots).drop_front(i).take_front(kRootsAtOnce);
      func::FuncOp function = buildFunction(main, some);
      llvm::Expected<SmallVector<ElementsAttr>> results =
          evaluateConstants(function);
      function.erase();
      if (!results)
        return module.emitError() << llvm::toString(results.takeError());
      for (auto [root, attr] : llvm::zip_equal(some, *results))
        values.push_back(constantFor(b, root, attr));
    }
  } else {
    func::FuncOp function = buildFunction(main, roots);
    auto call = func::CallOp::create(b, main.getLoc(), function);
    for (auto [root, result] : llvm::zip_equal(roots, call.getResults()))
      values.push_back(asRoot(b, root, result));
  }
  SmallVector<Operation *> old = slice(main.getBody().front(), roots);
  for (auto [root, value] : llvm::zip_equal(roots, values))
    root.replaceAllUsesWith(value);
  for (Operation *op : llvm::reverse(old))
    if (op->use_empty())
      op->erase();
  return success();
}

} // namespace pto::lowering
