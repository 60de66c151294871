//===- ModelTasks.cpp -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/ModelTasks.h"
#include "lowering/graph/Graph.h"
#include "lowering/mlir/Read.h"
#include "lowering/onnx/Import.h"
#include "lowering/pipeline/Pipeline.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "schedules/engine/Engine.h"
#include "schedules/engine/Knobs.h"
#include "tuner/worker/KernelFeatures.h"
#include "tuner/worker/RawKernel.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace pto;
using namespace pto::tuner;
namespace json = llvm::json;

namespace {

class Collector {
public:
  Collector(const targets::Target &target, unsigned threads,
            llvm::ArrayRef<UserSchedule> userSchedules, CheckScript check,
            ModelTasks &result)
      : target(target), threads(threads), userSchedules(userSchedules),
        check(check), result(result) {}

  llvm::Error run(llvm::StringRef path,
                  const llvm::StringMap<llvm::SmallVector<int64_t>> &shapes) {
    DialectRegistry registry;
    lowering::registerAll(registry);
    schedules::registerSchedules(registry);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    // Passes that are called as functions do not load what they create.
    context.loadAllAvailableDialects();
    std::string messages;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
      if (d.getSeverity() == DiagnosticSeverity::Error)
        messages += (messages.empty() ? "" : "\n  ") + d.str();
      return success();
    });
    auto failure = [&](llvm::StringRef what) {
      return llvm::createStringError(path.str() + ": " + what.str() +
                                     (messages.empty() ? "" : ": ") + messages);
    };

    result.model = llvm::sys::path::stem(path).str();
    bool isMlir = llvm::sys::path::extension(path) == ".mlir";
    if (isMlir) {
      // A single kernel, as the database keeps it, is tuned as it is.
      OwningOpRef<ModuleOp> file = parseSourceFile<ModuleOp>(path, &context);
      if (!file)
        return failure("cannot be read");
      auto kernel = file->lookupSymbol<func::FuncOp>("kernel");
      if (kernel && !file->lookupSymbol("main")) {
        // Anything else in a module's body is not the kernel's, and can keep
        // MLIR busy for ever (an op that uses its own result).
        for (Operation &op : file->getBody()->getOperations())
          if (!isa<func::FuncOp>(op))
            return failure(("illegal: '" + op.getName().getStringRef() +
                            "' stands outside of the functions")
                               .str());
        return addKernel(kernel, 1);
      }
    }
    lowering::ImportOptions import;
    import.shapes = shapes;
    llvm::SmallVector<std::string> warnings;
    auto module = isMlir
                      ? lowering::readMlir(context, path, import, &warnings)
                      : lowering::importOnnx(context, path, import, &warnings);
    if (!module)
      return module.takeError();
    llvm::append_range(result.warnings, warnings);
    bool formed =
        llvm::any_of((*module)->getOps<func::FuncOp>(),
                     [](func::FuncOp f) { return f->hasAttr("pto.kernel"); });
    if (!formed && failed(lowering::buildKernels(**module, {})))
      return failure("cannot form kernels");
    auto main = (*module)->lookupSymbol<func::FuncOp>("main");
    if (!main)
      return failure("there is no @main");
    return addModel(**module, main);
  }

private:
  llvm::Error addModel(ModuleOp module, func::FuncOp main) {
    int64_t weights = 0, data = 0;
    main.walk([&](arith::ConstantOp constant) {
      if (auto elements = dyn_cast<ElementsAttr>(constant.getValue()))
        weights +=
            elements.getNumElements() *
            std::max<int64_t>(
                1, elements.getElementType().isIntOrFloat()
                       ? elements.getElementType().getIntOrFloatBitWidth() / 8
                       : 8);
    });
    std::vector<std::pair<func::FuncOp, double>> kernels;
    llvm::StringMap<size_t> index;
    main.walk([&](func::CallOp call) {
      auto kernel = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (!kernel || kernel.isExternal())
        return;
      auto [it, isNew] = index.try_emplace(call.getCallee(), kernels.size());
      if (isNew)
        kernels.emplace_back(kernel, 0);
      ++kernels[it->second].second;
    });
    for (auto &[kernel, calls] : kernels) {
      if (llvm::Error error = addKernel(kernel, calls))
        return error;
      auto known = byHash.find(lowering::kernelHash(kernel));
      if (known != byHash.end())
        data = std::max(data, known->second);
    }
    result.weightBytes = std::max(result.weightBytes, weights);
    // A kernel's inputs and outputs, and about as much beside them.
    result.dataBytes = std::max(result.dataBytes, 2 * data);
    return llvm::Error::success();
  }

  llvm::Error addKernel(func::FuncOp kernel, double calls) {
    std::string name = kernel.getName().str();
    std::string hash = lowering::kernelHash(kernel);
    for (TaskSpec &known : result.tasks)
      if (known.kernel.hash == hash) {
        known.calls += calls;
        return llvm::Error::success();
      }
    auto signature = signatureOf(kernel);
    if (!signature) {
      result.warnings.push_back("kernel " + name + " is not tuned: " +
                                toString(signature.takeError()));
      return llvm::Error::success();
    }
    OwningOpRef<ModuleOp> alone = schedules::isolateKernel(kernel, target);
    TaskSpec task;
    task.kernel.name = name;
    task.kernel.hash = hash;
    llvm::raw_string_ostream(task.kernel.ir) << *alone << "\n";
    task.flops = signature->flops;
    task.calls = calls;
    int64_t data = 0;
    for (const targets::ArgumentSpec &a : signature->arguments) {
      task.bytes += a.tensor.bytes();
      if (a.role != targets::Role::Weight)
        data += a.tensor.bytes();
    }
    byHash[hash] = data;

    KernelFeatures features = featuresOf(kernel, *signature);
    task.op = features.op;
    task.features = features.features;
    auto spaces = schedules::findSpaces(*alone, target, threads);
    if (!spaces)
      return spaces.takeError();
    for (schedules::Space &space : *spaces)
      addBranch(task, std::move(space), /*fromUser=*/false);
    for (const UserSchedule &user : userSchedules)
      if (user.kernel.empty() || llvm::StringRef(name).starts_with(user.kernel))
        if (llvm::Error error = addUserSchedule(task, *alone, user.file))
          return error;
    result.tasks.push_back(std::move(task));
    return llvm::Error::success();
  }

  void addBranch(TaskSpec &task, schedules::Space space, bool fromUser) {
    for (const BranchSpec &known : task.branches)
      if (known.name == space.schedule)
        return; // Names tell branches apart.
    BranchSpec branch;
    branch.name = space.schedule;
    branch.text = space.text;
    branch.refuse = space.refuse;
    branch.fromUser = fromUser;
    for (const schedules::Knob &knob : space.knobs) {
      search::Knob k;
      k.name = knob.name;
      k.defaultChoice = knob.defaultIndex;
      for (const std::string &option : knob.options) {
        int64_t number;
        if (llvm::StringRef(option).getAsInteger(10, number))
          k.options.emplace_back(option);
        else
          k.options.emplace_back(number);
      }
      branch.knobs.push_back(std::move(k));
    }
    task.branches.push_back(std::move(branch));
  }

  llvm::Error addUserSchedule(TaskSpec &task, ModuleOp kernel,
                              const std::string &file) {
    auto checked = check(task.kernel, file);
    if (!checked)
      return checked.takeError();
    if (checked->cancelled)
      return llvm::Error::success();
    if (checked->outcome == db::Outcome::Ok) {
      auto spaces = schedules::findSpaces(kernel, target, threads, {file});
      if (!spaces)
        return spaces.takeError();
      bool found = false;
      for (schedules::Space &space : *spaces)
        if (space.schedule == file) {
          addBranch(task, std::move(space), /*fromUser=*/true);
          found = true;
        }
      (void)found; // Its matcher says that it is for other kernels.
      return llvm::Error::success();
    }
    // Tried as it is: the trial records what is wrong with it.
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer)
      return llvm::createStringError(buffer.getError(), "%s: %s", file.c_str(),
                                     buffer.getError().message().c_str());
    schedules::Space space;
    space.schedule = file;
    space.text = (*buffer)->getBuffer().str();
    addBranch(task, std::move(space), /*fromUser=*/true);
    result.warnings.push_back(file + ": " + checked->message);
    return llvm::Error::success();
  }

  const targets::Target &target;
  unsigned threads;
  llvm::ArrayRef<UserSchedule> userSchedules;
  CheckScript check;
  ModelTasks &result;
  std::map<std::string, int64_t> byHash; ///< Bytes of inputs and outputs.
};

} // namespace

llvm::Error
tuner::collectTasks(llvm::StringRef path,
                    const llvm::StringMap<llvm::SmallVector<int64_t>> &shapes,
                    const targets::Target &target, unsigned threads,
                    llvm::ArrayRef<UserSchedule> userSchedules,
                    CheckScript check, ModelTasks &result) {
  return Collector(target, threads, userSchedules, check, result)
      .run(path, shapes);
}

llvm::Expected<std::vector<std::string>>
tuner::inputNames(llvm::StringRef path) {
  DialectRegistry registry;
  lowering::registerAll(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  lowering::ImportOptions import;
  auto module = llvm::sys::path::extension(path) == ".mlir"
                    ? lowering::readMlir(context, path, import)
                    : lowering::importOnnx(context, path, import);
  if (!module)
    return module.takeError();
  std::vector<std::string> names;
  if (auto main = (*module)->lookupSymbol<func::FuncOp>("main"))
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto name = main.getArgAttrOfType<StringAttr>(i, "pto.name");
      names.push_back(name ? name.str() : "");
    }
  return names;
}
