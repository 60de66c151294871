//===- Graph.cpp - The order of the steps, and their passes ---------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Graph.h"
#include "lowering/graph/Passes.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace pto::lowering {

namespace {

/// A reshaped constant is a constant: weights stay recognisable as such.
template <typename Reshape>
struct FoldReshapedConstant : OpRewritePattern<Reshape> {
  using OpRewritePattern<Reshape>::OpRewritePattern;
  LogicalResult matchAndRewrite(Reshape op,
                                PatternRewriter &rewriter) const override {
    auto constant = op.getSrc().template getDefiningOp<arith::ConstantOp>();
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!constant || !type.hasStaticShape())
      return failure();
    auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue());
    if (!resource)
      return failure();
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, cast<TypedAttr>(
                DenseResourceElementsAttr::get(type, resource.getRawHandle())));
    return success();
  }
};

} // namespace

/// Canonicalisation and common subexpressions of @main. Kernels are left
/// alone: folding a copy to an output away would lose the destination.
static LogicalResult simplifyMain(ModuleOp module) {
  auto main = cast_or_null<func::FuncOp>(findMain(module));
  if (!main)
    return failure();
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    name.getCanonicalizationPatterns(patterns, context);
  patterns.add<FoldReshapedConstant<tensor::CollapseShapeOp>,
               FoldReshapedConstant<tensor::ExpandShapeOp>>(context);
  // Not converging is no error; what is left is correct.
  (void)applyPatternsGreedily(main, std::move(patterns));
  IRRewriter rewriter(context);
  DominanceInfo dominance(main);
  eliminateCommonSubExpressions(rewriter, dominance, main);
  return success();
}

LogicalResult buildKernels(ModuleOp module, const GraphOptions &options) {
  auto check = [&](const char *step) -> LogicalResult {
    if (succeeded(mlir::verify(module)))
      return success();
    return module.emitError("the module is invalid after ") << step;
  };
  if (failed(simplifyMain(module)) || failed(generalizeOps(module)))
    return failure();
  if (options.optimize) {
    if (failed(splitProducts(module)) || failed(check("splitting products")) ||
        failed(foldBatchNorm(module)) || failed(assignLayouts(module)) ||
        failed(check("assigning layouts")) || failed(simplifyMain(module)) ||
        failed(sinkReshapes(module)) || failed(check("sinking reshapes")))
      return failure();
  }
  if (failed(extractConstants(module, /*evaluate=*/true)) ||
      failed(simplifyMain(module)) ||
      failed(formGroups(module, options.optimize)) ||
      failed(check("forming groups")) || failed(outlineGroups(module)) ||
      failed(localiseSizes(module)) || failed(check("outlining kernels")))
    return failure();
  if (options.optimize &&
      (failed(collapseKernels(module)) || failed(check("collapsing kernels"))))
    return failure();
  if (failed(nameKernels(module)) || failed(simplifyMain(module)) ||
      failed(check("naming kernels")))
    return failure();
  return verifyKernels(module);
}

namespace {

/// A step as a pass.
class StepPass : public PassWrapper<StepPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StepPass)
  using Step = LogicalResult (*)(ModuleOp);

  StepPass(StringRef name, StringRef description, Step step)
      : name(name), description(description), step(step) {}
  StringRef getArgument() const override { return name; }
  StringRef getDescription() const override { return description; }
  StringRef getName() const override { return name; }
  void getDependentDialects(DialectRegistry &registry) const override {
    // The last three are what evaluating constants lowers to.
    registry.insert<affine::AffineDialect, arith::ArithDialect,
                    func::FuncDialect, linalg::LinalgDialect,
                    tensor::TensorDialect, bufferization::BufferizationDialect,
                    memref::MemRefDialect, scf::SCFDialect>();
  }
  void runOnOperation() override {
    if (failed(step(getOperation())))
      signalPassFailure();
  }

private:
  StringRef name, description;
  Step step;
};

} // namespace

static void registerStep(StringRef name, StringRef description,
                         StepPass::Step step) {
  mlir::registerPass([=]() -> std::unique_ptr<Pass> {
    return std::make_unique<StepPass>(name, description, step);
  });
}

void registerGraphPasses() {
  static bool once = [] {
    registerStep("pto-generalize", "Named linalg ops to linalg.generic",
                 generalizeOps);
    registerStep("pto-split-products", "Cut products become several",
                 splitProducts);
    registerStep("pto-fold-batch-norm",
                 "Per-channel affine steps into constant weights",
                 foldBatchNorm);
    registerStep("pto-layout", "Channels last, transposes into indexing maps",
                 assignLayouts);
    registerStep("pto-sink-reshapes", "Reshapes behind elementwise users",
                 sinkReshapes);
    registerStep("pto-constants", "Moves constant work to @constants",
                 [](ModuleOp m) { return extractConstants(m, false); });
    registerStep("pto-evaluate-constants", "Runs what depends on constants",
                 [](ModuleOp m) { return extractConstants(m, true); });
    registerStep("pto-fuse", "Marks the ops of each kernel, fused",
                 [](ModuleOp m) { return formGroups(m, true); });
    registerStep("pto-no-fuse", "Marks each op as a kernel of its own",
                 [](ModuleOp m) { return formGroups(m, false); });
    registerStep("pto-outline", "Marked groups to kernel functions",
                 outlineGroups);
    registerStep("pto-localise-sizes", "Sizes from the kernel's own tensors",
                 localiseSizes);
    registerStep("pto-collapse", "Kernels with as few dims as they need",
                 collapseKernels);
    registerStep("pto-name-kernels", "Names, keys, equal code kept once",
                 nameKernels);
    registerStep("pto-verify-kernels", "Checks the Kernels form",
                 verifyKernels);
    registerStep("pto-build-kernels", "All steps from @main to kernels",
                 [](ModuleOp m) { return buildKernels(m, {}); });
    registerStep("pto-build-kernels-O0", "Kernels without fusion or layouts",
                 [](ModuleOp m) {
                   GraphOptions options;
                   options.optimize = false;
                   return buildKernels(m, options);
                 });
    return true;
  }();
  (void)once;
}

} // namespace pto::lowering
