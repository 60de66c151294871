//===- SizeChecks.cpp - Sizes that must agree when a model runs -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/SizeChecks.h"
#include "lowering/onnx/Shapes.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <set>

using namespace mlir;

namespace pto::lowering {

using Predicate = arith::CmpIPredicate;

static void assertThat(OpBuilder &b, Location loc, Value holds,
                       const Twine &message) {
  cf::AssertOp::create(b, loc, holds, message.str());
}

std::string nodePrefix(Location loc) {
  auto name = dyn_cast<NameLoc>(loc);
  return name ? "node '" + name.getName().str() + "': " : std::string();
}

bool requireSizes(OpBuilder &b, Location loc, Predicate predicate,
                  OpFoldResult x, OpFoldResult y, StringRef message) {
  auto kx = known(x), ky = known(y);
  if (kx && ky)
    return arith::applyCmpPredicate(predicate, APInt(64, *kx, true),
                                    APInt(64, *ky, true));
  if (x == y && (predicate == Predicate::eq || predicate == Predicate::sle ||
                 predicate == Predicate::sge))
    return true;
  Value holds = b.createOrFold<arith::CmpIOp>(
      loc, predicate, getValueOrCreateConstantIndexOp(b, loc, x),
      getValueOrCreateConstantIndexOp(b, loc, y));
  assertThat(b, loc, holds, message);
  return true;
}

namespace {

class Checker {
public:
  explicit Checker(func::FuncOp main) : main(main), b(main.getContext()) {}

  LogicalResult run() {
    SmallVector<Operation *> ops;
    for (Operation &op : main.getBody().front())
      ops.push_back(&op);
    for (Operation *op : ops) {
      b.setInsertionPoint(op);
      visit(op);
      if (failed)
        return failure();
    }
    return success();
  }

private:
  void visit(Operation *op) {
    if (isDivision(op))
      return require(op, Predicate::ne, op->getOperand(1), b.getIndexAttr(0),
                     "a size is divided by the size 0");
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      return visitLinalg(linalgOp);
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      return visitSlice(op, sizesOf(b, op->getLoc(), slice.getSource()),
                        slice.getMixedOffsets(), slice.getMixedSizes(),
                        slice.getMixedStrides());
    if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
      return visitSlice(op, sizesOf(b, op->getLoc(), slice.getDest()),
                        slice.getMixedOffsets(), slice.getMixedSizes(),
                        slice.getMixedStrides());
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      Sizes source = sizesOf(b, op->getLoc(), expand.getSrc()),
            result = expand.getMixedOutputShape();
      for (auto [size, group] :
           llvm::zip(source, expand.getReassociationIndices())) {
        OpFoldResult count = b.getIndexAttr(1);
        for (int64_t d : group)
          count = mulSizes(b, op->getLoc(), count, result[d]);
        if (!sameProduct(size, count))
          require(op, Predicate::eq, size, count,
                  "a reshape changes the number of elements");
      }
      return requireSizesNotNegative(op, result);
    }
    if (auto cast = dyn_cast<tensor::CastOp>(op)) {
      auto type = dyn_cast<RankedTensorType>(cast.getType());
      if (!type)
        return;
      for (auto [d, size] :
           llvm::enumerate(sizesOf(b, op->getLoc(), cast.getSource())))
        if (!type.isDynamicDim(d))
          require(op, Predicate::eq, size, b.getIndexAttr(type.getDimSize(d)),
                  "dim " + std::to_string(d) + " must be " +
                      std::to_string(type.getDimSize(d)));
      return;
    }
    if (auto empty = dyn_cast<tensor::EmptyOp>(op))
      return requireSizesNotNegative(op, empty.getMixedSizes());
    if (auto pad = dyn_cast<tensor::PadOp>(op)) {
      requireSizesNotNegative(op, pad.getMixedLowPad());
      requireSizesNotNegative(op, pad.getMixedHighPad());
    }
  }

  static bool isDivision(Operation *op) {
    return isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
               arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemSIOp,
               arith::RemUIOp>(op) &&
           op->getResult(0).getType().isIndex() && !known(op->getOperand(1));
  }

  /// Loops that an operand walks alone have its size.
  void visitLinalg(linalg::LinalgOp op) {
    if (llvm::all_of(op->getOperandTypes(), [](Type type) {
          auto shaped = dyn_cast<ShapedType>(type);
          return !shaped || shaped.hasStaticShape();
        }))
      return;
    SmallVector<OpFoldResult> loops(op.getNumLoops());
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType()))
        continue;
      Sizes sizes = sizesOf(b, op.getLoc(), operand.get());
      AffineMap map = op.getMatchingIndexingMap(&operand);
      for (auto [d, expr] : llvm::enumerate(map.getResults())) {
        auto dim = dyn_cast<AffineDimExpr>(expr);
        if (!dim)
          continue;
        OpFoldResult &loop = loops[dim.getPosition()];
        if (!loop)
          loop = sizes[d];
        require(op, Predicate::eq, loop, sizes[d],
                "sizes of its inputs do not fit each other");
        // The more that is known, the better for the next.
        if (known(sizes[d]))
          loop = sizes[d];
      }
    }
  }

  void visitSlice(Operation *op, ArrayRef<OpFoldResult> whole,
                  ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                  ArrayRef<OpFoldResult> strides) {
    Location loc = op->getLoc();
    requireSizesNotNegative(op, sizes);
    for (auto [dim, offset, size, stride] :
         llvm::zip(whole, offsets, sizes, strides)) {
      if (known(offset) == 0 && known(stride) == 1) {
        require(op, Predicate::sle, size, dim,
                "a slice is larger than its source");
        continue;
      }
      if (known(size) == 0)
        continue;
      requireSizesNotNegative(op, {offset});
      // offset + (size - 1) * stride < dim, unless there is nothing to read.
      OpFoldResult last = addSizes(
          b, loc, offset,
          mulSizes(b, loc, subSizes(b, loc, size, b.getIndexAttr(1)), stride));
      if (known(last) && known(dim)) {
        require(op, Predicate::slt, last, dim, "a slice ends outside");
        continue;
      }
      Value inside = b.createOrFold<arith::CmpIOp>(
          loc, Predicate::slt, getValueOrCreateConstantIndexOp(b, loc, last),
          getValueOrCreateConstantIndexOp(b, loc, dim));
      Value none = b.createOrFold<arith::CmpIOp>(
          loc, Predicate::eq, getValueOrCreateConstantIndexOp(b, loc, size),
          arith::ConstantIndexOp::create(b, loc, 0));
      assertThat(b, loc, b.createOrFold<arith::OrIOp>(loc, inside, none),
                 nodePrefix(op->getLoc()) + "a slice ends outside");
    }
  }

  void requireSizesNotNegative(Operation *op, ArrayRef<OpFoldResult> sizes) {
    for (OpFoldResult size : sizes)
      if (!nonNegative(size))
        require(op, Predicate::sge, size, b.getIndexAttr(0),
                "a size is negative");
  }

  void require(Operation *op, Predicate predicate, OpFoldResult x,
               OpFoldResult y, StringRef message) {
    std::string text = nodePrefix(op->getLoc()) + message.str();
    if (checked(op, predicate, x, y) ||
        requireSizes(b, op->getLoc(), predicate, x, y, text))
      return;
    op->emitError(message);
    failed = true;
  }

  /// The same condition on the same values needs one check.
  bool checked(Operation *op, Predicate predicate, OpFoldResult x,
               OpFoldResult y) {
    auto key = [](OpFoldResult v) -> std::pair<void *, int64_t> {
      if (auto k = known(v))
        return {nullptr, *k};
      return {cast<Value>(v).getAsOpaquePointer(), 0};
    };
    return !seen.insert({predicate, key(x), key(y)}).second;
  }

  static void factors(OpFoldResult size, int64_t &constant,
                      SmallVectorImpl<void *> &values) {
    if (auto k = known(size)) {
      constant *= *k;
      return;
    }
    if (auto mul = cast<Value>(size).getDefiningOp<arith::MulIOp>()) {
      factors(getAsOpFoldResult(mul.getLhs()), constant, values);
      factors(getAsOpFoldResult(mul.getRhs()), constant, values);
      return;
    }
    values.push_back(cast<Value>(size).getAsOpaquePointer());
  }

  static bool sameProduct(OpFoldResult x, OpFoldResult y) {
    int64_t cx = 1, cy = 1;
    SmallVector<void *> vx, vy;
    factors(x, cx, vx);
    factors(y, cy, vy);
    llvm::sort(vx);
    llvm::sort(vy);
    return cx == cy && vx == vy && !vx.empty();
  }

  func::FuncOp main;
  OpBuilder b;
  bool failed = false;
  std::set<std::tuple<Predicate, std::pair<void *, int64_t>,
                      std::pair<void *, int64_t>>>
      seen;
};

} // namespace

LogicalResult addSizeChecks(func::FuncOp main) { return Checker(main).run(); }

} // namespace pto::lowering
