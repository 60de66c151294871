//===- Compile.cpp - A model to an artifact -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The flow, in order: readVersions (one for each set of shapes, then the
// general one, each as kernels), compile (KernelCompiler.h), packWeights
// (Prepack.h), lowerMain (lowering/main), writeOutput.
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
#include "tuner/FileChecks.h"
#include "tuner/OutputFile.h"
#include "tuner/Prepack.h"
#include "tuner/SharedPacking.h"
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

/// The model for some shapes of its inputs.
struct Version {
  std::string label; ///< "x=1x3,y=4", or "general".
  bool general = false;
  OwningOpRef<ModuleOp> module;
  std::vector<size_t> jobs; ///< Its kernels, among all.
};

/// "x=1x3,y=?"
std::string inputText(func::FuncOp main) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (auto [i, type] : llvm::enumerate(main.getArgumentTypes())) {
    auto name = main.getArgAttrOfType<StringAttr>(i, "pto.name");
    out << (i ? "," : "") << (name ? name.str() : "input" + std::to_string(i))
        << '=';
    bool first = true;
    for (int64_t size : cast<ShapedType>(type).getShape()) {
      out << (first ? "" : "x");
      if (ShapedType::isDynamic(size))
        out << '?';
      else
        out << size;
      first = false;
    }
  }
  return text;
}

bool isStatic(func::FuncOp main) {
  return llvm::all_of(main.getArgumentTypes(), [](Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    return !shaped || shaped.hasStaticShape();
  });
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
    if (llvm::Error error = checkWritable(options.output))
      return std::move(error);
    if (llvm::Error error = temps.open())
      return std::move(error);
    openContext();
    ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        messages += (messages.empty() ? "" : "\n  ") + diagnostic.str();
      return success();
    });
    if (llvm::Error error = readVersions())
      return std::move(error);
    if (llvm::Error error =
            *kind == OutputKind::Mlir ? writeMlir() : generateCode(*kind))
      return std::move(error);
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

  //===--- Model to kernels -----------------------------------------------===//

  void openContext() {
    DialectRegistry registry;
    lowering::registerAll(registry);
    schedules::registerSchedules(registry); // For scripts of the user.
    context = std::make_unique<MLIRContext>(registry);
    context->loadAllAvailableDialects();
  }

  llvm::Error readVersions() {
    for (const ShapeSet &set : options.shapes)
      if (llvm::Error error = addVersion(set, /*general=*/false))
        return error;
    if (options.pinned)
      return versions.empty() ? addVersion({}, /*general=*/false)
                              : llvm::Error::success();
    if (llvm::Error error = addVersion({}, /*general=*/true)) {
      if (versions.empty())
        return error;
      dropGeneral(std::move(error));
      return llvm::Error::success();
    }
    // A model without open dims has one version.
    if (isStatic(mainOf(versions.back())))
      versions.erase(versions.begin() + 1, versions.end());
    return llvm::Error::success();
  }

  /// The versions for the given shapes serve without it.
  void dropGeneral(llvm::Error error) {
    if (!versions.empty() && versions.back().general)
      versions.pop_back();
    messages.clear();
    report.warnings.push_back("only the shapes given can be run, others not: " +
                              llvm::toString(std::move(error)));
  }

  static func::FuncOp mainOf(Version &version) {
    return version.module->lookupSymbol<func::FuncOp>("main");
  }

  llvm::Error addVersion(const ShapeSet &set, bool general) {
    lowering::ImportOptions import;
    import.shapes = set;
    import.pinDynamicDims = options.pinned;
    llvm::SmallVector<std::string> warnings;
    auto read =
        llvm::sys::path::extension(options.model) == ".mlir"
            ? lowering::readMlir(*context, options.model, import, &warnings)
            : lowering::importOnnx(*context, options.model, import, &warnings);
    if (!read)
      return toolError(BadInput, llvm::toString(read.takeError()));
    for (const std::string &warning : warnings)
      if (!llvm::is_contained(report.warnings, warning))
        report.warnings.push_back(warning);
    Version version;
    version.module = std::move(*read);
    version.general = general;
    if (llvm::Error error = save(1, "imported", version))
      return error;
    if (llvm::Error error = formKernels(version))
      return error;
    if (func::FuncOp main = mainOf(version))
      version.label = general && !isStatic(main) ? "general" : inputText(main);
    else
      return failed("there is no @main");
    versions.push_back(std::move(version));
    return llvm::Error::success();
  }

  /// A stage of a version; its number tells versions apart.
  llvm::Error save(unsigned stage, llvm::StringRef name, Version &version) {
    size_t index = &version >= versions.data() &&
                           &version < versions.data() + versions.size()
                       ? &version - versions.data()
                       : versions.size();
    std::string number = index ? ".v" + std::to_string(index) : "";
    return temps.save(stage, name + number + ".mlir", *version.module);
  }

  llvm::Error formKernels(Version &version) {
    ModuleOp module = *version.module;
    // A file in the "kernels" form is taken as it is.
    bool formed = llvm::any_of(module.getOps<func::FuncOp>(), [](auto func) {
      return func->hasAttr("pto.kernel");
    });
    lowering::GraphOptions graph;
    graph.optimize = options.optimize;
    if (!formed && mlir::failed(lowering::buildKernels(module, graph)))
      return failed("cannot form kernels");
    if (auto name = module->getAttrOfType<StringAttr>("pto.model"))
      report.model = name.str();
    else
      report.model = llvm::sys::path::stem(options.model).str();
    return save(2, "kernels", version);
  }

  //===--- Kernels to code ------------------------------------------------===//

  /// Adds a job for each distinct kernel that @main calls, in the order of use.
  /// Versions share kernels that do not depend on the open sizes.
  void collectJobs(Version &version) {
    llvm::StringMap<size_t> bySymbol; // of this version
    mainOf(version).walk([&](func::CallOp call) {
      auto [known, isNew] = bySymbol.try_emplace(call.getCallee(), jobs.size());
      if (isNew) {
        auto kernel =
            version.module->lookupSymbol<func::FuncOp>(call.getCallee());
        known->second = jobOf(kernel, version);
        version.jobs.push_back(known->second);
        setFlops(kernel);
      }
      call.setCallee(jobs[known->second].symbol);
      ++kernelReports[known->second].calls;
    });
  }

  /// The number of the job for `kernel`, which gets the job's name.
  size_t jobOf(func::FuncOp kernel, const Version &version) {
    KernelJob job;
    job.symbol = kernel.getName().str();
    job.hash = lowering::kernelHash(kernel);
    job.text = textOf(*schedules::isolateKernel(kernel, options.target));
    auto [known, isNew] = jobBySymbol.try_emplace(job.symbol, jobs.size());
    if (!isNew) {
      if (jobs[known->second].text == job.text)
        return known->second;
      // Eight digits of a hash may collide.
      job.symbol += "_" + std::to_string(jobs.size());
      kernel.setName(job.symbol);
      jobBySymbol[job.symbol] = jobs.size();
    }
    if (auto signature = signatureOf(kernel)) {
      KernelFeatures features = featuresOf(kernel, *signature);
      job.op = features.op;
      job.features = features.features;
    } else {
      llvm::consumeError(signature.takeError());
    }
    kernelReports.push_back({job.symbol, job.hash, version.label, 0, {}});
    jobs.push_back(std::move(job));
    return jobs.size() - 1;
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

  llvm::Error chooseSchedules() {
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
    for (auto [job, kernel] : llvm::zip(jobs, kernelReports)) {
      // Shapes were tuned, not the version for all others.
      if (versions.size() > 1 && kernel.version == "general")
        continue;
      if (job.choice.source != "record" && job.choice.source != "user")
        missing += "\n  " + job.symbol + ": " + job.choice.reason;
    }
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
    for (Version &version : versions)
      collectJobs(version);
    if (llvm::Error error = chooseSchedules())
      return error;
    kernels.resize(jobs.size());
    SharedPacking packing;
    for (Version &version : versions) {
      if (&version != &versions.front()) {
        std::vector<KernelJob *> open;
        for (size_t job : version.jobs)
          if (kernels[job].symbol.empty())
            open.push_back(&jobs[job]);
        packing.suggest(*version.module, open);
      }
      if (llvm::Error error = compileVersion(version, kind)) {
        if (!version.general || versions.size() == 1)
          return error;
        dropGeneral(std::move(error));
        break;
      }
      packing.learn(*version.module, kernelsOf(version));
    }
    reportKernels();
    return saveStages();
  }

  llvm::Error compileVersion(Version &version, OutputKind kind) {
    std::vector<size_t> numbers;
    std::vector<KernelJob> todo;
    for (size_t job : version.jobs)
      if (kernels[job].symbol.empty()) {
        numbers.push_back(job);
        todo.push_back(jobs[job]);
      }
    unsigned workers =
        options.jobs ? options.jobs : targets::detectHost().cores;
    KernelOptions kernel = kernelOptions(kind);
    auto compiled = compileKernels(todo, kernel, workers);
    if (!compiled)
      return compiled.takeError();
    kernel.schedule = nullptr;
    for (auto [number, done] : llvm::zip(numbers, *compiled)) {
      if (!canPrepack(*version.module, done)) {
        auto plain = compileKernel(jobs[number], kernel);
        if (!plain)
          return plain.takeError();
        plain->choice = {"none", "", "",
                         "the weights of a call are no constants", ""};
        done = std::move(*plain);
      }
      const ScheduleChoice &got = done.choice;
      if (jobs[number].choice.source == "user" && got.source != "user")
        return toolError(BadInput, "--schedule: " + jobs[number].choice.name +
                                       ": kernel " + done.symbol + ": " +
                                       got.reason);
      if (options.optimize &&
          (got.source == "none" ||
           (jobs[number].choice.source == "record" && got.source != "record")))
        report.warnings.push_back("kernel " + done.symbol +
                                  " has no schedule of its own: " + got.reason);
    }
    for (auto [number, done] : llvm::zip(numbers, *compiled))
      kernels[number] = std::move(done);
    return llvm::Error::success();
  }

  std::vector<const CompiledKernel *> kernelsOf(const Version &version) const {
    std::vector<const CompiledKernel *> result;
    for (size_t job : version.jobs)
      result.push_back(&kernels[job]);
    return result;
  }

  /// Leaves out those of a version that was dropped.
  void reportKernels() {
    std::vector<CompiledKernel> built;
    std::vector<size_t> moved(kernels.size());
    for (auto [i, kernel] : llvm::enumerate(kernels)) {
      moved[i] = built.size();
      if (kernel.symbol.empty())
        continue;
      report.kernels.push_back(kernelReports[i]);
      report.kernels.back().choice = kernel.choice;
      built.push_back(std::move(kernel));
    }
    kernels = std::move(built);
    for (Version &version : versions)
      for (size_t &job : version.jobs)
        job = moved[job];
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
    std::vector<ModuleOp> modules;
    int64_t weights = 0;
    for (Version &version : versions) {
      if (llvm::Error error = applyPrepack(*version.module, kernelsOf(version)))
        return error;
      if (llvm::Error error = save(8, "main", version))
        return error;
      modules.push_back(*version.module);
      // Versions share most weights.
      weights = std::max(weights, weightBytes(*version.module));
    }

    lowering::MainOptions main;
    main.prefix = lowering::sanitiseName(options.name.empty() ? report.model
                                                              : options.name);
    main.threads = threads();
    main.version = "pto " PTO_VERSION ", LLVM " LLVM_VERSION_STRING;
    bool beside = (options.weightsBeside || weights > maxInlineWeights) &&
                  kind == OutputKind::SharedLibrary && weights > 0;
    if (beside)
      main.weightsFile =
          (llvm::sys::path::stem(options.output) + ".weights").str();
    auto lowered = lowering::lowerMain(modules, options.target, main);
    if (mlir::failed(lowered))
      return failed("cannot lower @main");
    lowering::Program &program = *lowered;
    for (auto [version, info] : llvm::zip(versions, program.versions)) {
      report.versions.push_back(
          {version.label, info.stepCount, info.arenaBytes, info.addedWeights});
      report.arenaBytes = std::max(report.arenaBytes, info.arenaBytes);
    }
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
  static int64_t weightBytes(ModuleOp module) {
    int64_t bytes = 0;
    module.lookupSymbol<func::FuncOp>("main").walk([&](Operation *op) {
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

  /// One module after the other, as --split-input-file reads them.
  llvm::Error writeMlir() {
    std::string text;
    for (Version &version : versions)
      text += (text.empty() ? "" : "\n// -----\n\n") + textOf(*version.module) +
              "\n";
    return writeTextFile(options.output, text);
  }

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
    return writeOutputFile(
        path, [&](llvm::raw_ostream &out) { program.weights.writeFile(out); });
  }

  const CompileOptions &options;
  Temps temps;
  std::unique_ptr<MLIRContext> context;
  std::vector<Version> versions; ///< For given shapes, then the general one.
  std::vector<KernelJob> jobs;   ///< Of all versions.
  llvm::StringMap<size_t> jobBySymbol;
  std::vector<KernelReport> kernelReports; ///< One for each job.
  std::vector<CompiledKernel> kernels;     ///< The same; no symbol: not built.
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
