//===- Collapse.cpp - Kernels with as few dims as they need ---------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Dims of a kernel's tensors that are walked by the same loops form a class.
// Classes of size one vanish; two classes that lie next to each other in every
// tensor that has one of them become one. So a 1x1 convolution is a matmul,
// and an elementwise kernel without broadcasts has one loop. Kernels that walk
// windows keep their dims but for windows of size one. @main reshapes arguments
// and results, which is free.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Passes.h"
#include "lowering/graph/RowWise.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;

namespace pto::lowering {
namespace {

using Groups = SmallVector<ReassociationIndices>;

class Collapser {
public:
  explicit Collapser(func::FuncOp kernel)
      : kernel(kernel), rewriter(kernel.getContext()) {}
  /// Rewrites the kernel. False if it stays as it is.
  bool run();

  /// How the dims of argument `i` were grouped; none if it is unchanged.
  std::optional<Groups> argumentGroups(unsigned i) const {
    return changed[i] ? std::optional<Groups>(groups[i]) : std::nullopt;
  }

private:
  bool analyse();
  void dropUnitReductions();
  unsigned node(Value tensor, int64_t dim) { return firstNode[tensor] + dim; }
  unsigned loopNode(Operation *op, unsigned loop) {
    return firstLoop[op] + loop;
  }
  void keepOneOf(linalg::GenericOp op, ArrayRef<unsigned> loops);
  void decideDropped();
  void mergeClasses();
  bool canMerge(unsigned a, unsigned b);
  SmallVector<unsigned> sequence(Value tensor);
  Groups groupsOf(Value tensor);
  RankedTensorType collapsedType(Value tensor);
  BlockArgument argumentWith(unsigned n);
  SmallVector<Value> collapsedSizes(tensor::EmptyOp empty,
                                    const Groups &emptyGroups,
                                    RankedTensorType type);
  void rewrite();
  void rewriteGeneric(linalg::GenericOp op);
  unsigned leader(unsigned n) { return classes.getLeaderValue(n); }

  func::FuncOp kernel;
  IRRewriter rewriter;
  SmallVector<Value> tensors;
  DenseMap<Value, unsigned> firstNode;
  DenseMap<Operation *, unsigned> firstLoop;
  llvm::EquivalenceClasses<unsigned> classes;
  DenseMap<unsigned, int64_t> sizes; ///< By leader.
  llvm::DenseSet<unsigned> fixed;    ///< Leaders that stay as they are.
  llvm::DenseSet<unsigned> dropped;  ///< Leaders that vanish.
  /// Leader -> the leader of the merged class in front of which it lies.
  DenseMap<unsigned, unsigned> next;
  bool windowed = false;
  SmallVector<Groups> groups;
  SmallVector<bool> changed;
};

} // namespace

static RankedTensorType tensorType(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

/// Sizes of intermediates, and constants for them: made anew.
static bool isSizeOnly(Operation *op) {
  auto isEmptyOrDim = [](Operation *user) {
    return isa<tensor::EmptyOp, tensor::DimOp>(user);
  };
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return isa<BlockArgument>(dim.getSource()) &&
           llvm::all_of(op->getUsers(), isEmptyOrDim);
  return isa<arith::ConstantIndexOp>(op) &&
         llvm::all_of(op->getUsers(), isEmptyOrDim);
}

/// Windows of size one: loops of one step need no loop.
void Collapser::dropUnitReductions() {
  SmallVector<linalg::GenericOp> generics;
  for (auto generic : kernel.getOps<linalg::GenericOp>())
    generics.push_back(generic);
  for (linalg::GenericOp op : generics) {
    if (op.hasIndexSemantics())
      continue;
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    auto iterators = op.getIteratorTypesArray();
    std::optional<LoopRoles> roles = loopRoles(op);
    SmallVector<AffineExpr> dims;
    SmallVector<utils::IteratorType> kept;
    for (unsigned loop = 0; loop < ranges.size(); ++loop) {
      bool summed = roles && llvm::is_contained(roles->in, loop);
      if (iterators[loop] == utils::IteratorType::reduction &&
          ranges[loop] == 1 && !summed) {
        dims.push_back(rewriter.getAffineConstantExpr(0));
        continue;
      }
      dims.push_back(rewriter.getAffineDimExpr(kept.size()));
      kept.push_back(iterators[loop]);
    }
    if (kept.size() == ranges.size())
      continue;
    SmallVector<AffineMap> maps;
    for (AffineMap map : op.getIndexingMapsArray())
      maps.push_back(map.replaceDimsAndSymbols(dims, {}, kept.size(), 0));
    SmallVector<Attribute> iteratorAttrs;
    for (utils::IteratorType type : kept)
      iteratorAttrs.push_back(
          linalg::IteratorTypeAttr::get(op.getContext(), type));
    op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
    op.setIteratorTypesAttr(rewriter.getArrayAttr(iteratorAttrs));
  }
}

bool Collapser::analyse() {
  unsigned count = 0;
  auto addTensor = [&](Value value) {
    if (RankedTensorType type = tensorType(value)) {
      tensors.push_back(value);
      firstNode[value] = count;
      count += type.getRank();
    }
  };
  for (BlockArgument argument : kernel.getArguments())
    addTensor(argument);
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isSizeOnly(&op))
      continue;
    if (!isa<linalg::GenericOp, linalg::FillOp, tensor::EmptyOp, tensor::PadOp,
             arith::ConstantOp>(op))
      return false;
    if (isa<arith::ConstantOp>(op) && tensorType(op.getResult(0)))
      return false;
    for (Value result : op.getResults())
      addTensor(result);
    ops.push_back(&op);
  }
  for (Operation *op : ops)
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      firstLoop[op] = count;
      count += generic.getNumLoops();
    }
  for (unsigned i = 0; i < count; ++i)
    classes.insert(i);
  SmallVector<unsigned> pinned;
  for (Operation *op : ops) {
    if (isa<tensor::PadOp>(op))
      windowed = true;
    if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      Value in = fill.getOutputs()[0], out = fill.getResult(0);
      for (int64_t i = 0; i < tensorType(in).getRank(); ++i)
        classes.unionSets(node(in, i), node(out, i));
    }
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      continue;
    for (OpOperand &operand : generic->getOpOperands()) {
      if (!tensorType(operand.get()))
        continue;
      AffineMap map = generic.getMatchingIndexingMap(&operand);
      for (auto [i, expr] : llvm::enumerate(map.getResults())) {
        if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
          classes.unionSets(node(operand.get(), i),
                            loopNode(op, dim.getPosition()));
        } else if (!isa<AffineConstantExpr>(expr)) {
          windowed = true;
          pinned.push_back(node(operand.get(), i));
          for (unsigned loop = 0; loop < generic.getNumLoops(); ++loop)
            if (expr.isFunctionOfDim(loop))
              pinned.push_back(loopNode(op, loop));
        }
      }
    }
    for (auto [result, init] :
         llvm::zip_equal(generic->getResults(), generic.getDpsInits()))
      for (int64_t i = 0; i < tensorType(init).getRank(); ++i)
        classes.unionSets(node(init, i), node(result, i));
    if (generic.hasIndexSemantics())
      for (unsigned loop = 0; loop < generic.getNumLoops(); ++loop)
        pinned.push_back(loopNode(op, loop));
    // Tensors that the body reads by index.
    for (Operation &inner : *generic.getBody())
      for (Value operand : inner.getOperands())
        if (RankedTensorType type = tensorType(operand))
          for (int64_t i = 0; i < type.getRank(); ++i)
            pinned.push_back(node(operand, i));
  }
  for (unsigned n : pinned)
    fixed.insert(leader(n));
  for (Value tensor : tensors)
    for (int64_t i = 0; i < tensorType(tensor).getRank(); ++i)
      sizes[leader(node(tensor, i))] = tensorType(tensor).getDimSize(i);
  for (auto empty : kernel.getOps<tensor::EmptyOp>())
    for (int64_t i = 0; i < empty.getType().getRank(); ++i)
      if (empty.getType().isDynamicDim(i) &&
          !argumentWith(leader(node(empty, i))))
        return false;
  return true;
}

/// An argument with a dim of class `n`.
BlockArgument Collapser::argumentWith(unsigned n) {
  for (BlockArgument argument : llvm::reverse(kernel.getArguments()))
    for (int64_t i = 0; i < tensorType(argument).getRank(); ++i)
      if (leader(node(argument, i)) == n)
        return argument;
  return {};
}

/// The sizes of `empty`, whose type becomes `type`: merged dims are merged in
/// the arguments too. Called when the arguments have their new types.
SmallVector<Value> Collapser::collapsedSizes(tensor::EmptyOp empty,
                                             const Groups &emptyGroups,
                                             RankedTensorType type) {
  SmallVector<Value> result;
  for (auto [i, group] : llvm::enumerate(emptyGroups)) {
    if (!type.isDynamicDim(i))
      continue;
    int64_t dim = *llvm::find_if(
        group, [&](int64_t d) { return empty.getType().isDynamicDim(d); });
    unsigned n = leader(node(empty, dim));
    BlockArgument argument = argumentWith(n);
    for (auto [at, dims] : llvm::enumerate(groups[argument.getArgNumber()]))
      for (int64_t d : dims)
        if (leader(node(argument, d)) == n) {
          result.push_back(
              tensor::DimOp::create(rewriter, empty.getLoc(), argument, at));
          break;
        }
  }
  return result;
}

/// Keeps the last of `loops` if all of them would vanish.
void Collapser::keepOneOf(linalg::GenericOp op, ArrayRef<unsigned> loops) {
  bool all = !loops.empty() && llvm::all_of(loops, [&](unsigned loop) {
    return dropped.contains(leader(loopNode(op, loop)));
  });
  if (all)
    dropped.erase(leader(loopNode(op, loops.back())));
}

void Collapser::decideDropped() {
  llvm::DenseSet<unsigned> walked; ///< Classes with a loop.
  for (auto generic : kernel.getOps<linalg::GenericOp>())
    for (unsigned loop = 0; loop < generic.getNumLoops(); ++loop)
      walked.insert(leader(loopNode(generic, loop)));
  for (Value tensor : tensors) {
    auto pad = tensor.getDefiningOp<tensor::PadOp>();
    bool padded = pad || llvm::any_of(tensor.getUsers(), [](Operation *user) {
                    return isa<tensor::PadOp>(user);
                  });
    for (int64_t i = 0; i < tensorType(tensor).getRank(); ++i) {
      unsigned n = leader(node(tensor, i));
      if (padded)
        fixed.insert(n);
      if (sizes[n] == 1 && !(windowed && walked.contains(n)))
        dropped.insert(n);
    }
  }
  for (unsigned n : fixed)
    dropped.erase(n);
  // Rows stay rows even if there is only one.
  if (kernel->hasAttr("pto.rowwise"))
    for (auto generic : kernel.getOps<linalg::GenericOp>()) {
      SmallVector<unsigned> rows, columns;
      if (!isRowReduction(generic))
        continue;
      for (unsigned loop = 0; loop < generic.getNumLoops(); ++loop)
        (loop < generic.getNumParallelLoops() ? rows : columns).push_back(loop);
      keepOneOf(generic, rows);
      keepOneOf(generic, columns);
    }
  // A contraction keeps its three kinds of loops, an output one dim.
  for (auto generic : kernel.getOps<linalg::GenericOp>())
    if (std::optional<LoopRoles> roles = loopRoles(generic)) {
      keepOneOf(generic, roles->batch);
      keepOneOf(generic, roles->out);
      keepOneOf(generic, roles->in);
    }
  for (BlockArgument argument : kernel.getArguments()) {
    RankedTensorType type = tensorType(argument);
    if (type && type.getRank() != 0 && sequence(argument).empty() &&
        kernel.getArgAttr(argument.getArgNumber(), "bufferization.writable"))
      dropped.erase(leader(node(argument, type.getRank() - 1)));
  }
}

SmallVector<unsigned> Collapser::sequence(Value tensor) {
  SmallVector<unsigned> result;
  for (int64_t i = 0; i < tensorType(tensor).getRank(); ++i) {
    unsigned n = leader(node(tensor, i));
    if (!dropped.contains(n))
      result.push_back(n);
  }
  return result;
}

bool Collapser::canMerge(unsigned a, unsigned b) {
  if (a == b || fixed.contains(a) || fixed.contains(b))
    return false;
  for (Value tensor : tensors) {
    SmallVector<unsigned> dims = sequence(tensor);
    auto countA = llvm::count(dims, a), countB = llvm::count(dims, b);
    if (countA == 0 && countB == 0)
      continue;
    auto at = llvm::find(dims, a);
    if (countA != 1 || countB != 1 || std::next(at) == dims.end() ||
        *std::next(at) != b)
      return false;
  }
  for (auto generic : kernel.getOps<linalg::GenericOp>()) {
    auto iterators = generic.getIteratorTypesArray();
    std::optional<utils::IteratorType> typeA, typeB;
    for (unsigned loop = 0; loop < generic.getNumLoops(); ++loop) {
      unsigned n = leader(loopNode(generic, loop));
      if (n == a)
        typeA = iterators[loop];
      if (n == b)
        typeB = iterators[loop];
    }
    if (typeA != typeB)
      return false;
  }
  return true;
}

void Collapser::mergeClasses() {
  // `next` links classes to chains; merging pairs is enough since the test
  // does not depend on what was merged before.
  for (Value tensor : tensors) {
    SmallVector<unsigned> dims = sequence(tensor);
    for (unsigned i = 0; i + 1 < dims.size(); ++i)
      if (!next.count(dims[i]) && canMerge(dims[i], dims[i + 1]))
        next[dims[i]] = dims[i + 1];
  }
}

Groups Collapser::groupsOf(Value tensor) {
  Groups result;
  int64_t rank = tensorType(tensor).getRank();
  std::optional<unsigned> last;
  SmallVector<int64_t> leading; ///< Dropped dims before the first group.
  for (int64_t i = 0; i < rank; ++i) {
    unsigned n = leader(node(tensor, i));
    if (dropped.contains(n)) {
      if (result.empty())
        leading.push_back(i);
      else
        result.back().push_back(i);
      continue;
    }
    auto link = last ? next.find(*last) : next.end();
    if (link == next.end() || link->second != n)
      result.emplace_back();
    if (!leading.empty()) {
      result.back().append(leading.begin(), leading.end());
      leading.clear();
    }
    result.back().push_back(i);
    last = n;
  }
  return result;
}

static RankedTensorType collapse(RankedTensorType type, const Groups &groups) {
  SmallVector<int64_t> shape;
  for (const ReassociationIndices &group : groups) {
    int64_t size = 1;
    for (int64_t dim : group)
      size = type.isDynamicDim(dim) || ShapedType::isDynamic(size)
                 ? ShapedType::kDynamic
                 : size * type.getDimSize(dim);
    shape.push_back(size);
  }
  return RankedTensorType::get(shape, type.getElementType());
}

RankedTensorType Collapser::collapsedType(Value tensor) {
  return collapse(tensorType(tensor), groupsOf(tensor));
}

void Collapser::rewriteGeneric(linalg::GenericOp op) {
  // New loops: one per chain of classes, in the order of the old ones.
  DenseMap<unsigned, unsigned> chainHead;
  llvm::DenseSet<unsigned> linked;
  for (auto [a, b] : next)
    linked.insert(b);
  SmallVector<AffineExpr> newDim(op.getNumLoops());
  SmallVector<utils::IteratorType> iterators;
  auto oldIterators = op.getIteratorTypesArray();
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    unsigned n = leader(loopNode(op, loop));
    if (dropped.contains(n) || linked.contains(n))
      continue;
    newDim[loop] = rewriter.getAffineDimExpr(iterators.size());
    iterators.push_back(oldIterators[loop]);
  }
  SmallVector<AffineMap> maps;
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!tensorType(operand.get())) {
      maps.push_back(
          AffineMap::get(iterators.size(), 0, rewriter.getContext()));
      continue;
    }
    // The first kept dim of each group stands for it.
    SmallVector<AffineExpr> results;
    for (const ReassociationIndices &group : groupsOf(operand.get()))
      for (int64_t dim : group)
        if (!dropped.contains(leader(node(operand.get(), dim)))) {
          results.push_back(map.getResult(dim));
          break;
        }
    SmallVector<AffineExpr> replacements;
    for (AffineExpr expr : newDim)
      replacements.push_back(expr ? expr : rewriter.getAffineConstantExpr(0));
    AffineMap reduced =
        AffineMap::get(op.getNumLoops(), 0, results, rewriter.getContext());
    maps.push_back(
        reduced.replaceDimsAndSymbols(replacements, {}, iterators.size(), 0));
  }
  SmallVector<Attribute> iteratorAttrs;
  for (utils::IteratorType type : iterators)
    iteratorAttrs.push_back(
        linalg::IteratorTypeAttr::get(op.getContext(), type));
  op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  op.setIteratorTypesAttr(rewriter.getArrayAttr(iteratorAttrs));
}

void Collapser::rewrite() {
  DenseMap<Value, RankedTensorType> types;
  for (Value tensor : tensors)
    types[tensor] = collapsedType(tensor);
  for (BlockArgument argument : kernel.getArguments()) {
    groups.push_back(groupsOf(argument));
    changed.push_back(types[argument] != argument.getType());
  }
  for (auto generic : kernel.getOps<linalg::GenericOp>())
    rewriteGeneric(generic);
  // Types change together, after everything that looks at them.
  for (Operation &op : llvm::make_early_inc_range(kernel.getBody().front()))
    if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
      RankedTensorType type = types[empty.getResult()];
      if (type == empty.getType() && type.hasStaticShape())
        continue;
      rewriter.setInsertionPoint(empty);
      types.erase(empty.getResult());
      SmallVector<Value> dynamic =
          collapsedSizes(empty, groupsOf(empty.getResult()), type);
      rewriter.replaceOpWithNewOp<tensor::EmptyOp>(
          empty, type.getShape(), type.getElementType(), dynamic);
    }
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(kernel.getBody().front())))
    if (isSizeOnly(&op) && op.use_empty())
      rewriter.eraseOp(&op);
  for (auto [tensor, type] : types) {
    Value value = tensor;
    value.setType(type);
  }
  SmallVector<Type> results;
  for (Value value : kernel.getBody().front().getTerminator()->getOperands())
    results.push_back(value.getType());
  kernel.setType(FunctionType::get(kernel.getContext(),
                                   kernel.getBody().front().getArgumentTypes(),
                                   results));
}

bool Collapser::run() {
  for (BlockArgument argument : kernel.getArguments())
    if (!tensorType(argument))
      return false;
  dropUnitReductions();
  if (!analyse())
    return false;
  decideDropped();
  if (!windowed)
    mergeClasses();
  rewrite();
  return llvm::is_contained(changed, true);
}

static void reshapeCall(func::CallOp call, const Collapser &collapser,
                        func::FuncOp kernel) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  unsigned firstOutput = call.getNumOperands() - call.getNumResults();
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
    std::optional<Groups> groups = collapser.argumentGroups(i);
    if (!groups) {
      operands.push_back(operand);
      continue;
    }
    auto type = cast<RankedTensorType>(kernel.getArgumentTypes()[i]);
    if (i >= firstOutput && type.hasStaticShape())
      operands.push_back(tensor::EmptyOp::create(b, loc, type.getShape(),
                                                 type.getElementType()));
    else
      operands.push_back(
          tensor::CollapseShapeOp::create(b, loc, type, operand, *groups));
  }
  auto now = func::CallOp::create(b, loc, kernel, operands);
  now->setDiscardableAttrs(call->getDiscardableAttrDictionary());
  for (auto [i, result] : llvm::enumerate(call.getResults())) {
    Value value = now.getResult(i);
    if (auto groups = collapser.argumentGroups(firstOutput + i))
      value = tensor::ExpandShapeOp::create(
          b, loc, result.getType(), value, *groups,
          tensor::getMixedSizes(b, loc, call.getOperand(firstOutput + i)));
    result.replaceAllUsesWith(value);
  }
  call.erase();
}

LogicalResult collapseKernels(ModuleOp module) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  SmallVector<func::CallOp> calls;
  main.walk([&](func::CallOp call) { calls.push_back(call); });
  for (func::CallOp call : calls) {
    auto kernel = module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!kernel || !kernel->hasAttr("pto.kernel"))
      continue;
    Collapser collapser(kernel);
    if (collapser.run())
      reshapeCall(call, collapser, kernel);
  }
  return success();
}

} // namespace pto::lowering
