//===- PtoOps.cpp - transform.pto.* ops
//-------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Glue between the transform interpreter (handles, params, failures) and the
// functions of lowering/pipeline/MicroKernel.h, Packing.h and TileChain.h.
//
//===----------------------------------------------------------------------===//

#include "schedules/engine/extension/PtoOps.h"
#include "lowering/pipeline/MicroKernel.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Transform/IR/TransformTypes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "schedules/engine/extension/KernelKind.h"
#include "schedules/engine/extension/Packing.h"
#include "schedules/engine/extension/TileChain.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::transform;

#define GET_OP_CLASSES
#include "schedules/engine/extension/PtoOps.cpp.inc"

namespace {

/// The integer that a param handle or a payload constant stands for.
FailureOr<int64_t> integerOf(TransformState &state, Value handle) {
  if (!isa<TransformParamTypeInterface>(handle.getType()))
    return failure();
  ArrayRef<Attribute> params = state.getParams(handle);
  if (params.size() != 1)
    return failure();
  if (auto i = dyn_cast<IntegerAttr>(params[0]))
    return i.getValue().getSExtValue();
  return failure();
}

/// Static numbers with the params put in their places.
DiagnosedSilenceableFailure mixedIntegers(Operation *op, TransformState &state,
                                          ArrayRef<int64_t> statics,
                                          ValueRange dynamics,
                                          SmallVector<int64_t> &out) {
  unsigned next = 0;
  for (int64_t s : statics) {
    if (!ShapedType::isDynamic(s)) {
      out.push_back(s);
      continue;
    }
    FailureOr<int64_t> v = integerOf(state, dynamics[next++]);
    if (failed(v))
      return emitDefiniteFailure(op) << "expects integer params for its sizes";
    out.push_back(*v);
  }
  return DiagnosedSilenceableFailure::success();
}

} // namespace

//===----------------------------------------------------------------------===//
// MicroKernelOp
//===----------------------------------------------------------------------===//

DiagnosedSilenceableFailure MicroKernelOp::apply(TransformRewriter &rewriter,
                                                 TransformResults &results,
                                                 TransformState &state) {
  pto::lowering::MicroKernelOptions options;
  auto read = [&](ArrayRef<int64_t> statics, ValueRange dynamics,
                  SmallVector<int64_t> &out) {
    return mixedIntegers(getOperation(), state, statics, dynamics, out);
  };
  DiagnosedSilenceableFailure d =
      read(getStaticSizes(), getDynamicSizes(), options.tile);
  if (!d.succeeded())
    return d;
  d = read(getStaticUnroll(), getDynamicUnroll(), options.unroll);
  if (!d.succeeded())
    return d;
  if (Value loop = getVectorLoop()) {
    FailureOr<int64_t> v = integerOf(state, loop);
    if (failed(v))
      return emitDefiniteFailure() << "expects an integer vector_loop";
    options.vectorLoop = *v;
  }
  if (Value bits = getVectorBits()) {
    FailureOr<int64_t> v = integerOf(state, bits);
    if (failed(v) || *v < 64)
      return emitDefiniteFailure() << "expects vector_bits of at least 64";
    options.vectorBits = *v;
  }
  if (Value prefetch = getPrefetch()) {
    FailureOr<int64_t> v = integerOf(state, prefetch);
    if (failed(v))
      return emitDefiniteFailure() << "expects an integer prefetch";
    options.prefetch = *v != 0;
  }
  SmallVector<Operation *> targets(state.getPayloadOps(getTarget()).begin(),
                                   state.getPayloadOps(getTarget()).end());
  for (Operation *target : llvm::reverse(targets)) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(target);
    if (!linalgOp)
      return emitSilenceableError()
             << "expects linalg ops, got " << target->getName();
    llvm::Error e = pto::lowering::markMicroKernel(linalgOp, options);
    if (!e)
      continue;
    std::string reason = llvm::toString(std::move(e));
    if (getWherePossible())
      continue;
    auto diag = emitSilenceableError() << reason;
    diag.attachNote(target->getLoc()) << "target op";
    return diag;
  }
  return DiagnosedSilenceableFailure::success();
}

void MicroKernelOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  onlyReadsHandle(getTargetMutable(), effects);
  onlyReadsHandle(getDynamicSizesMutable(), effects);
  onlyReadsHandle(getDynamicUnrollMutable(), effects);
  onlyReadsHandle(getVectorLoopMutable(), effects);
  onlyReadsHandle(getVectorBitsMutable(), effects);
  onlyReadsHandle(getPrefetchMutable(), effects);
  modifiesPayload(effects);
}

//===----------------------------------------------------------------------===//
// PackOperandOp
//===----------------------------------------------------------------------===//

DiagnosedSilenceableFailure PackOperandOp::apply(TransformRewriter &rewriter,
                                                 TransformResults &results,
                                                 TransformState &state) {
  FailureOr<int64_t> tile = integerOf(state, getTile());
  if (failed(tile))
    return emitDefiniteFailure() << "expects an integer param as tile";
  if (*tile < 2)
    return DiagnosedSilenceableFailure::success();
  for (Operation *target : state.getPayloadOps(getTarget())) {
    auto generic = dyn_cast<linalg::GenericOp>(target);
    if (!generic)
      return emitSilenceableError()
             << "expects linalg.generic, got " << target->getName();
    int64_t loop = 0;
    if (getLoop()) {
      loop = *getLoop();
    } else {
      AffineMap out =
          generic.getMatchingIndexingMap(generic.getDpsInitOperand(0));
      auto last = out.getNumResults()
                      ? dyn_cast<AffineDimExpr>(out.getResults().back())
                      : AffineDimExpr(nullptr);
      if (!last)
        return emitSilenceableError() << "the result has no plain last dim";
      loop = last.getPosition();
    }
    auto packed = pto::schedules::packOperand(rewriter, generic, getOperand(),
                                              loop, *tile);
    if (!packed)
      return emitSilenceableError() << llvm::toString(packed.takeError());
  }
  return DiagnosedSilenceableFailure::success();
}

void PackOperandOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  onlyReadsHandle(getTargetMutable(), effects);
  onlyReadsHandle(getTileMutable(), effects);
  modifiesPayload(effects);
}

//===----------------------------------------------------------------------===//
// SplitPrepackOp
//===----------------------------------------------------------------------===//

DiagnosedSilenceableFailure SplitPrepackOp::apply(TransformRewriter &rewriter,
                                                  TransformResults &results,
                                                  TransformState &state) {
  SmallVector<func::FuncOp> kernels;
  for (Operation *target : state.getPayloadOps(getTarget()))
    target->walk([&](func::FuncOp f) {
      if (!f.isExternal())
        kernels.push_back(f);
    });
  for (func::FuncOp kernel : kernels)
    if (llvm::Error e = pto::schedules::splitPrepack(rewriter, kernel))
      return emitSilenceableError() << llvm::toString(std::move(e));
  return DiagnosedSilenceableFailure::success();
}

void SplitPrepackOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  onlyReadsHandle(getTargetMutable(), effects);
  modifiesPayload(effects);
}

//===----------------------------------------------------------------------===//
// DistributeOp
//===----------------------------------------------------------------------===//

/// Size of a chunk of dim `d` of the result, whose extent is known at run time:
/// a multiple of `unit`, at most `threads` chunks.
static OpFoldResult chunkSize(RewriterBase &b, linalg::LinalgOp op, int64_t d,
                              int64_t unit, int64_t threads) {
  Location loc = op.getLoc();
  Value extent = b.createOrFold<tensor::DimOp>(loc, op.getDpsInits()[0], d);
  AffineExpr e = b.getAffineDimExpr(0).ceilDiv(unit * threads) * unit;
  Value size = getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(b, loc, AffineMap::get(1, 0, e),
                                            OpFoldResult(extent)));
  // An empty dim must not make a step of 0.
  return arith::MaxUIOp::create(b, loc, size,
                                arith::ConstantIndexOp::create(b, loc, unit))
      .getResult();
}

/// How many of `units` (of `unit` iterations each, `extent` in all) make a
/// chunk for about `chunks` of them per thread: the size with which the slowest
/// thread is done first; of several, the smallest. A last chunk of another size
/// is code of its own, which costs a little.
static int64_t unitsPerChunk(int64_t extent, int64_t unit, int64_t threads,
                             int64_t chunks) {
  int64_t units = llvm::divideCeil(extent, unit);
  int64_t largest = llvm::divideCeil(units, threads);
  int64_t smallest =
      chunks <= 1 ? largest
                  : std::max<int64_t>(1, units * 2 / (threads * chunks * 3));
  int64_t best = largest;
  double bestCost = 0;
  for (int64_t size = largest; size >= smallest; --size) {
    int64_t count = llvm::divideCeil(units, size);
    double cost = double(llvm::divideCeil(count, threads) * size) *
                  (extent % (size * unit) ? 1.02 : 1.0);
    if (bestCost == 0 || cost <= bestCost) {
      bestCost = cost;
      best = size;
    }
  }
  return best;
}

DiagnosedSilenceableFailure DistributeOp::apply(TransformRewriter &rewriter,
                                                TransformResults &results,
                                                TransformState &state) {
  FailureOr<int64_t> dim = integerOf(state, getDim());
  FailureOr<int64_t> threads = integerOf(state, getThreads());
  FailureOr<int64_t> chunks = 1;
  if (getChunks())
    chunks = integerOf(state, getChunks());
  SmallVector<int64_t> multiples;
  for (Value param : getMultipleOf()) {
    FailureOr<int64_t> multiple = integerOf(state, param);
    if (failed(multiple))
      return emitDefiniteFailure() << "expects integer params";
    multiples.push_back(*multiple);
  }
  if (failed(dim) || failed(threads) || failed(chunks))
    return emitDefiniteFailure() << "expects integer params";
  if (multiples.size() > 2)
    return emitDefiniteFailure() << "takes at most two of multiple_of";
  SmallVector<Operation *> tiled;
  for (Operation *target : llvm::to_vector(state.getPayloadOps(getTarget()))) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(target);
    if (!linalgOp)
      return emitSilenceableError()
             << "expects linalg ops, got " << target->getName();
    AffineMap out =
        linalgOp.getMatchingIndexingMap(linalgOp.getDpsInitOperand(0));
    int64_t rank = out.getNumResults();
    int64_t d = *dim < 0 ? *dim + rank : *dim;
    if (d < 0 || d >= rank || !isa<AffineDimExpr>(out.getResult(d)))
      return emitSilenceableError() << "the result has no dim " << *dim;
    unsigned loop = out.getDimPosition(d);
    int64_t extent = linalgOp.getStaticLoopRanges()[loop];
    int64_t unit = pto::schedules::panelAlong(linalgOp, loop);
    linalg::LinalgOp anchor =
        pto::schedules::anchorOf(linalgOp->getParentOfType<func::FuncOp>());
    // Register tiles do not extend over several products.
    AffineMap made =
        anchor ? anchor.getMatchingIndexingMap(anchor.getDpsInitOperand(0))
               : AffineMap();
    bool hasTiles = !made || d >= made.getNumResults() ||
                    !pto::lowering::numbersProducts(anchor, made.getResult(d));
    if (unit == 1 && hasTiles && !multiples.empty())
      unit = std::max<int64_t>(1, d + 1 == rank ? multiples.back()
                                                : multiples.front());
    bool dynamic = ShapedType::isDynamic(extent);
    if (*threads <= 1 || (!dynamic && extent <= unit)) {
      tiled.push_back(target);
      continue;
    }
    SmallVector<OpFoldResult> sizes(linalgOp.getNumLoops(),
                                    rewriter.getIndexAttr(0));
    if (dynamic) {
      rewriter.setInsertionPoint(linalgOp);
      sizes[loop] = chunkSize(rewriter, linalgOp, d, unit,
                              *threads * std::max<int64_t>(1, *chunks));
    } else {
      sizes[loop] = rewriter.getIndexAttr(
          unitsPerChunk(extent, unit, *threads, *chunks) * unit);
    }
    auto chain = pto::schedules::tileChain(rewriter, linalgOp, sizes, {},
                                           /*parallel=*/true);
    if (failed(chain))
      return emitDefiniteFailure() << "tiling failed";
    tiled.push_back(chain->root);
  }
  results.set(cast<OpResult>(getTiled()), tiled);
  return DiagnosedSilenceableFailure::success();
}

void DistributeOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  consumesHandle(getTargetMutable(), effects);
  onlyReadsHandle(getDimMutable(), effects);
  onlyReadsHandle(getThreadsMutable(), effects);
  onlyReadsHandle(getChunksMutable(), effects);
  onlyReadsHandle(getMultipleOfMutable(), effects);
  producesHandle(getOperation()->getOpResults(), effects);
  modifiesPayload(effects);
}

//===----------------------------------------------------------------------===//
// MatchKernelOp
//===----------------------------------------------------------------------===//

DiagnosedSilenceableFailure MatchKernelOp::apply(TransformRewriter &rewriter,
                                                 TransformResults &results,
                                                 TransformState &state) {
  for (Operation *target : state.getPayloadOps(getTarget())) {
    StringRef kind = pto::schedules::kernelKind(target);
    if (kind != getKind())
      return emitSilenceableError() << "the kernel is of kind '" << kind << "'";
    if (getWeights() && !pto::schedules::hasWeights(target))
      return emitSilenceableError() << "the second input is no weight";
    linalg::LinalgOp anchor = pto::schedules::anchorOf(target);
    auto result = cast<ShapedType>(anchor.getDpsInits()[0].getType());
    if (getRank() && result.getRank() != int64_t(*getRank()))
      return emitSilenceableError() << "the result's rank is another";
    if (getMinRows()) {
      int64_t rank = result.getRank();
      int64_t rows = rank < 2 ? 1 : result.getDimSize(rank - 2);
      if (!ShapedType::isDynamic(rows) && rows < int64_t(*getMinRows()))
        return emitSilenceableError()
               << "the result has only " << rows << " rows";
    }
  }
  return DiagnosedSilenceableFailure::success();
}

void MatchKernelOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  onlyReadsHandle(getTargetMutable(), effects);
  onlyReadsPayload(effects);
}

//===----------------------------------------------------------------------===//
// TileChainOp
//===----------------------------------------------------------------------===//

DiagnosedSilenceableFailure TileChainOp::apply(TransformRewriter &rewriter,
                                               TransformResults &results,
                                               TransformState &state) {
  SmallVector<int64_t> sizes;
  DiagnosedSilenceableFailure d = mixedIntegers(
      getOperation(), state, getStaticSizes(), getDynamicSizes(), sizes);
  if (!d.succeeded())
    return d;
  SmallVector<Operation *> tiled;
  for (Operation *target : llvm::to_vector(state.getPayloadOps(getTarget()))) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(target);
    if (!linalgOp)
      return emitSilenceableError()
             << "expects linalg ops, got " << target->getName();
    if (sizes.size() > linalgOp.getNumLoops())
      return emitSilenceableError()
             << "got " << sizes.size() << " tile sizes for "
             << linalgOp.getNumLoops() << " loops";
    SmallVector<OpFoldResult> padded =
        getAsIndexOpFoldResult(rewriter.getContext(), sizes);
    padded.resize(linalgOp.getNumLoops(), rewriter.getIndexAttr(0));
    auto chain = pto::schedules::tileChain(rewriter, linalgOp, padded,
                                           getInterchange(), getParallel());
    if (failed(chain))
      return emitDefiniteFailure() << "tiling failed";
    tiled.push_back(chain->root);
  }
  results.set(cast<OpResult>(getTiled()), tiled);
  return DiagnosedSilenceableFailure::success();
}

void TileChainOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  consumesHandle(getTargetMutable(), effects);
  onlyReadsHandle(getDynamicSizesMutable(), effects);
  producesHandle(getOperation()->getOpResults(), effects);
  modifiesPayload(effects);
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

namespace {
class PtoExtension : public TransformDialectExtension<PtoExtension> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PtoExtension)
  using Base::Base;

  void init() {
    declareGeneratedDialect<affine::AffineDialect>();
    declareGeneratedDialect<arith::ArithDialect>();
    declareGeneratedDialect<func::FuncDialect>();
    declareGeneratedDialect<linalg::LinalgDialect>();
    declareGeneratedDialect<scf::SCFDialect>();
    declareGeneratedDialect<tensor::TensorDialect>();
    declareGeneratedDialect<vector::VectorDialect>();
    registerTransformOps<
#define GET_OP_LIST
#include "schedules/engine/extension/PtoOps.cpp.inc"
        >();
  }
};
} // namespace

void pto::schedules::registerPtoExtension(DialectRegistry &registry) {
  registry.addExtensions<PtoExtension>();
}
