//===- RowWise.cpp - Softmax and normalisations as one kernel -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/RowWise.h"
#include "lowering/graph/MergeElementwise.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace pto::lowering {
namespace {

/// Growing gives up on sets of so many ops that still show several values.
constexpr size_t kMaxPending = 64;

/// What a member of a region computes.
enum class Part { None, Whole, Rows, Reduction };

class Region {
public:
  explicit Region(linalg::GenericOp first)
      : loops(first.getNumLoops()), rows(first.getNumParallelLoops()) {
    SmallVector<int64_t> ranges = first.getStaticLoopRanges();
    wholeShape = ranges;
    rowShape.assign(ranges.begin(), ranges.begin() + rows);
  }
  /// What `op` would be in the region, by its shape.
  Part partOf(Operation *op) const;
  /// Whether `op` reads `value`, the result of a member, as rows are.
  bool readsByRow(linalg::GenericOp op, Value value, Part valuePart) const;
  /// Whether `op` uses members of `set`, and all of them by row.
  bool belongs(Operation *op, const OpSet &set) const;

private:
  unsigned loops, rows;
  SmallVector<int64_t> wholeShape, rowShape;
};

} // namespace

/// Bodies that depend on nothing but their scalars.
static bool isPlainBody(linalg::GenericOp op) {
  return !op.hasIndexSemantics() &&
         llvm::none_of(*op.getBody(), [](Operation &inner) {
           return isa<tensor::ExtractOp>(inner);
         });
}

static bool isPlainElementwise(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic && isElementwise(op) && generic.getNumResults() == 1 &&
         generic.getIndexingMapsArray().back().isIdentity() &&
         isPlainBody(generic);
}

bool isRowReduction(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || opKind(op) != OpKind::Reduction ||
      generic.getNumResults() != 1 || !isPlainBody(generic))
    return false;
  unsigned rows = generic.getNumParallelLoops();
  auto iterators = generic.getIteratorTypesArray();
  for (unsigned loop = 0; loop < iterators.size(); ++loop)
    if ((iterators[loop] == utils::IteratorType::parallel) != (loop < rows))
      return false;
  AffineMap whole =
      AffineMap::getMultiDimIdentityMap(iterators.size(), op->getContext());
  return rows != 0 &&
         generic.getIndexingMapsArray().back() == whole.getMajorSubMap(rows) &&
         llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
           return generic.getMatchingIndexingMap(operand) == whole;
         });
}

Part Region::partOf(Operation *op) const {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return Part::None;
  SmallVector<int64_t> ranges = generic.getStaticLoopRanges();
  if (isPlainElementwise(op))
    return ranges == wholeShape ? Part::Whole
           : ranges == rowShape ? Part::Rows
                                : Part::None;
  return isRowReduction(op) && ranges == wholeShape &&
                 generic.getNumParallelLoops() == rows
             ? Part::Reduction
             : Part::None;
}

bool Region::readsByRow(linalg::GenericOp op, Value value,
                        Part valuePart) const {
  bool ofRows = valuePart != Part::Whole;
  bool inRows = op.getNumLoops() == rows;
  if (inRows && !ofRows)
    return false;
  AffineMap identity =
      AffineMap::getMultiDimIdentityMap(op.getNumLoops(), op.getContext());
  AffineMap wanted = ofRows ? identity.getMajorSubMap(rows) : identity;
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() == value &&
        (!op.isDpsInput(&operand) ||
         op.getMatchingIndexingMap(&operand) != wanted))
      return false;
  return true;
}

bool Region::belongs(Operation *op, const OpSet &set) const {
  if (partOf(op) == Part::None)
    return false;
  auto generic = cast<linalg::GenericOp>(op);
  bool uses = false;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (!def || !set.contains(def))
      continue;
    if (!readsByRow(generic, operand, partOf(def)))
      return false;
    uses = true;
  }
  return uses;
}

OpSet findRowRegion(linalg::GenericOp first,
                    llvm::function_ref<bool(Operation *)> isFree,
                    llvm::function_ref<unsigned(const OpSet &)> countExposed) {
  Region region(first);
  OpSet found, candidate;
  candidate.insert(first);
  for (Operation *op = first->getNextNode();
       op && candidate.size() < found.size() + kMaxPending;
       op = op->getNextNode()) {
    if (!isFree(op) || !region.belongs(op, candidate))
      continue;
    candidate.insert(op);
    // The last op is the one that shows its value.
    if (region.partOf(op) == Part::Whole && countExposed(candidate) <= 1)
      found = candidate;
  }
  if (found.empty())
    return found;
  // What only the region reads.
  SmallVector<Operation *> worklist(found.begin(), found.end());
  while (!worklist.empty()) {
    Operation *member = worklist.pop_back_val();
    for (Value operand : member->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def || found.contains(def) || !isFree(def) ||
          !isPlainElementwise(def))
        continue;
      Part part = region.partOf(def);
      if (part == Part::None ||
          !llvm::all_of(def->getUsers(), [&](Operation *user) {
            return found.contains(user) &&
                   region.readsByRow(cast<linalg::GenericOp>(user), operand,
                                     part);
          }))
        continue;
      found.insert(def);
      worklist.push_back(def);
    }
  }
  return found;
}

/// Whether computing `op` again costs no more than reading what it stored.
static bool isCheap(linalg::GenericOp op) {
  constexpr unsigned kMaxOps = 2;
  unsigned count = 0, whole = 0;
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (isa<arith::ConstantOp>(inner))
      continue;
    ++count;
    if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(inner))
      return false;
  }
  for (OpOperand *operand : op.getDpsInputOperands())
    whole += op.getMatchingIndexingMap(operand).isIdentity();
  return count <= kMaxOps && whole <= 1 && op.getNumLoops() > 1;
}

/// x / r, where r has one value per row, becomes x * (1 / r).
static void divideOncePerRow(IRRewriter &rewriter, linalg::GenericOp op,
                             OpSet &region) {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    Operation *def = operand->get().getDefiningOp();
    BlockArgument scalar = op.getMatchingBlockArgument(operand);
    if (!def || !region.contains(def) ||
        op.getMatchingIndexingMap(operand).isIdentity() || scalar.use_empty() ||
        !llvm::all_of(scalar.getUses(), [](OpOperand &use) {
          return isa<arith::DivFOp>(use.getOwner()) &&
                 use.getOperandNumber() == 1;
        }))
      continue;
    rewriter.setInsertionPointAfter(def);
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(operand->get().getType());
    Value empty = tensor::EmptyOp::create(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, operand->get()),
        type.getElementType());
    AffineMap identity = rewriter.getMultiDimIdentityMap(type.getRank());
    auto inverse = linalg::GenericOp::create(
        rewriter, loc, TypeRange{type}, ValueRange{operand->get()},
        ValueRange{empty}, ArrayRef<AffineMap>{identity, identity},
        SmallVector<utils::IteratorType>(type.getRank(),
                                         utils::IteratorType::parallel),
        [&](OpBuilder &b, Location loc, ValueRange args) {
          Value one = arith::ConstantOp::create(
              b, loc, b.getFloatAttr(type.getElementType(), 1.0));
          linalg::YieldOp::create(
              b, loc, arith::DivFOp::create(b, loc, one, args[0]).getResult());
        });
    inverse->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    region.insert(inverse);
    operand->set(inverse.getResult(0));
    for (OpOperand &use : llvm::make_early_inc_range(scalar.getUses())) {
      Operation *division = use.getOwner();
      rewriter.setInsertionPoint(division);
      rewriter.replaceOpWithNewOp<arith::MulFOp>(
          division, division->getOperand(0), scalar);
    }
  }
}

static Operation *onlyUser(Operation *op) {
  Operation *user = nullptr;
  for (Operation *u : op->getUsers()) {
    if (user && user != u)
      return nullptr;
    user = u;
  }
  return user;
}

SmallVector<linalg::GenericOp> simplifyRowRegion(IRRewriter &rewriter,
                                                 OpSet region) {
  for (Operation *op : llvm::to_vector(region)) {
    auto generic = cast<linalg::GenericOp>(op);
    if (!isElementwise(op))
      continue;
    divideOncePerRow(rewriter, generic, region);
    bool inside = llvm::all_of(
        op->getUsers(), [&](Operation *user) { return region.contains(user); });
    if (!inside || !isCheap(generic))
      continue;
    llvm::SetVector<Operation *> users(op->user_begin(), op->user_end());
    for (Operation *user : ArrayRef(users.getArrayRef()).drop_front()) {
      rewriter.setInsertionPoint(user);
      Operation *copy = rewriter.clone(*op);
      region.insert(copy);
      user->replaceUsesOfWith(op->getResult(0), copy->getResult(0));
    }
  }
  // Chains of one shape.
  bool changed = true;
  while (changed) {
    changed = false;
    for (Operation *op : llvm::to_vector(region)) {
      Operation *user = isPlainElementwise(op) ? onlyUser(op) : nullptr;
      if (!user || !region.contains(user) || !isPlainElementwise(user) ||
          cast<linalg::GenericOp>(user).getNumLoops() !=
              cast<linalg::GenericOp>(op).getNumLoops())
        continue;
      DictionaryAttr attrs = user->getDiscardableAttrDictionary();
      region.remove(op);
      region.remove(user);
      linalg::GenericOp merged =
          mergeElementwise(rewriter, {cast<linalg::GenericOp>(op),
                                      cast<linalg::GenericOp>(user)});
      merged->setDiscardableAttrs(attrs);
      region.insert(merged);
      changed = true;
      break;
    }
  }
  SmallVector<linalg::GenericOp> prologues;
  for (Operation *op : region) {
    Operation *user = onlyUser(op);
    if (user && region.contains(user) && isPlainElementwise(op) &&
        isRowReduction(user) &&
        cast<linalg::GenericOp>(op).getNumLoops() ==
            cast<linalg::GenericOp>(user).getNumLoops() &&
        op->hasOneUse())
      prologues.push_back(cast<linalg::GenericOp>(op));
  }
  return prologues;
}

} // namespace pto::lowering
