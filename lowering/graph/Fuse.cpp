//===- Fuse.cpp - Which ops make one kernel -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A group is an anchor plus elementwise ops after it, plus the padding in
// front of it. It may show one value to the outside, of the anchor's shape;
// that also keeps groups from depending on each other in a circle. Anchors are
// taken last first, so that a residual sum goes to the later convolution.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/MergeElementwise.h"
#include "lowering/graph/Passes.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace pto::lowering {
namespace {

class GroupFormer {
public:
  GroupFormer(func::FuncOp main, bool fuse) : main(main), fuse(fuse) {}
  void run();

private:
  using Group = llvm::SetVector<Operation *>;
  SmallVector<Operation *> ungrouped();
  void growForward(Group &group, linalg::GenericOp anchor);
  bool isEpilogue(Operation *op, const Group &group);
  /// The number of values of `group` with users outside of it.
  unsigned countExposed(const Group &group);
  /// Padding of the anchor's inputs, copied so that it has one user.
  void takePadding(Group &group, linalg::GenericOp anchor);
  void finish(const Group &group);
  void mergeGroups();

  func::FuncOp main;
  bool fuse;
  int64_t nextGroup = 0;
};

/// Growing gives up on sets of so many ops that still show several values.
constexpr size_t kMaxPending = 64;

} // namespace

static bool isGrouped(Operation *op) { return op->hasAttr("pto.group"); }

/// Whether `op` becomes a kernel; the rest of @main is sizes, constants,
/// destinations and free reshapes.
static bool needsKernel(Operation *op) {
  if (isa<tensor::EmptyOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
          tensor::CastOp, tensor::DimOp, func::CallOp>(op) ||
      op->hasTrait<OpTrait::IsTerminator>() ||
      op->hasTrait<OpTrait::ConstantLike>())
    return false;
  return llvm::any_of(op->getResultTypes(),
                      [](Type type) { return isa<RankedTensorType>(type); });
}

/// A fill that every user takes as its destination is made by its users.
static bool isDestinationFill(Operation *op) {
  if (!isa<linalg::FillOp>(op))
    return false;
  return llvm::all_of(op->getUses(), [](OpOperand &use) {
    auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
    return user && user.isDpsInit(&use);
  });
}

bool GroupFormer::isEpilogue(Operation *op, const Group &group) {
  if (isGrouped(op) || !isElementwise(op) || op->getNumResults() != 1)
    return false;
  auto generic = cast<linalg::GenericOp>(op);
  if (!generic.getIndexingMapsArray().back().isIdentity())
    return false;
  auto inGroup = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return def && group.contains(def);
  };
  bool uses = false;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!inGroup(operand.get()))
      continue;
    if (!generic.isDpsInput(&operand) ||
        !generic.getMatchingIndexingMap(&operand).isIdentity() ||
        cast<RankedTensorType>(operand.get().getType()).getShape() !=
            cast<RankedTensorType>(op->getResult(0).getType()).getShape())
      return false;
    uses = true;
  }
  // A body that looks values up (tensor.extract) needs all of them at once.
  for (Operation &inner : *generic.getBody())
    if (llvm::any_of(inner.getOperands(), inGroup))
      return false;
  return uses;
}

unsigned GroupFormer::countExposed(const Group &group) {
  Block &block = main.getBody().front();
  unsigned count = 0;
  for (Operation *op : group)
    for (Value result : op->getResults())
      count += llvm::any_of(result.getUsers(), [&](Operation *user) {
        return !group.contains(block.findAncestorOpInBlock(*user));
      });
  return count;
}

void GroupFormer::growForward(Group &group, linalg::GenericOp anchor) {
  if (anchor.getNumResults() != 1 ||
      !anchor.getIndexingMapsArray().back().isProjectedPermutation())
    return;
  Group candidate = group;
  for (Operation *op = anchor->getNextNode();
       op && candidate.size() < group.size() + kMaxPending;
       op = op->getNextNode()) {
    if (!isEpilogue(op, candidate))
      continue;
    candidate.insert(op);
    if (countExposed(candidate) <= 1)
      group = candidate;
  }
}

void GroupFormer::takePadding(Group &group, linalg::GenericOp anchor) {
  OpKind kind = opKind(anchor);
  if (kind != OpKind::Convolution && kind != OpKind::Depthwise &&
      kind != OpKind::Window)
    return;
  OpOperand *input = anchor.getDpsInputOperand(0);
  auto pad = input->get().getDefiningOp<tensor::PadOp>();
  if (!pad || !pad.getConstantPaddingValue())
    return;
  if (!pad->hasOneUse()) {
    OpBuilder b(anchor);
    pad = cast<tensor::PadOp>(b.clone(*pad));
    input->set(pad.getResult());
  }
  group.insert(pad);
}

void GroupFormer::finish(const Group &group) {
  Attribute id =
      IntegerAttr::get(IntegerType::get(main.getContext(), 64), nextGroup++);
  for (Operation *op : group)
    op->setAttr("pto.group", id);
}

SmallVector<Operation *> GroupFormer::ungrouped() {
  SmallVector<Operation *> ops;
  for (Operation &op : main.getBody().front())
    if (!isGrouped(&op) && needsKernel(&op) && !isDestinationFill(&op))
      ops.push_back(&op);
  return ops;
}

/// The elementwise ops of each group become one, which is also where operands
/// of one value become scalars.
void GroupFormer::mergeGroups() {
  SmallVector<SmallVector<linalg::GenericOp>> epilogues(nextGroup);
  for (Operation &op : main.getBody().front())
    if (isGrouped(&op) && isElementwise(&op) && op.getNumResults() == 1) {
      auto generic = cast<linalg::GenericOp>(op);
      if (generic.getIndexingMapsArray().back().isIdentity())
        epilogues[op.getAttrOfType<IntegerAttr>("pto.group").getInt()]
            .push_back(generic);
    }
  IRRewriter rewriter(main.getContext());
  for (ArrayRef<linalg::GenericOp> ops : epilogues) {
    if (ops.empty())
      continue;
    Attribute id = ops.front()->getAttr("pto.group");
    mergeElementwise(rewriter, ops)->setAttr("pto.group", id);
  }
}

void GroupFormer::run() {
  if (fuse) {
    for (bool anchors : {true, false})
      for (Operation *op : anchors ? llvm::to_vector(llvm::reverse(ungrouped()))
                                   : ungrouped()) {
        auto generic = dyn_cast<linalg::GenericOp>(op);
        if (!generic || isGrouped(op) || isElementwise(op) == anchors)
          continue;
        Group group;
        group.insert(op);
        takePadding(group, generic);
        growForward(group, generic);
        finish(group);
      }
  }
  for (Operation *op : ungrouped()) {
    Group group;
    group.insert(op);
    finish(group);
  }
  mergeGroups();
}

LogicalResult formGroups(ModuleOp module, bool fuse) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  GroupFormer(main, fuse).run();
  return success();
}

} // namespace pto::lowering
