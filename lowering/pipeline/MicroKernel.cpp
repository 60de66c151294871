//===- MicroKernel.cpp - A linalg chain as register tiles -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A schedule marks a chain on tensors; after bufferisation the same chain is
// found again and becomes loops (microkernel/).
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/MicroKernel.h"
#include "lowering/pipeline/microkernel/Emitter.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace pto::lowering {

using microkernel::Chain;
using microkernel::Emitter;
using microkernel::refuse;

namespace {

constexpr StringLiteral kMicroKernel = "pto.microkernel";
constexpr StringLiteral kFused = "pto.fused";

/// The chain of a root on tensors, by what it uses.
Chain findOnTensors(linalg::LinalgOp root) {
  Chain chain;
  chain.root = root;
  auto fusable = [&](Operation *op) {
    return op && op->getBlock() == root->getBlock() && op->hasOneUse() &&
           !op->hasAttr(kMicroKernel);
  };
  linalg::LinalgOp reducer = root;
  if (root.getNumReductionLoops() == 0) {
    reducer = {};
    for (OpOperand *in : root.getDpsInputOperands()) {
      auto producer = in->get().getDefiningOp<linalg::LinalgOp>();
      if (producer && fusable(producer) && producer->getNumResults() == 1 &&
          producer.getNumReductionLoops() > 0) {
        reducer = chain.anchor = producer;
        chain.intermediate = in->get();
        break;
      }
    }
  }
  if (reducer) {
    auto fill = reducer.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
    if (fill && fusable(fill))
      chain.fill = fill;
  }
  return chain;
}

/// The op before `user` in its block that is marked as fused and writes
/// `buffer`.
linalg::LinalgOp fusedWriter(linalg::LinalgOp user, Value buffer) {
  for (Operation *op = user->getPrevNode(); op; op = op->getPrevNode())
    if (auto writer = dyn_cast<linalg::LinalgOp>(op))
      if (op->hasAttr(kFused) && writer.getDpsInits()[0] == buffer)
        return writer;
  return {};
}

/// The same chain after bufferisation, by what it writes.
Chain findOnBuffers(linalg::LinalgOp root) {
  Chain chain;
  chain.root = root;
  linalg::LinalgOp reducer = root;
  if (root.getNumReductionLoops() == 0) {
    reducer = {};
    for (OpOperand *in : root.getDpsInputOperands())
      if (linalg::LinalgOp writer = fusedWriter(root, in->get())) {
        reducer = chain.anchor = writer;
        chain.intermediate = in->get();
        break;
      }
  }
  if (reducer)
    if (linalg::LinalgOp writer =
            fusedWriter(reducer, reducer.getDpsInits()[0]))
      chain.fill = dyn_cast<linalg::FillOp>(writer.getOperation());
  return chain;
}

MicroKernelOptions readOptions(DictionaryAttr attr) {
  MicroKernelOptions options;
  options.tile =
      llvm::to_vector(attr.getAs<DenseI64ArrayAttr>("tile_sizes").asArrayRef());
  options.unroll =
      llvm::to_vector(attr.getAs<DenseI64ArrayAttr>("unroll").asArrayRef());
  options.vectorLoop = attr.getAs<IntegerAttr>("vector_loop").getInt();
  options.vectorBits = attr.getAs<IntegerAttr>("vector_bits").getInt();
  options.prefetch = attr.getAs<BoolAttr>("prefetch").getValue();
  return options;
}

} // namespace

bool numbersProducts(linalg::LinalgOp anchor, AffineExpr loop) {
  SmallVector<unsigned> reductions;
  anchor.getReductionDims(reductions);
  return anchor.getNumDpsInputs() == 2 &&
         llvm::all_of(anchor.getDpsInputOperands(), [&](OpOperand *in) {
           AffineMap map = anchor.getMatchingIndexingMap(in);
           return llvm::is_contained(map.getResults(), loop) &&
                  llvm::any_of(reductions, [&](unsigned r) {
                    return map.isFunctionOfDim(r);
                  });
         });
}

llvm::Error markMicroKernel(linalg::LinalgOp root,
                            const MicroKernelOptions &options) {
  if (root->hasAttr(kMicroKernel) || root->hasAttr(kFused))
    return llvm::Error::success();
  if (root->getNumResults() != 1)
    return refuse("the op is not on tensors, or has several results");
  Chain chain = findOnTensors(root);
  if (llvm::Error e = chain.analyse(options))
    return e;
  Builder b(root->getContext());
  root->setAttr(
      kMicroKernel,
      b.getDictionaryAttr(
          {b.getNamedAttr("prefetch", b.getBoolAttr(options.prefetch)),
           b.getNamedAttr("tile_sizes", b.getDenseI64ArrayAttr(options.tile)),
           b.getNamedAttr("unroll", b.getDenseI64ArrayAttr(options.unroll)),
           b.getNamedAttr("vector_bits",
                          b.getI64IntegerAttr(options.vectorBits)),
           b.getNamedAttr("vector_loop",
                          b.getI64IntegerAttr(options.vectorLoop))}));
  // Numbered, so that equal ones of two chains stay two.
  int64_t number = 0;
  root->getParentOfType<FunctionOpInterface>()->walk(
      [&](Operation *op) { number += op->hasAttr(kMicroKernel); });
  if (chain.anchor && chain.anchor != root)
    chain.anchor->setAttr(kFused, b.getI64IntegerAttr(number));
  if (chain.fill)
    chain.fill->setAttr(kFused, b.getI64IntegerAttr(number));
  return llvm::Error::success();
}

LogicalResult expandMicroKernels(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  SmallVector<linalg::LinalgOp> roots;
  module.walk([&](linalg::LinalgOp op) {
    if (op->hasAttr(kMicroKernel))
      roots.push_back(op);
  });
  llvm::SetVector<Operation *> unread;
  for (linalg::LinalgOp root : roots) {
    auto attr = root->getAttrOfType<DictionaryAttr>(kMicroKernel);
    Chain chain = findOnBuffers(root);
    if (llvm::Error e = chain.analyse(readOptions(attr)))
      return root.emitError(llvm::toString(std::move(e)));
    rewriter.setInsertionPoint(root);
    Emitter emitter(rewriter, chain);
    if (memref::AllocOp buffer = emitter.readAroundPadding())
      unread.insert(buffer);
    emitter.run();
    rewriter.eraseOp(root);
    if (chain.anchor && chain.anchor != root)
      rewriter.eraseOp(chain.anchor);
    if (chain.fill)
      rewriter.eraseOp(chain.fill);
  }
  for (Operation *buffer : unread)
    eraseUnreadPadding(rewriter, cast<memref::AllocOp>(buffer));
  return success();
}

} // namespace pto::lowering
