//===- FoldBatchNorm.cpp - Per-channel affine steps into weights ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// After a contraction with constant weights, follow the chain of elementwise
// ops that are affine in its result, x -> x*a[c] + b[c], with a and b constant
// and c the loops that index the weights and the output. One generic on
// constants computes the chain's a and b (its body is the chain's, run on the
// pair (a, b) instead of x); a is multiplied into the weights, b is added.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Passes.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace pto::lowering {
namespace {

/// x*a + b, where a null `a` is 1 and a null `b` is 0.
struct Affine {
  Value a, b;
};

/// A contraction, its constant weights, and the affine ops that follow it.
struct Chain {
  linalg::GenericOp contraction;
  OpOperand *weights = nullptr;
  SmallVector<linalg::GenericOp> steps;
  SmallVector<OpOperand *> inputs; ///< Where each step takes x.
  SmallVector<unsigned> channels;  ///< Output dims that index the weights.
};

class Folder {
public:
  Folder(RewriterBase &rewriter) : rewriter(rewriter) {}
  bool fold(linalg::GenericOp contraction);

private:
  bool findChain(linalg::GenericOp contraction, Chain &chain);
  OpOperand *affineInput(linalg::GenericOp step, Value x,
                         ArrayRef<unsigned> channels);
  FailureOr<Affine> emitStep(Block *body, Value x, IRMapping &constants,
                             Affine current, OpBuilder &b);
  /// The two results are a and b; null where the chain has none.
  std::pair<Value, Value> emitCoefficients(Chain &chain);

  RewriterBase &rewriter;
  ConstantValues constants;
};

} // namespace

/// `map` of a constant operand, from the output's dims to the channel dims
/// alone; null if the operand varies along other dims.
static AffineMap channelMap(AffineMap map, ArrayRef<unsigned> channels) {
  SmallVector<AffineExpr> results;
  for (AffineExpr expr : map.getResults()) {
    if (isa<AffineConstantExpr>(expr)) {
      results.push_back(expr);
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(expr);
    auto it = dim ? llvm::find(channels, dim.getPosition()) : channels.end();
    if (it == channels.end())
      return {};
    results.push_back(
        getAffineDimExpr(it - channels.begin(), map.getContext()));
  }
  return AffineMap::get(channels.size(), 0, results, map.getContext());
}

/// Whether `body` is affine in `x`, everything else being constant.
static bool isAffineBody(Block *body, Value x) {
  llvm::SmallPtrSet<Value, 8> linear{x};
  for (Operation &op : body->without_terminator()) {
    if (op.getNumResults() != 1 || op.getNumRegions() != 0)
      return false;
    auto uses = llvm::count_if(op.getOperands(),
                               [&](Value v) { return linear.contains(v); });
    if (uses == 0)
      continue;
    bool first = linear.contains(op.getOperand(0));
    bool ok = isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op) ||
              (isa<arith::DivFOp>(op) && first) || isa<arith::NegFOp>(op);
    if (!ok || uses != 1)
      return false;
    linear.insert(op.getResult(0));
  }
  return linear.contains(body->getTerminator()->getOperand(0));
}

OpOperand *Folder::affineInput(linalg::GenericOp step, Value x,
                               ArrayRef<unsigned> channels) {
  if (!isElementwise(step) || step.getNumResults() != 1 ||
      !step.getMatchingIndexingMap(step.getDpsInitOperand(0)).isIdentity() ||
      step.getResult(0).getType() != x.getType() ||
      !step.getMatchingBlockArgument(step.getDpsInitOperand(0)).use_empty())
    return nullptr;
  OpOperand *input = nullptr;
  for (OpOperand *operand : step.getDpsInputOperands()) {
    AffineMap map = step.getMatchingIndexingMap(operand);
    if (operand->get() == x) {
      if (input || !map.isIdentity())
        return nullptr;
      input = operand;
    } else if (!constants.isConstant(operand->get()) ||
               !channelMap(map, channels)) {
      return nullptr;
    }
  }
  WalkResult captures = step->walk([&](Operation *op) {
    for (Value v : op->getOperands())
      if (op != step && !step->isAncestor(v.getParentBlock()->getParentOp()) &&
          !constants.isConstant(v))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (!input || captures.wasInterrupted() ||
      !isAffineBody(step.getBody(), step.getMatchingBlockArgument(input)))
    return nullptr;
  return input;
}

bool Folder::findChain(linalg::GenericOp contraction, Chain &chain) {
  std::optional<LoopRoles> roles = loopRoles(contraction);
  if (!roles || !contraction->hasOneUse())
    return false;
  TypedAttr init = splatValue(contraction.getDpsInits()[0]);
  auto type = cast<RankedTensorType>(contraction.getResult(0).getType());
  if (!init || !isa<FloatType>(type.getElementType()) ||
      !cast<FloatAttr>(init).getValue().isZero())
    return false;
  OpOperand *weights = contraction.getDpsInputOperand(1);
  auto weightsType = cast<RankedTensorType>(weights->get().getType());
  AffineMap weightsMap = contraction.getMatchingIndexingMap(weights);
  AffineMap outMap = contraction.getIndexingMapsArray().back();
  if (!constants.isConstant(weights->get()) || !weightsType.hasStaticShape() ||
      weightsType.getElementType() != type.getElementType() ||
      !weightsMap.isProjectedPermutation() || !outMap.isProjectedPermutation())
    return false;
  chain.contraction = contraction;
  chain.weights = weights;
  for (unsigned dim = 0; dim < outMap.getNumResults(); ++dim)
    if (weightsMap.isFunctionOfDim(outMap.getDimPosition(dim)))
      chain.channels.push_back(dim);
  if (chain.channels.empty())
    return false;

  bool scales = false;
  for (Value x = contraction.getResult(0); x.hasOneUse();) {
    auto step = dyn_cast<linalg::GenericOp>(*x.user_begin());
    OpOperand *input = step ? affineInput(step, x, chain.channels) : nullptr;
    if (!input)
      break;
    chain.steps.push_back(step);
    chain.inputs.push_back(input);
    for (Operation &op : *step.getBody())
      scales |= isa<arith::MulFOp, arith::DivFOp, arith::NegFOp>(op);
    x = step.getResult(0);
  }
  // A plain bias is as good as it gets.
  return scales;
}

/// Runs one step's body on the pair `current`. Values of `body` that do not
/// depend on x are looked up in `constants`.
FailureOr<Affine> Folder::emitStep(Block *body, Value x, IRMapping &constants,
                                   Affine current, OpBuilder &b) {
  llvm::DenseMap<Value, Affine> linear;
  linear[x] = current;
  for (Operation &op : body->without_terminator()) {
    bool lhs = op.getNumOperands() && linear.count(op.getOperand(0));
    bool rhs = op.getNumOperands() == 2 && linear.count(op.getOperand(1));
    if (!lhs && !rhs) {
      b.clone(op, constants);
      continue;
    }
    Location loc = op.getLoc();
    Affine in = linear[op.getOperand(lhs ? 0 : 1)], out = in;
    Value p;
    if (op.getNumOperands() == 2)
      p = constants.lookupOrDefault(op.getOperand(lhs ? 1 : 0));
    auto negate = [&](Value v) -> Value {
      if (!v)
        return {};
      return arith::NegFOp::create(b, loc, v);
    };
    auto one = [&]() -> Value {
      return arith::ConstantOp::create(b, loc,
                                       b.getFloatAttr(x.getType(), 1.0));
    };
    if (isa<arith::AddFOp>(op)) {
      out.b = in.b ? Value(arith::AddFOp::create(b, loc, in.b, p)) : p;
    } else if (isa<arith::SubFOp>(op) && lhs) {
      out.b = in.b ? Value(arith::SubFOp::create(b, loc, in.b, p)) : negate(p);
    } else if (isa<arith::SubFOp>(op)) {
      out.a = negate(in.a ? in.a : one());
      out.b = in.b ? Value(arith::SubFOp::create(b, loc, p, in.b)) : p;
    } else if (isa<arith::MulFOp>(op)) {
      out.a = in.a ? Value(arith::MulFOp::create(b, loc, in.a, p)) : p;
      if (in.b)
        out.b = arith::MulFOp::create(b, loc, in.b, p);
    } else if (isa<arith::DivFOp>(op) && lhs) {
      out.a = arith::DivFOp::create(b, loc, in.a ? in.a : one(), p);
      if (in.b)
        out.b = arith::DivFOp::create(b, loc, in.b, p);
    } else if (isa<arith::NegFOp>(op)) {
      out.a = negate(in.a ? in.a : one());
      out.b = negate(in.b);
    } else {
      return failure();
    }
    linear[op.getResult(0)] = out;
  }
  return linear[body->getTerminator()->getOperand(0)];
}

std::pair<Value, Value> Folder::emitCoefficients(Chain &chain) {
  auto outType =
      cast<RankedTensorType>(chain.contraction.getResult(0).getType());
  SmallVector<int64_t> shape;
  for (unsigned dim : chain.channels)
    shape.push_back(outType.getDimSize(dim));
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (auto [step, x] : llvm::zip_equal(chain.steps, chain.inputs))
    for (OpOperand *operand : step.getDpsInputOperands())
      if (operand != x) {
        operands.push_back(operand->get());
        maps.push_back(
            channelMap(step.getMatchingIndexingMap(operand), chain.channels));
      }
  Location loc = chain.steps.back().getLoc();
  Type element = outType.getElementType();
  Value empty = tensor::EmptyOp::create(rewriter, loc, shape, element);
  AffineMap identity = rewriter.getMultiDimIdentityMap(chain.channels.size());
  maps.append(2, identity);
  SmallVector<utils::IteratorType> iterators(chain.channels.size(),
                                             utils::IteratorType::parallel);
  bool hasB = false;
  auto generic = linalg::GenericOp::create(
      rewriter, loc, TypeRange{empty.getType(), empty.getType()}, operands,
      ValueRange{empty, empty}, maps, iterators,
      [&](OpBuilder &b, Location, ValueRange args) {
        Affine pair;
        size_t next = 0;
        for (auto [step, x] : llvm::zip_equal(chain.steps, chain.inputs)) {
          IRMapping mapping;
          for (OpOperand *operand : step.getDpsInputOperands())
            if (operand != x)
              mapping.map(step.getMatchingBlockArgument(operand), args[next++]);
          pair = *emitStep(step.getBody(), step.getMatchingBlockArgument(x),
                           mapping, pair, b);
        }
        hasB = static_cast<bool>(pair.b);
        auto constant = [&](double v) {
          return arith::ConstantOp::create(b, loc, b.getFloatAttr(element, v));
        };
        Value a = pair.a ? pair.a : Value(constant(1.0));
        Value bias = pair.b ? pair.b : Value(constant(0.0));
        linalg::YieldOp::create(b, loc, ValueRange{a, bias});
      });
  return {generic.getResult(0), hasB ? generic.getResult(1) : Value()};
}

bool Folder::fold(linalg::GenericOp contraction) {
  Chain chain;
  if (!findChain(contraction, chain))
    return false;
  // Everything that the chain's ops use is defined before its last op.
  linalg::GenericOp last = chain.steps.back();
  rewriter.setInsertionPoint(last);
  auto [a, b] = emitCoefficients(chain);
  Location loc = last.getLoc();

  AffineMap weightsMap = contraction.getMatchingIndexingMap(chain.weights);
  AffineMap outMap = contraction.getIndexingMapsArray().back();
  auto weightsType = cast<RankedTensorType>(chain.weights->get().getType());
  unsigned rank = weightsType.getRank();
  SmallVector<AffineExpr> scaleDims;
  for (unsigned dim : chain.channels)
    scaleDims.push_back(rewriter.getAffineDimExpr(*weightsMap.getResultPosition(
        rewriter.getAffineDimExpr(outMap.getDimPosition(dim)))));
  AffineMap scaleMap =
      AffineMap::get(rank, 0, scaleDims, rewriter.getContext());
  AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
  Value empty = tensor::EmptyOp::create(rewriter, loc, weightsType.getShape(),
                                        weightsType.getElementType());
  auto scaled = linalg::GenericOp::create(
      rewriter, loc, TypeRange{weightsType},
      ValueRange{chain.weights->get(), a}, ValueRange{empty},
      ArrayRef<AffineMap>{identity, scaleMap, identity},
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [](OpBuilder &b, Location loc, ValueRange args) {
        Value product = arith::MulFOp::create(b, loc, args[0], args[1]);
        linalg::YieldOp::create(b, loc, product);
      });
  auto folded = cast<linalg::GenericOp>(rewriter.clone(*contraction));
  folded->setOperand(chain.weights->getOperandNumber(), scaled.getResult(0));
  Value result = folded.getResult(0);
  if (b) {
    unsigned outRank = outMap.getNumResults();
    SmallVector<AffineExpr> dims;
    for (unsigned dim : chain.channels)
      dims.push_back(rewriter.getAffineDimExpr(dim));
    AffineMap all = rewriter.getMultiDimIdentityMap(outRank);
    // Any tensor of the right type serves as destination.
    Value destination = last.getDpsInits()[0];
    result =
        linalg::GenericOp::create(
            rewriter, loc, TypeRange{result.getType()}, ValueRange{result, b},
            ValueRange{destination},
            ArrayRef<AffineMap>{
                all, AffineMap::get(outRank, 0, dims, rewriter.getContext()),
                all},
            SmallVector<utils::IteratorType>(outRank,
                                             utils::IteratorType::parallel),
            [](OpBuilder &b, Location loc, ValueRange args) {
              Value sum = arith::AddFOp::create(b, loc, args[0], args[1]);
              linalg::YieldOp::create(b, loc, sum);
            })
            .getResult(0);
  }
  rewriter.replaceOp(last, result);
  for (linalg::GenericOp step :
       llvm::reverse(ArrayRef(chain.steps).drop_back()))
    rewriter.eraseOp(step);
  rewriter.eraseOp(contraction);
  constants = ConstantValues();
  return true;
}

LogicalResult foldBatchNorm(ModuleOp module) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  IRRewriter rewriter(module.getContext());
  Folder folder(rewriter);
  SmallVector<linalg::GenericOp> contractions;
  for (auto generic : main.getBody().front().getOps<linalg::GenericOp>())
    if (isMultiplyAdd(generic))
      contractions.push_back(generic);
  for (linalg::GenericOp contraction : contractions)
    folder.fold(contraction);
  return success();
}

} // namespace pto::lowering
