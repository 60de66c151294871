//===- MergeElementwise.cpp - Several elementwise ops as one --------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/MergeElementwise.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace pto::lowering {
namespace {

/// An operand of the merged op: a value and how it is walked.
struct Input {
  Value value;
  AffineMap map;
  bool operator==(const Input &other) const {
    return value == other.value && map == other.map;
  }
};

} // namespace

/// The operands of `op` that its body reads: inputs, and inits that are read.
static SmallVector<OpOperand *> readOperands(linalg::GenericOp op) {
  SmallVector<OpOperand *> operands = op.getDpsInputOperands();
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!op.getMatchingBlockArgument(&init).use_empty())
      operands.push_back(&init);
  return operands;
}

linalg::GenericOp mergeElementwise(RewriterBase &rewriter,
                                   ArrayRef<linalg::GenericOp> ops) {
  linalg::GenericOp last = ops.back();
  llvm::DenseSet<Value> inside;
  for (linalg::GenericOp op : ops)
    inside.insert(op.getResult(0));
  SmallVector<Input> inputs;
  for (linalg::GenericOp op : ops)
    for (OpOperand *operand : readOperands(op)) {
      Input input{operand->get(), op.getMatchingIndexingMap(operand)};
      if (!inside.contains(input.value) && !splatValue(input.value) &&
          !llvm::is_contained(inputs, input))
        inputs.push_back(input);
    }

  rewriter.setInsertionPoint(last);
  Value destination = last.getDpsInits()[0];
  if (!destination.getDefiningOp<tensor::EmptyOp>())
    destination = tensor::EmptyOp::create(
        rewriter, last.getLoc(),
        tensor::getMixedSizes(rewriter, last.getLoc(), destination),
        cast<RankedTensorType>(destination.getType()).getElementType());
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (const Input &input : inputs) {
    operands.push_back(input.value);
    maps.push_back(input.map);
  }
  maps.push_back(last.getIndexingMapsArray().back());
  auto merged = linalg::GenericOp::create(
      rewriter, last.getLoc(), last->getResultTypes(), operands,
      ValueRange{destination}, maps, last.getIteratorTypesArray(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        llvm::DenseMap<Value, Value> scalars; ///< Inner results by tensor.
        Value yielded;
        for (linalg::GenericOp op : ops) {
          IRMapping mapping;
          for (OpOperand *operand : readOperands(op)) {
            Value scalar = scalars.lookup(operand->get());
            if (!scalar) {
              if (TypedAttr splat = splatValue(operand->get()))
                scalar = arith::ConstantOp::create(b, op.getLoc(), splat);
              else
                scalar =
                    args[llvm::find(inputs,
                                    Input{operand->get(),
                                          op.getMatchingIndexingMap(operand)}) -
                         inputs.begin()];
            }
            mapping.map(op.getMatchingBlockArgument(operand), scalar);
          }
          for (Operation &inner : op.getBody()->without_terminator())
            b.clone(inner, mapping);
          yielded = mapping.lookupOrDefault(
              op.getBody()->getTerminator()->getOperand(0));
          scalars[op.getResult(0)] = yielded;
        }
        linalg::YieldOp::create(b, loc, yielded);
      });
  rewriter.replaceOp(last, merged->getResults());
  for (linalg::GenericOp op : llvm::reverse(ops.drop_back()))
    rewriter.eraseOp(op);
  return merged;
}

} // namespace pto::lowering
