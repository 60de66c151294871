//===- Fuse.cpp - Which ops make one kernel -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A group is an anchor, the elementwise ops after it, what only these read, and
// the padding in front of it. It may show one value to the outside, of the
// anchor's shape; that also keeps groups from depending on each other in a
// circle. Anchors are taken last first, so that a residual sum goes to the
// later convolution. A plain reduction also takes the elementwise ops in front
// of it into its body. Ops that work row by row (RowWise.h) are one group with
// several reductions.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/MergeElementwise.h"
#include "lowering/graph/Passes.h"
#include "lowering/graph/RowWise.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
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
  /// Elementwise ops that only the group's elementwise ops read.
  void growBackward(Group &group);
  /// Elementwise ops that only the reduction `anchor` reads.
  void takePrologue(Group &group, linalg::GenericOp anchor);
  /// The number of values of `group` with users outside of it.
  unsigned countExposed(const Group &group);
  /// Padding of the anchor's inputs, copied so that it has one user.
  void takePadding(Group &group, linalg::GenericOp anchor);
  /// The ops that work on rows like the reduction `first`.
  Group growRows(linalg::GenericOp first);
  void mark(const Group &group, int64_t id);
  void simplifyRows();
  void mergePrologues();
  void mergeEpilogues();

  func::FuncOp main;
  bool fuse;
  int64_t nextGroup = 0;
};

/// Marks what merges into a reduction's body.
constexpr const char *kPrologue = "pto.prologue";

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

/// Whether `user` reads `value` element by element, in the same order, and
/// has that shape.
static bool readsInPlace(linalg::GenericOp user, Value value) {
  for (OpOperand &operand : user->getOpOperands())
    if (operand.get() == value &&
        (!user.isDpsInput(&operand) ||
         !user.getMatchingIndexingMap(&operand).isIdentity() ||
         cast<RankedTensorType>(value.getType()).getShape() !=
             cast<RankedTensorType>(user.getResult(0).getType()).getShape()))
      return false;
  // A body that looks values up (tensor.extract) needs all of them at once.
  for (Operation &inner : *user.getBody())
    if (llvm::is_contained(inner.getOperands(), value))
      return false;
  return true;
}

/// An elementwise op that can be merged with others of its shape.
static bool isMergeable(Operation *op) {
  return isElementwise(op) && op->getNumResults() == 1 &&
         cast<linalg::GenericOp>(op).getIndexingMapsArray().back().isIdentity();
}

bool GroupFormer::isEpilogue(Operation *op, const Group &group) {
  if (isGrouped(op) || !isMergeable(op))
    return false;
  bool uses = false;
  for (Operation *member : group)
    for (Value result : member->getResults()) {
      Block &block = main.getBody().front();
      if (llvm::none_of(result.getUsers(), [&](Operation *user) {
            return block.findAncestorOpInBlock(*user) == op;
          }))
        continue;
      if (!readsInPlace(cast<linalg::GenericOp>(op), result))
        return false;
      uses = true;
    }
  return uses;
}

void GroupFormer::growBackward(Group &group) {
  SmallVector<Operation *> worklist(group.begin(), group.end());
  while (!worklist.empty()) {
    Operation *member = worklist.pop_back_val();
    if (!isMergeable(member))
      continue;
    for (Value operand : member->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def || group.contains(def) || isGrouped(def) || !isMergeable(def))
        continue;
      if (llvm::all_of(def->getUsers(), [&](Operation *user) {
            return group.contains(user) && isMergeable(user) &&
                   readsInPlace(cast<linalg::GenericOp>(user), operand);
          })) {
        group.insert(def);
        worklist.push_back(def);
      }
    }
  }
}

void GroupFormer::takePrologue(Group &group, linalg::GenericOp anchor) {
  if (opKind(anchor) != OpKind::Reduction)
    return;
  SmallVector<linalg::GenericOp> worklist{anchor};
  while (!worklist.empty()) {
    linalg::GenericOp user = worklist.pop_back_val();
    for (OpOperand *operand : user.getDpsInputOperands()) {
      Operation *def = operand->get().getDefiningOp();
      if (!def || isGrouped(def) || group.contains(def) || !isMergeable(def) ||
          !def->hasOneUse() ||
          !user.getMatchingIndexingMap(operand).isProjectedPermutation())
        continue;
      def->setAttr(kPrologue, UnitAttr::get(main.getContext()));
      group.insert(def);
      worklist.push_back(cast<linalg::GenericOp>(def));
    }
  }
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

void GroupFormer::mark(const Group &group, int64_t id) {
  Attribute attr =
      IntegerAttr::get(IntegerType::get(main.getContext(), 64), id);
  for (Operation *op : group)
    op->setAttr("pto.group", attr);
}

SmallVector<Operation *> GroupFormer::ungrouped() {
  SmallVector<Operation *> ops;
  for (Operation &op : main.getBody().front())
    if (!isGrouped(&op) && needsKernel(&op) && !isDestinationFill(&op))
      ops.push_back(&op);
  return ops;
}

GroupFormer::Group GroupFormer::growRows(linalg::GenericOp first) {
  Group group = findRowRegion(
      first, [](Operation *op) { return !isGrouped(op); },
      [this](const Group &set) { return countExposed(set); });
  for (Operation *op : group)
    op->setAttr(kRowOp, UnitAttr::get(main.getContext()));
  return group;
}

void GroupFormer::simplifyRows() {
  SmallVector<Group> regions(nextGroup);
  for (Operation &op : main.getBody().front())
    if (op.hasAttr(kRowOp))
      regions[op.getAttrOfType<IntegerAttr>("pto.group").getInt()].insert(&op);
  IRRewriter rewriter(main.getContext());
  for (Group &region : regions)
    if (!region.empty())
      for (linalg::GenericOp op : simplifyRowRegion(rewriter, region))
        op->setAttr(kPrologue, rewriter.getUnitAttr());
}

/// Elementwise ops in front of a reduction move into its body.
void GroupFormer::mergePrologues() {
  IRRewriter rewriter(main.getContext());
  SmallVector<Operation *> prologues;
  for (Operation &op : main.getBody().front())
    if (op.hasAttr(kPrologue))
      prologues.push_back(&op);
  for (Operation *op : llvm::reverse(prologues)) {
    // x*x reads x once.
    DictionaryAttr own = op->getDiscardableAttrDictionary();
    op = mergeElementwise(rewriter, cast<linalg::GenericOp>(op));
    OpOperand &use = *op->use_begin();
    auto user = cast<linalg::GenericOp>(use.getOwner());
    DictionaryAttr attrs = user->getDiscardableAttrDictionary();
    rewriter.setInsertionPoint(user);
    auto fused = linalg::areElementwiseOpsFusable(&use)
                     ? linalg::fuseElementwiseOps(rewriter, &use)
                     : FailureOr<linalg::ElementwiseOpFusionResult>();
    if (failed(fused)) {
      // A kernel of its own after all, or an op of its own among its rows.
      op->setDiscardableAttrs(own);
      op->removeAttr(kPrologue);
      if (!op->hasAttr(kRowOp))
        op->setAttr("pto.group", rewriter.getI64IntegerAttr(nextGroup++));
      continue;
    }
    fused->fusedOp->setDiscardableAttrs(attrs);
    for (auto [from, to] : fused->replacements)
      if (from.getDefiningOp() == user)
        rewriter.replaceAllUsesWith(from, to);
    rewriter.eraseOp(user);
    rewriter.eraseOp(op);
  }
}

/// The elementwise ops of each group become one, which is also where operands
/// of one value become scalars.
void GroupFormer::mergeEpilogues() {
  SmallVector<SmallVector<linalg::GenericOp>> epilogues(nextGroup);
  for (Operation &op : main.getBody().front())
    if (isGrouped(&op) && isMergeable(&op) && !op.hasAttr(kRowOp))
      epilogues[op.getAttrOfType<IntegerAttr>("pto.group").getInt()].push_back(
          cast<linalg::GenericOp>(op));
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
    SmallVector<Group> anchored;
    for (Operation *op : llvm::to_vector(llvm::reverse(ungrouped()))) {
      auto anchor = dyn_cast<linalg::GenericOp>(op);
      if (!anchor || isElementwise(op) || isRowReduction(op))
        continue;
      Group group;
      group.insert(op);
      takePadding(group, anchor);
      growForward(group, anchor);
      mark(group, nextGroup++);
      anchored.push_back(group);
    }
    for (Operation *op : ungrouped()) {
      if (isGrouped(op) || !isRowReduction(op))
        continue;
      auto first = cast<linalg::GenericOp>(op);
      if (Group rows = growRows(first); !rows.empty())
        mark(rows, nextGroup++);
    }
    for (Operation *op : llvm::to_vector(llvm::reverse(ungrouped()))) {
      if (!isRowReduction(op))
        continue;
      Group group;
      group.insert(op);
      growForward(group, cast<linalg::GenericOp>(op));
      mark(group, nextGroup++);
      anchored.push_back(group);
    }
    // What an anchor left over may still go to the next one.
    for (Group &group : anchored) {
      int64_t id =
          group.front()->getAttrOfType<IntegerAttr>("pto.group").getInt();
      takePrologue(group, cast<linalg::GenericOp>(group.front()));
      growBackward(group);
      mark(group, id);
    }
    for (Operation *op : ungrouped()) {
      if (isGrouped(op) || !isElementwise(op))
        continue;
      Group group;
      group.insert(op);
      growForward(group, cast<linalg::GenericOp>(op));
      growBackward(group);
      mark(group, nextGroup++);
    }
  }
  for (Operation *op : ungrouped()) {
    Group group;
    group.insert(op);
    mark(group, nextGroup++);
  }
  simplifyRows();
  mergePrologues();
  mergeEpilogues();
}

LogicalResult formGroups(ModuleOp module, bool fuse) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  GroupFormer(main, fuse).run();
  return success();
}

} // namespace pto::lowering
