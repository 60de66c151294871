//===- Compile.cpp - A model to an artifact -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The flow, in order: readModel, formKernels, compile (KernelCompiler.h),
// packWeights (Prepack.h), lowerMain (lowering/main), writeOutput.
//
//===----------------------------------------------------------------------===//

#include "tuner/Compile.h"
#include "lowering/graph/Graph.h"
#include "lowering/main/Header.h"
#include "lowering/main/Main.h"
#include "lowering/mlir/Read.h"
#include "lowering/onnx/Import.h"
#include "lowering/pipeline/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "schedules/engine/Engine.h"
#include "targets/Host.h"
#include "targets/cpu/DataObject.h"
#include "targets/cpu/Link.h"
#include "targets/cpu/Runtime.h"
#include "tuner/Choose.h"
#include "tuner/Prepack.h"
#include "tuner/Temps.h"
#include "tuner/ToolError.h"
#include "tuner/worker/KernelFeatures.h"
#include "tuner/worker/RawKernel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace mlir;

namespace pto::tuner {
namespace {

/// Above this, weights go to a file of their own: ELF's small code model ends
/// at 2 GiB, and a mapped file starts faster.
constexpr int64_t maxInlineWeights = int64_t(1) << 30;

std::string textOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  op->print(out);
  return text;
}

class ModelCompiler {
public:
  explicit ModelCompiler(const CompileOptions &options)
      : options(options), temps(options.saveTemps) {}

  llvm::Expected<CompileReport> run() {
    auto start = std::chrono::steady_clock::now();
    report.output = options.output;
    auto kind = outputKindOf(options.output);
    if (!kind)
      return kind.takeError();
    if (llvm::Error error = checkOutputFolder())
      return std::move(error);
    if (llvm::Error error = temps.open())
      return std::move(error);
    if (llvm::Error error = readModel())
      return std::move(error);
    ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        messages += (messages.empty() ? "" : "\n  ") + diagnostic.str();
      return success();
    });
    if (llvm::Error error = formKernels())
      return std::move(error);
    if (*kind == OutputKind::Mlir) {
      if (llvm::Error error =
              writeTextFile(options.output, textOf(*module) + "\n"))
        return std::move(error);
    } else {
      if (llvm::Error error = generateCode(*kind))
        return std::move(error);
    }
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    return std::move(report);
  }

private:
  llvm::Error failed(const llvm::Twine &what) {
    return toolError(BadInput, options.model + ": " + what +
                                   (messages.empty() ? "" : "\n  ") + messages);
  }

  /// Early, not after minutes of work.
  llvm::Error checkOutputFolder() {
    llvm::StringRef folder = llvm::sys::path::parent_path(options.output);
    std::string path = folder.empty() ? "." : folder.str();
    if (!llvm::sys::fs::is_directory(path))
      return toolError(EnvironmentFailed, "cannot write " + options.output +
                                              ": there is no folder " + path);
    if (std::error_code code =
            llvm::sys::fs::access(path, llvm::sys::fs::AccessMode::Write))
      return toolError(EnvironmentFailed, "cannot write " + options.output +
                                              ": " + code.message());
    return llvm::Error::success();
  }

  //===--- Model to kernels -----------------------------------------------===//

  llvm::Error readModel() {
    DialectRegistry registry;
    lowering::registerAll(registry);
    schedules::registerSchedules(registry); // For scripts of the user.
    context = std::make_unique<MLIRContext>(registry);
    context->loadAllAvailableDialects();
    if (options.shapes.size() > 1)
      return toolError(BadInput,
                       "--shape: " + llvm::Twine(options.shapes.size()) +
                           " sets given; one artifact takes one set "
                           "so far\ncompile once for each set");
    lowering::ImportOptions import;
    if (!options.shapes.empty())
      import.shapes = options.shapes.front();
    import.pinDynamicDims = !options.dynamic;
    llvm::SmallVector<std::string> warnings;
    auto read =
        llvm::sys::path::extension(options.model) == ".mlir"
            ? lowering::readMlir(*context, options.model, import, &warnings)
            : lowering::importOnnx(*context, options.model, import, &warnings);
    if (!read)
      return toolError(BadInput, llvm::toString(read.takeError()));
    module = std::move(*read);
    report.warnings.assign(warnings.begin(), warnings.end());
    return temps.save(1, "imported.mlir", *module);
  }

  llvm::Error formKernels() {
    // A file in the "kernels" form is taken as it is.
    bool formed = llvm::any_of(module->getOps<func::FuncOp>(), [](auto func) {
      return func->hasAttr("pto.kernel");
    });
    lowering::GraphOptions graph;
    graph.optimize = options.optimize;
    if (!formed && mlir::failed(lowering::buildKernels(*module, graph)))
      return failed("cannot form kernels");
    if (auto name = (*module)->getAttrOfType<StringAttr>("pto.model"))
      report.model = name.str();
    else
      report.model = llvm::sys::path::stem(options.model).str();
    return temps.save(2, "kernels.mlir", *module);
  }

  //===--- Kernels to code ------------------------------------------------===//

  /// One job for each distinct kernel that @main calls, in the order of use.
  std::vector<KernelJob> collectJobs() {
    std::vector<KernelJob> jobs;
    llvm::StringMap<size_t> bySymbol;
    auto main = module->lookupSymbol<func::FuncOp>("main");
    if (!main)
      return jobs;
    main.walk([&](func::CallOp call) {
      auto [known, isNew] = bySymbol.try_emplace(call.getCallee(), jobs.size());
      if (isNew) {
        auto kernel = module->lookupSymbol<func::FuncOp>(call.getCallee());
        std::string hash = lowering::kernelHash(kernel);
        jobs.push_back(
            {call.getCallee().str(),
             hash,
             textOf(*schedules::isolateKernel(kernel, options.target)),
             {},
             {},
             {}});
        if (auto signature = signatureOf(kernel)) {
          KernelFeatures features = featuresOf(kernel, *signature);
          jobs.back().op = features.op;
          jobs.back().features = features.features;
        } else {
          llvm::consumeError(signature.takeError());
        }
        report.kernels.push_back({call.getCallee().str(), hash, 0, {}});
        setFlops(kernel);
      }
      ++report.kernels[known->second].calls;
    });
    return jobs;
  }

  /// For pto-run --profile.
  static void setFlops(func::FuncOp kernel) {
    auto signature = signatureOf(kernel);
    if (!signature) {
      llvm::consumeError(signature.takeError());
      return;
    }
    OpBuilder b(kernel);
    if (signature->flops > 0)
      kernel->setAttr("pto.flops", b.getI64IntegerAttr(signature->flops));
  }

  llvm::Error chooseSchedules(std::vector<KernelJob> &jobs) {
    if (!options.optimize)
      return llvm::Error::success();
    std::string notice;
    if (llvm::Error error =
            chooseRecords(options.db, options.target, threads(), jobs, notice))
      return error;
    if (!notice.empty())
      report.warnings.push_back(notice);
    if (llvm::Error error = chooseUserSchedules(
            options.schedules, *context, options.target, threads(), jobs))
      return error;
    if (!options.requireTuned)
      return llvm::Error::success();
    std::string missing;
    for (const KernelJob &job : jobs)
      if (job.choice.source != "record" && job.choice.source != "user")
        missing += "\n  " + job.symbol + ": " + job.choice.reason;
    if (missing.empty())
      return llvm::Error::success();
    return toolError(AnswerIsNo, options.model +
                                     ": kernels without a record that fits "
                                     "(--require-tuned):" +
                                     missing + "\ntune them with: pto-tune " +
                                     options.model + " --db=" + options.db);
  }

  KernelOptions kernelOptions(OutputKind kind) {
    KernelOptions kernel;
    kernel.target = &options.target;
    kernel.threads = threads();
    kernel.optLevel = options.optimize ? 3 : 1;
    kernel.assembly = kind == OutputKind::Assembly;
    kernel.llvmIr = kind == OutputKind::LlvmIr;
    kernel.keepStages = temps.enabled();
    if (options.optimize)
      kernel.schedule = applyChoice;
    return kernel;
  }

  unsigned threads() const {
    return options.threads ? options.threads : options.target.cores;
  }

  llvm::Error compileAll(OutputKind kind) {
    std::vector<KernelJob> jobs = collectJobs();
    if (llvm::Error error = chooseSchedules(jobs))
      return error;
    unsigned workers =
        options.jobs ? options.jobs : targets::detectHost().cores;
    KernelOptions kernel = kernelOptions(kind);
    auto compiled = compileKernels(jobs, kernel, workers);
    if (!compiled)
      return compiled.takeError();
    kernels = std::move(*compiled);
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (!canPrepack(*module, kernels[i])) {
        kernel.schedule = nullptr;
        auto plain = compileKernel(jobs[i], kernel);
        if (!plain)
          return plain.takeError();
        plain->choice = {"none", "", "",
                         "the weights of a call are no constants", ""};
        kernels[i] = std::move(*plain);
        kernel.schedule = applyChoice;
      }
      report.kernels[i].choice = kernels[i].choice;
      const ScheduleChoice &got = kernels[i].choice;
      if (jobs[i].choice.source == "user" && got.source != "user")
        return toolError(BadInput, "--schedule: " + jobs[i].choice.name +
                                       ": kernel " + kernels[i].symbol + ": " +
                                       got.reason);
      if (options.optimize &&
          (got.source == "none" ||
           (jobs[i].choice.source == "record" && got.source != "record")))
        report.warnings.push_back("kernel " + kernels[i].symbol +
                                  " has no schedule of its own: " + got.reason);
    }
    return saveStages();
  }

  llvm::Error saveStages() {
    for (const CompiledKernel &kernel : kernels)
      for (auto [index, stage] : llvm::enumerate(kernel.stages))
        if (llvm::Error error =
                temps.save(3 + index, kernel.symbol + "." + stage.first,
                           llvm::StringRef(stage.second)))
          return error;
    return llvm::Error::success();
  }

  llvm::Error generateCode(OutputKind kind) {
    if (llvm::Error error = compileAll(kind))
      return error;
    if (llvm::Error error = applyPrepack(*module, kernels))
      return error;
    if (llvm::Error error = temps.save(8, "main.mlir", *module))
      return error;

    lowering::MainOptions main;
    main.prefix = lowering::sanitiseName(options.name.empty() ? report.model
                                                              : options.name);
    main.threads = threads();
    main.version = "pto " PTO_VERSION ", LLVM " LLVM_VERSION_STRING;
    int64_t weights = weightBytes();
    bool beside = (options.weightsBeside || weights > maxInlineWeights) &&
                  kind == OutputKind::SharedLibrary && weights > 0;
    if (beside)
      main.weightsFile =
          (llvm::sys::path::stem(options.output) + ".weights").str();
    auto lowered = lowering::lowerMain(*module, options.target, main);
    if (mlir::failed(lowered))
      return failed("cannot lower @main");
    lowering::Program &program = *lowered;
    report.arenaBytes = program.arenaBytes;
    report.weightsBytes = program.weights.size();
    if (llvm::Error error = temps.save(9, "main.llvm.mlir", *program.module))
      return error;

    lowering::ObjectOptions object;
    object.optLevel = 2;
    object.assembly = kind == OutputKind::Assembly;
    object.llvmIr = kind == OutputKind::LlvmIr;
    auto mainObject =
        lowering::emitObject(*program.module, options.target, object);
    if (!mainObject)
      return mainObject.takeError();
    if (object.assembly || object.llvmIr)
      return writeText(*mainObject, object.llvmIr ? ';' : '#');
    return writeBinary(kind, program, main, *mainObject);
  }

  /// An upper bound: equal weights may be kept once.
  int64_t weightBytes() {
    int64_t bytes = 0;
    module->lookupSymbol<func::FuncOp>("main").walk([&](Operation *op) {
      if (op->getNumResults() != 1 || !op->hasTrait<OpTrait::ConstantLike>())
        return;
      auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
      if (type && type.hasStaticShape() && !type.getElementType().isIndex())
        bytes += type.getNumElements() *
                 llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    });
    return bytes;
  }

  //===--- Output ---------------------------------------------------------===//

  llvm::Error writeText(llvm::ArrayRef<char> mainText, char comment) {
    std::string text;
    llvm::raw_string_ostream out(text);
    auto part = [&](llvm::StringRef name, llvm::ArrayRef<char> bytes) {
      out << comment << "===--- " << name << " ---===\n"
          << llvm::StringRef(bytes.data(), bytes.size()) << '\n';
    };
    for (const CompiledKernel &kernel : kernels)
      part(kernel.symbol, kernel.object);
    part("main", mainText);
    return writeTextFile(options.output, text);
  }

  llvm::Error writeBinary(OutputKind kind, const lowering::Program &program,
                          const lowering::MainOptions &main,
                          llvm::ArrayRef<char> mainObject) {
    std::vector<targets::LinkObject> objects;
    objects.push_back(
        {"main", llvm::StringRef(mainObject.data(), mainObject.size())});
    for (const CompiledKernel &kernel : kernels)
      objects.push_back({kernel.symbol, llvm::StringRef(kernel.object.data(),
                                                        kernel.object.size())});

    targets::LinkOptions link;
    link.exports = program.exports;
    link.runtime = true;
    targets::DataSection section;
    if (program.weights.size() && main.weightsFile.empty()) {
      section.name = ".pto.weights";
      section.size = program.weights.size();
      for (const lowering::Weights::Entry &entry : program.weights.entries())
        section.chunks.push_back(
            {static_cast<uint64_t>(entry.offset), entry.bytes});
      section.symbols.push_back({lowering::weightsSymbol, 0, section.size});
      link.data = &section;
    }
    if (!main.weightsFile.empty())
      if (llvm::Error error = writeWeights(program, main.weightsFile))
        return error;
    llvm::Error error = kind == OutputKind::Object
                            ? targets::linkRelocatable(objects, options.output,
                                                       options.target, link)
                            : targets::linkShared(objects, options.output,
                                                  options.target, link);
    if (error)
      return toolError(EnvironmentFailed, options.output + ": " +
                                              llvm::toString(std::move(error)));
    llvm::SmallString<128> header(options.output);
    llvm::sys::path::replace_extension(header, "h");
    report.header = header.str().str();
    return writeTextFile(header, lowering::headerText(program, main.prefix,
                                                      targets::abiHeader()));
  }

  llvm::Error writeWeights(const lowering::Program &program,
                           llvm::StringRef file) {
    llvm::SmallString<128> path(llvm::sys::path::parent_path(options.output));
    llvm::sys::path::append(path, file);
    report.weightsFile = path.str().str();
    std::error_code code;
    llvm::raw_fd_ostream out(path, code);
    if (!code) {
      program.weights.writeFile(out);
      out.close();
      code = out.error();
      out.clear_error();
    }
    if (code)
      return toolError(EnvironmentFailed,
                       "cannot write " + path + ": " + code.message());
    return llvm::Error::success();
  }

  const CompileOptions &options;
  Temps temps;
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  std::vector<CompiledKernel> kernels;
  CompileReport report;
  std::string messages;
};

} // namespace

llvm::Expected<OutputKind> outputKindOf(llvm::StringRef path) {
  llvm::StringRef ending = llvm::sys::path::extension(path);
  if (ending == ".so")
    return OutputKind::SharedLibrary;
  if (ending == ".o")
    return OutputKind::Object;
  if (ending == ".s")
    return OutputKind::Assembly;
  if (ending == ".ll")
    return OutputKind::LlvmIr;
  if (ending == ".mlir")
    return OutputKind::Mlir;
  return toolError(BadInput, "-o " + path +
                                 ": the ending says what to make; it must be "
                                 ".so, .o, .s, .ll or .mlir");
}

llvm::Expected<CompileReport> compileModel(const CompileOptions &options) {
  return ModelCompiler(options).run();
}

} // namespace pto::tuner
