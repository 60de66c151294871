//===- EmitObject.cpp - LLVM dialect to machine code
//------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/EmitObject.h"
#include "lowering/pipeline/Pipeline.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

using namespace mlir;

namespace pto::lowering {

static void initialiseTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmParsers();
    llvm::InitializeAllAsmPrinters();
  });
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const targets::Target &target, unsigned optLevel) {
  initialiseTargets();
  std::string error;
  llvm::Triple triple(target.triple);
  const llvm::Target *llvmTarget =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget)
    return llvm::createStringError("no code generator for '" + target.triple +
                                   "': " + error);
  auto level = optLevel == 0   ? llvm::CodeGenOptLevel::None
               : optLevel == 1 ? llvm::CodeGenOptLevel::Less
               : optLevel == 2 ? llvm::CodeGenOptLevel::Default
                               : llvm::CodeGenOptLevel::Aggressive;
  llvm::TargetOptions options;
  // FMAs come from `fastmath<contract>` alone.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(llvmTarget->createTargetMachine(
      triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
      std::nullopt, level));
}

llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVM(ModuleOp module, llvm::LLVMContext &context,
                const targets::Target &target, llvm::TargetMachine &machine,
                unsigned optLevel) {
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, context, "pto");
  if (!llvmModule)
    return llvm::createStringError("translation to LLVM IR failed");
  llvmModule->setTargetTriple(machine.getTargetTriple());
  llvmModule->setDataLayout(machine.createDataLayout());
  llvmModule->setPICLevel(llvm::PICLevel::BigPIC);
  for (llvm::Function &f : *llvmModule) {
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      f.addFnAttr("target-features", target.features);
    f.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
    f.addFnAttr("min-legal-vector-width", std::to_string(target.vectorBits));
    f.addFnAttr(llvm::Attribute::NoUnwind);
  }
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = optLevel >= 2;
  tuning.SLPVectorization = optLevel >= 2;
  tuning.LoopUnrolling = optLevel >= 2;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  auto level = optLevel == 0   ? llvm::OptimizationLevel::O0
               : optLevel == 1 ? llvm::OptimizationLevel::O1
               : optLevel == 2 ? llvm::OptimizationLevel::O2
                               : llvm::OptimizationLevel::O3;
  llvm::ModulePassManager passes =
      optLevel == 0 ? builder.buildO0DefaultPipeline(level)
                    : builder.buildPerModuleDefaultPipeline(level);
  passes.run(*llvmModule, mam);
  return llvmModule;
}

llvm::Expected<llvm::SmallVector<char, 0>>
emitObject(ModuleOp module, const targets::Target &target,
           const ObjectOptions &options) {
  auto machine = createTargetMachine(target, options.optLevel);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto llvmModule =
      translateToLLVM(module, context, target, **machine, options.optLevel);
  if (!llvmModule)
    return llvmModule.takeError();
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  if (options.llvmIr) {
    (*llvmModule)->print(os, nullptr);
    return bytes;
  }
  llvm::legacy::PassManager codegen;
  auto type = options.assembly ? llvm::CodeGenFileType::AssemblyFile
                               : llvm::CodeGenFileType::ObjectFile;
  if ((*machine)->addPassesToEmitFile(codegen, os, nullptr, type))
    return llvm::createStringError("the target cannot emit this file type");
  codegen.run(**llvmModule);
  return bytes;
}

} // namespace pto::lowering
