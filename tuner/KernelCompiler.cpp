//===- KernelCompiler.cpp - One kernel, from its text to an object --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/KernelCompiler.h"
#include "lowering/pipeline/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "schedules/engine/Engine.h"
#include "tuner/ToolError.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <thread>

using namespace mlir;

namespace pto::tuner {
namespace {

template <typename T> std::string printed(T &&value) {
  std::string text;
  llvm::raw_string_ostream out(text);
  value.print(out);
  return text;
}

class Compilation {
public:
  Compilation(const KernelJob &job, const KernelOptions &options)
      : job(job), options(options), context(registry()) {}

  llvm::Expected<CompiledKernel> run() {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      messages += (messages.empty() ? "" : "\n  ") + diagnostic.str();
      return success();
    });
    result.symbol = job.symbol;
    result.choice = job.choice;
    module = parseSourceString<ModuleOp>(job.text, &context);
    if (!module)
      return failed("the kernel's text does not parse");
    keep("kernel.mlir", *module);
    if (options.schedule) {
      if (llvm::Error error = options.schedule(module, *options.target,
                                               options.threads, result.choice))
        return std::move(error);
      keep("scheduled.mlir", *module);
    }
    if (llvm::Error error = readArguments())
      return std::move(error);
    if (llvm::Error error = compilePrepack())
      return std::move(error);
    return compileBody();
  }

private:
  static MLIRContext::Threading noThreads() {
    return MLIRContext::Threading::DISABLED;
  }

  struct Context : MLIRContext {
    explicit Context(const DialectRegistry &registry)
        : MLIRContext(registry, noThreads()) {
      loadAllAvailableDialects();
    }
  };

  /// Built once: filling a registry takes longer than copying it.
  static const DialectRegistry &registry() {
    static const DialectRegistry *all = [] {
      auto *made = new DialectRegistry();
      lowering::registerAll(*made);
      schedules::registerSchedules(*made);
      return made;
    }();
    return *all;
  }

  llvm::Error failed(const llvm::Twine &what) {
    return toolError(BadInput, "kernel " + job.symbol + ": " + what +
                                   (messages.empty() ? "" : "\n  ") + messages);
  }

  void keep(const char *stage, ModuleOp op) {
    if (options.keepStages)
      result.stages.emplace_back(stage, printed(op) + "\n");
  }

  llvm::Error readArguments() {
    auto kernel = module->lookupSymbol<func::FuncOp>("kernel");
    if (!kernel)
      return failed("the schedule left no @kernel");
    auto prepack = module->lookupSymbol<func::FuncOp>("kernel_prepack");
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      result.argumentTypes.push_back(printed(kernel.getArgument(i).getType()));
      ArgumentSource source{false, i};
      if (auto raw = kernel.getArgAttrOfType<IntegerAttr>(i, "pto.arg"))
        source.index = raw.getInt();
      else if (auto packed =
                   kernel.getArgAttrOfType<IntegerAttr>(i, "pto.prepack"))
        source = {true, static_cast<unsigned>(packed.getInt())};
      result.arguments.push_back(source);
    }
    if (!prepack) {
      result.arguments.clear();
      return llvm::Error::success();
    }
    unsigned results = prepack.getNumResults();
    for (Type type : prepack.getResultTypes())
      result.prepackTypes.push_back(printed(type));
    for (unsigned i = 0; i + results < prepack.getNumArguments(); ++i) {
      auto raw = prepack.getArgAttrOfType<IntegerAttr>(i, "pto.arg");
      if (!raw)
        return failed("@kernel_prepack's arguments carry no pto.arg");
      result.prepackInputs.push_back(raw.getInt());
    }
    return llvm::Error::success();
  }

  /// Prepack runs here and now, so it is compiled for this machine.
  llvm::Error compilePrepack() {
    auto prepack = module->lookupSymbol<func::FuncOp>("kernel_prepack");
    if (!prepack)
      return llvm::Error::success();
    result.prepackSymbol = "prepack." + job.symbol;
    OwningOpRef<ModuleOp> alone(ModuleOp::create(module->getLoc()));
    prepack->remove();
    alone->push_back(prepack);
    prepack->setAttr("pto.entry",
                     StringAttr::get(&context, result.prepackSymbol));
    auto host = targets::parseTarget("cpu");
    if (!host)
      return host.takeError();
    if (mlir::failed(lowering::lowerToLLVM(*alone, *host)))
      return failed("cannot lower its prepack part");
    lowering::ObjectOptions objectOptions;
    objectOptions.optLevel = 2;
    auto object = lowering::emitObject(*alone, *host, objectOptions);
    if (!object)
      return object.takeError();
    result.prepackObject = std::move(*object);
    return llvm::Error::success();
  }

  llvm::Expected<CompiledKernel> compileBody() {
    auto kernel = module->lookupSymbol<func::FuncOp>("kernel");
    kernel->setAttr("pto.entry", StringAttr::get(&context, job.symbol));
    kernel.setPublic();
    if (mlir::failed(lowering::lowerToLLVM(*module, *options.target)))
      return failed("cannot lower it");
    keep("llvm.mlir", *module);
    lowering::ObjectOptions objectOptions;
    objectOptions.optLevel = options.optLevel;
    objectOptions.assembly = options.assembly;
    objectOptions.llvmIr = options.llvmIr;
    auto object = lowering::emitObject(*module, *options.target, objectOptions);
    if (!object)
      return failed(llvm::toString(object.takeError()));
    result.object = std::move(*object);
    if (options.keepStages)
      if (llvm::Error error = keepText())
        return std::move(error);
    return std::move(result);
  }

  llvm::Error keepText() {
    for (bool assembly : {false, true}) {
      lowering::ObjectOptions text;
      text.optLevel = options.optLevel;
      text.assembly = assembly;
      text.llvmIr = !assembly;
      auto bytes = lowering::emitObject(*module, *options.target, text);
      if (!bytes)
        return failed(llvm::toString(bytes.takeError()));
      result.stages.emplace_back(assembly ? "s" : "ll",
                                 std::string(bytes->begin(), bytes->end()));
    }
    return llvm::Error::success();
  }

  const KernelJob &job;
  const KernelOptions &options;
  Context context;
  OwningOpRef<ModuleOp> module;
  CompiledKernel result;
  std::string messages;
};

} // namespace

llvm::Expected<CompiledKernel> compileKernel(const KernelJob &job,
                                             const KernelOptions &options) {
  auto compiled = Compilation(job, options).run();
  if (compiled || !options.schedule)
    return compiled;
  std::string reason = llvm::toString(compiled.takeError());
  KernelJob plainJob = job;
  plainJob.choice = {"none", "", "",
                     "its schedule does not compile: " + reason, ""};
  KernelOptions plain = options;
  plain.schedule = nullptr;
  return Compilation(plainJob, plain).run();
}

llvm::Expected<std::vector<CompiledKernel>>
compileKernels(const std::vector<KernelJob> &jobs, const KernelOptions &options,
               unsigned workers) {
  std::vector<CompiledKernel> results(jobs.size());
  std::vector<std::optional<llvm::Error>> errors(jobs.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  auto work = [&] {
    for (size_t i; !stop && (i = next++) < jobs.size();) {
      auto compiled = compileKernel(jobs[i], options);
      if (compiled) {
        results[i] = std::move(*compiled);
      } else {
        errors[i].emplace(compiled.takeError());
        stop = true;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < workers && i < jobs.size(); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();

  llvm::Error first = llvm::Error::success();
  bool isFirst = true;
  for (std::optional<llvm::Error> &error : errors) {
    if (!error)
      continue;
    if (isFirst)
      first = llvm::joinErrors(std::move(first), std::move(*error));
    else
      llvm::consumeError(std::move(*error));
    isFirst = false;
  }
  if (first)
    return std::move(first);
  return std::move(results);
}

} // namespace pto::tuner
