//===- Passes.cpp - The engine as passes of pto-opt
//-------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Pass/Pass.h"
#include "schedules/engine/Engine.h"
#include "schedules/engine/extension/PtoOps.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace pto::schedules {
namespace {

struct ApplySchedule
    : public PassWrapper<ApplySchedule, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ApplySchedule)
  ApplySchedule() = default;
  ApplySchedule(const ApplySchedule &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "pto-apply-schedule"; }
  StringRef getDescription() const override {
    return "Apply a schedule to the module's kernel: a file with its knobs "
           "filled in, or (without one) the default for this machine";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<transform::TransformDialect>();
  }
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (file.empty()) {
      auto host = targets::parseTarget("cpu");
      if (!host)
        return fail(llvm::toString(host.takeError()));
      auto scheduled = scheduleByDefault(module, *host, threads);
      if (!scheduled)
        return fail(llvm::toString(scheduled.takeError()));
      module.getBodyRegion().takeBody(scheduled->module->getBodyRegion());
      return;
    }
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer)
      return fail(file + ": " + buffer.getError().message());
    Applied applied = applySchedule(module, (*buffer)->getBuffer(), file);
    if (applied.outcome != "ok")
      fail(applied.outcome + ": " + applied.message);
  }

private:
  void fail(const Twine &message) {
    getOperation().emitError(message);
    signalPassFailure();
  }
  Option<std::string> file{*this, "file",
                           llvm::cl::desc("The schedule (default: built-in)")};
  Option<unsigned> threads{*this, "threads", llvm::cl::init(1),
                           llvm::cl::desc("Limit for the default schedule")};
};

} // namespace

void registerSchedules(DialectRegistry &registry) {
  registerPtoExtension(registry);
  PassRegistration<ApplySchedule>();
}

} // namespace pto::schedules
