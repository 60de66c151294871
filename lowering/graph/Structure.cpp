//===- Structure.cpp - What an op is, judged by its structure -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace pto::lowering {

bool isElementwise(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumReductionLoops() != 0 ||
      !isMemoryEffectFree(op))
    return false;
  for (OpOperand &init : generic.getDpsInitsMutable())
    if (!generic.getMatchingIndexingMap(&init).isPermutation())
      return false;
  return generic.getNumResults() != 0;
}

/// The value behind casts that keep a factor's value.
static Value skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp, arith::SIToFPOp,
             arith::UIToFPOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool isMultiplyAdd(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  Block *body = op.getBody();
  Operation *add = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!add || !isa<arith::AddFOp, arith::AddIOp>(add))
    return false;
  Value out = body->getArgument(2);
  Value product = add->getOperand(0) == out   ? add->getOperand(1)
                  : add->getOperand(1) == out ? add->getOperand(0)
                                              : Value();
  Operation *mul = product ? product.getDefiningOp() : nullptr;
  if (!mul || !isa<arith::MulFOp, arith::MulIOp>(mul))
    return false;
  Value lhs = skipCasts(mul->getOperand(0)),
        rhs = skipCasts(mul->getOperand(1));
  Value in0 = body->getArgument(0), in1 = body->getArgument(1);
  return (lhs == in0 && rhs == in1) || (lhs == in1 && rhs == in0);
}

static bool hasWindow(linalg::GenericOp op) {
  for (AffineMap map : op.getIndexingMapsArray())
    for (AffineExpr expr : map.getResults())
      if (!isa<AffineDimExpr, AffineConstantExpr>(expr))
        return true;
  return false;
}

OpKind opKind(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return OpKind::Other;
  if (isElementwise(op))
    return OpKind::Elementwise;
  if (generic.getNumReductionLoops() == 0)
    return OpKind::Other;
  bool window = hasWindow(generic);
  std::optional<LoopRoles> roles = loopRoles(generic);
  if (!roles)
    return window ? OpKind::Window : OpKind::Reduction;
  // Without rows or columns of its own an operand is used once: a dot product.
  if (!window)
    return roles->batch.empty() && roles->out.empty() ? OpKind::Reduction
                                                      : OpKind::Contraction;
  return roles->in.empty() && roles->out.empty() ? OpKind::Depthwise
                                                 : OpKind::Convolution;
}

std::optional<LoopRoles> loopRoles(linalg::GenericOp op) {
  if (!isMultiplyAdd(op))
    return std::nullopt;
  auto maps = op.getIndexingMapsArray();
  auto iterators = op.getIteratorTypesArray();
  LoopRoles roles;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    bool parallel = iterators[loop] == utils::IteratorType::parallel;
    bool lhs = maps[0].isFunctionOfDim(loop);
    bool rhs = maps[1].isFunctionOfDim(loop);
    bool composed = llvm::any_of(maps[0].getResults(), [&](AffineExpr expr) {
      return expr.isFunctionOfDim(loop) && !isa<AffineDimExpr>(expr);
    });
    if (parallel != maps[2].isFunctionOfDim(loop))
      return std::nullopt;
    if (composed) {
      (parallel ? roles.image : roles.window).push_back(loop);
      continue;
    }
    if (!parallel)
      roles.in.push_back(loop);
    else if (lhs && rhs)
      roles.channel.push_back(loop);
    else if (lhs)
      roles.batch.push_back(loop);
    else if (rhs)
      roles.out.push_back(loop);
    else
      return std::nullopt;
  }
  return roles;
}

bool ConstantValues::isConstant(Value value) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  bool constant = false;
  if (op && op->hasTrait<OpTrait::ConstantLike>()) {
    constant = true;
  } else if (op && isMemoryEffectFree(op)) {
    constant = true;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *owner = operand.getParentBlock()->getParentOp();
        bool local = op->isAncestor(owner);
        if (!local && !isConstant(operand)) {
          constant = false;
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
  }
  known[value] = constant;
  return constant;
}

TypedAttr splatValue(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      Attribute attr;
      if (matchPattern(fill.getInputs()[0], m_Constant(&attr)))
        return dyn_cast<TypedAttr>(attr);
      return {};
    }
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(
            op))
      break;
    value = op->getOperand(0);
  }
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
    return {};
  return dyn_cast<TypedAttr>(elements.getSplatValue<Attribute>());
}

Operation *findMain(Operation *module) {
  auto main = cast<ModuleOp>(module).lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal() || !main.getBody().hasOneBlock()) {
    module->emitError("the module has no function @main with one block");
    return nullptr;
  }
  return main;
}

} // namespace pto::lowering
