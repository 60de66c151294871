//===- Pipeline.cpp - The pass order of a kernel
//----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// lowerToLLVM, in call order:
//   prepareTensors    what bufferisation does not take: pack, unpack, pad
//   bufferise         one-shot, in place where the analysis allows it
//   normaliseResults  functions return nothing: results copied to outputs
//   micro-kernels     marked chains become register tiles (MicroKernel.cpp)
//   wrapEntries       the C calling convention    (CallingConvention.cpp)
//   parallel loops    scf.forall -> runtime calls (ParallelLoops.cpp)
//   lowering proper   linalg/vector/scf/memref/math -> LLVM dialect
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Pipeline.h"
#include "lowering/pipeline/MicroKernel.h"
#include "lowering/pipeline/Stages.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace pto::lowering {
namespace {

bool hasTensors(func::FuncOp func) {
  auto isTensor = [](Type t) { return isa<TensorType>(t); };
  WalkResult found = func.walk([&](Operation *op) {
    return llvm::any_of(op->getOperandTypes(), isTensor) ||
                   llvm::any_of(op->getResultTypes(), isTensor)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return found.wasInterrupted();
}

/// pack/unpack become pad, reshape and transpose; pad becomes fill and insert.
LogicalResult prepareTensors(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  SmallVector<Operation *> packs;
  module.walk([&](Operation *op) {
    if (isa<linalg::PackOp, linalg::UnPackOp>(op))
      packs.push_back(op);
  });
  for (Operation *op : packs) {
    rewriter.setInsertionPoint(op);
    LogicalResult done =
        isa<linalg::PackOp>(op)
            ? LogicalResult(
                  linalg::lowerPack(rewriter, cast<linalg::PackOp>(op)))
            : LogicalResult(
                  linalg::lowerUnPack(rewriter, cast<linalg::UnPackOp>(op)));
    if (failed(done))
      return op->emitError("cannot lower ") << op->getName();
  }
  RewritePatternSet patterns(module.getContext());
  linalg::populateConvertToDestinationStylePatterns(patterns);
  tensor::populateDecomposeTensorConcatPatterns(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

/// Canonical form without duplicates and dead code.
LogicalResult cleanUp(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  return pm.run(module);
}

/// Only outputs may be written: in-place analysis takes an argument that says
/// nothing as writable, and weights are in read-only memory.
void protectInputs(func::FuncOp func) {
  if (func.isExternal() || func.getNumResults() > func.getNumArguments())
    return;
  Builder b(func.getContext());
  for (unsigned i = 0; i < func.getNumArguments() - func.getNumResults(); ++i)
    if (!func.getArgAttr(i, "bufferization.writable"))
      func.setArgAttr(i, "bufferization.writable", b.getBoolAttr(false));
}

LogicalResult bufferise(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>())
    protectInputs(func);
  bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.setFunctionBoundaryTypeConversion(
      bufferization::LayoutMapOption::IdentityLayoutMap);
  options.bufferAlignment = 64;
  // Copies of strided views become loops: memref.copy would call a library.
  options.memCpyFn = [](OpBuilder &b, Location loc, Value from, Value to) {
    auto contiguous = [](Value v) {
      auto type = dyn_cast<MemRefType>(v.getType());
      return type && type.getLayout().isIdentity();
    };
    if (contiguous(from) && contiguous(to))
      memref::CopyOp::create(b, loc, from, to);
    else
      linalg::CopyOp::create(b, loc, from, to);
    return success();
  };
  bufferization::BufferizationState state;
  return bufferization::runOneShotModuleBufferize(module, options, state);
}

/// Every function ends up returning nothing: a returned buffer that is not the
/// output argument itself is copied into it.
LogicalResult normaliseResults(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>()) {
    unsigned n = func.getNumResults();
    if (func.isExternal() || n == 0)
      continue;
    if (n > func.getNumArguments())
      return func.emitError("has more results than arguments: each result "
                            "needs an output argument at the end");
    if (!SymbolTable::symbolKnownUseEmpty(func, module))
      return func.emitError("is called and returns values: not supported");
    auto ret = cast<func::ReturnOp>(func.getBody().back().getTerminator());
    OpBuilder b(ret);
    for (unsigned i = 0; i < n; ++i) {
      Value out = func.getArgument(func.getNumArguments() - n + i);
      Value value = ret.getOperand(i);
      // Look through casts: the same buffer under another type is no copy.
      Value source = value;
      while (auto cast = source.getDefiningOp<memref::CastOp>())
        source = cast.getSource();
      if (source == out)
        continue;
      if (!isa<MemRefType>(value.getType()) || !isa<MemRefType>(out.getType()))
        return func.emitError("result ") << i << " is not a tensor";
      if (failed(verifyCompatibleShape(cast<ShapedType>(value.getType()),
                                       cast<ShapedType>(out.getType()))))
        return func.emitError("result ")
               << i << " does not fit the output argument " << out.getType();
      memref::CopyOp::create(b, ret.getLoc(), value, out);
    }
    func::ReturnOp::create(b, ret.getLoc());
    ret.erase();
    func.setType(
        FunctionType::get(func.getContext(), func.getArgumentTypes(), {}));
    func.removeResAttrsAttr();
  }
  return success();
}

struct ApproximateMath
    : public PassWrapper<ApproximateMath, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ApproximateMath)
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect,
                    vector::VectorDialect>();
  }
  void runOnOperation() override {
    if (failed(approximateMath(getOperation())))
      signalPassFailure();
  }
};

/// Vector ops of rank 2 and more become ops on native-rank vectors.
struct LowerVectors
    : public PassWrapper<LowerVectors, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerVectors)
  void runOnOperation() override {
    MLIRContext *ctx = &getContext();
    auto apply = [&](auto populate) {
      RewritePatternSet patterns(ctx);
      populate(patterns);
      if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
        signalPassFailure();
    };
    // A mask around a transfer becomes the transfer's own, which unrolls.
    apply(vector::populateVectorMaskLoweringPatternsForSideEffectingOps);
    apply([](RewritePatternSet &p) {
      vector::populateVectorMultiReductionLoweringPatterns(
          p, vector::VectorMultiReductionLowering::InnerParallel);
      vector::populateVectorContractLoweringPatterns(
          p, vector::VectorContractLowering::OuterProduct);
      vector::populateVectorOuterProductLoweringPatterns(p);
    });
    apply([](RewritePatternSet &p) {
      vector::populateVectorMaskOpLoweringPatterns(p);
      vector::populateVectorBroadcastLoweringPatterns(p);
      vector::populateVectorTransferPermutationMapLoweringPatterns(p);
      vector::populateVectorTransposeLoweringPatterns(
          p, vector::VectorTransposeLowering::Shuffle1D);
      vector::populateVectorShapeCastLoweringPatterns(p);
    });
  }
};

void buildPasses(PassManager &pm) {
  auto onFuncs = [&](std::unique_ptr<Pass> pass) {
    pm.addNestedPass<func::FuncOp>(std::move(pass));
  };
  onFuncs(createConvertLinalgToLoopsPass());
  onFuncs(createCanonicalizerPass());
  onFuncs(createCSEPass());
  onFuncs(memref::createExpandOpsPass());
  onFuncs(std::make_unique<ApproximateMath>());
  onFuncs(std::make_unique<LowerVectors>());
  VectorTransferToSCFOptions transfers;
  transfers.enableFullUnroll();
  onFuncs(createConvertVectorToSCFPass(transfers));
  onFuncs(createCanonicalizerPass());
  onFuncs(createLowerAffinePass());
  onFuncs(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  onFuncs(createLowerAffinePass());
  onFuncs(arith::createArithExpandOpsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  ConvertVectorToLLVMPassOptions vec;
  pm.addPass(createConvertVectorToLLVMPass(vec));
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  FinalizeMemRefToLLVMConversionPassOptions mem;
  mem.useAlignedAlloc = true;
  pm.addPass(createFinalizeMemRefToLLVMConversionPass(mem));
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

/// The first op outside the LLVM dialect, as a message that names it.
LogicalResult checkAllLLVM(ModuleOp module) {
  WalkResult r = module.walk([&](Operation *op) {
    if (op == module ||
        (op->getDialect() && op->getDialect()->getNamespace() == "llvm"))
      return WalkResult::advance();
    op->emitError("'") << op->getName() << "' has no lowering for the CPU";
    return WalkResult::interrupt();
  });
  return failure(r.wasInterrupted());
}

struct LowerToLLVM : public PassWrapper<LowerToLLVM, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToLLVM)
  StringRef getArgument() const override { return "pto-lower-to-llvm"; }
  StringRef getDescription() const override {
    return "Lower kernels to the LLVM dialect, in pto's calling convention";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, memref::MemRefDialect, scf::SCFDialect,
                    bufferization::BufferizationDialect>();
  }
  void runOnOperation() override {
    auto host = targets::parseTarget("cpu");
    if (!host) {
      getOperation().emitError(llvm::toString(host.takeError()));
      return signalPassFailure();
    }
    if (failed(lowerToLLVM(getOperation(), *host)))
      signalPassFailure();
  }
};

} // namespace

void registerPipelinePasses() { PassRegistration<LowerToLLVM>(); }

LogicalResult lowerToLLVM(ModuleOp module, const targets::Target &target) {
  // Stages outside a pass manager create ops of these dialects.
  module.getContext()
      ->loadDialect<LLVM::LLVMDialect, arith::ArithDialect,
                    bufferization::BufferizationDialect, func::FuncDialect,
                    linalg::LinalgDialect, memref::MemRefDialect,
                    scf::SCFDialect, tensor::TensorDialect,
                    vector::VectorDialect>();
  if (failed(prepareTensors(module)) || failed(cleanUp(module)))
    return failure();
  bool tensors = false;
  for (auto func : module.getOps<func::FuncOp>())
    tensors |= hasTensors(func) ||
               llvm::any_of(func.getArgumentTypes(),
                            [](Type t) { return isa<TensorType>(t); });
  if (tensors && failed(bufferise(module)))
    return failure();
  if (failed(normaliseResults(module)))
    return failure();
  // Sizes become types before micro-kernels are made for them.
  if (failed(cleanUp(module)) ||
      (splitParallelTails(module) && failed(cleanUp(module))))
    return failure();
  if (failed(expandMicroKernels(module)) || failed(cleanUp(module)))
    return failure();
  if (failed(eraseSelfCopies(module)) || failed(expandStridedCopies(module)) ||
      failed(checkBuffers(module)) || failed(wrapEntries(module)) ||
      failed(lowerParallelLoops(module)) || failed(freeBuffers(module)))
    return failure();
  PassManager pm(module.getContext());
  buildPasses(pm);
  if (failed(pm.run(module)))
    return failure();
  return checkAllLLVM(module);
}

} // namespace pto::lowering
