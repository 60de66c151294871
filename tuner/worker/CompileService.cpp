//===- CompileService.cpp -------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/worker/CompileService.h"
#include "lowering/pipeline/Pipeline.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "schedules/engine/Engine.h"
#include "targets/cpu/Link.h"
#include "targets/runner/Serve.h"
#include "tuner/worker/RawKernel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <chrono>

using namespace mlir;
using namespace pto;
using namespace pto::tuner;
using targets::reportPhase;
namespace json = llvm::json;

/// Beyond this many ops, LLVM takes minutes; no useful kernel has so many.
static constexpr int64_t kMaxOps = 60000;
/// Of a message; more than that nobody reads.
static constexpr size_t kMaxMessage = 4000;

CompileService::CompileService() {
  lowering::registerAll(registry);
  schedules::registerSchedules(registry);
}

llvm::Expected<const targets::Target *>
CompileService::targetOf(const json::Object &request) {
  llvm::StringRef spec = request.getString("target").value_or("cpu");
  if (!target || targetSpec != spec) {
    auto parsed = targets::parseTarget(spec);
    if (!parsed)
      return parsed.takeError();
    target = std::move(*parsed);
    targetSpec = spec.str();
  }
  return &*target;
}

namespace {

/// One request: a context of its own, so that nothing is left of the last one
/// and diagnostics are this candidate's.
class Compilation {
public:
  Compilation(const DialectRegistry &registry, const json::Object &request,
              const targets::Target &target)
      : request(request), target(target),
        context(registry, MLIRContext::Threading::DISABLED) {
    // Passes that are called as functions do not load what they create.
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([&](Diagnostic &d) {
      add(d);
      for (Diagnostic &note : d.getNotes())
        add(note);
      return success();
    });
  }

  json::Object reference() {
    if (!parse())
      return fail("illegal", "the kernel does not parse");
    auto kernel = module->lookupSymbol<func::FuncOp>("kernel");
    if (!kernel)
      return fail("illegal", "the module holds no @kernel");
    auto signature = signatureOf(kernel);
    if (!signature)
      return fail("illegal", toString(signature.takeError()));
    json::Object answer = finish();
    answer["signature"] = signature->toJson();
    return answer;
  }

  json::Object compile() {
    const json::Object *schedule = request.getObject("schedule");
    if (!schedule)
      return fail("illegal", "malformed request: schedule");
    llvm::StringRef name = schedule->getString("name").value_or("schedule");
    schedules::KnobValues values;
    if (const json::Array *knobs = schedule->getArray("knobs"))
      for (const json::Value &v : *knobs)
        if (const json::Array *pair = v.getAsArray(); pair && pair->size() == 2)
          values.emplace_back((*pair)[0].getAsString().value_or("").str(),
                              (*pair)[1].getAsString().value_or("").str());
    if (!parse())
      return fail("illegal", "the kernel does not parse");
    reportPhase("reading the schedule");
    auto text = schedules::fillKnobs(
        &context, schedule->getString("text").value_or(""), values, name);
    if (!text)
      return fail("illegal", toString(text.takeError()));
    reportPhase("applying the schedule");
    schedules::Applied applied = schedules::applySchedule(*module, *text, name);
    if (applied.outcome != "ok")
      return fail(applied.outcome, applied.message);
    auto call = callOf(*module);
    if (!call)
      return fail("transform-failed", toString(call.takeError()));
    json::Object answer = finish();
    answer["text"] = *text;
    answer["call"] = call->toJson();
    return answer;
  }

  json::Object schedules() {
    if (!parse())
      return fail("illegal", "the kernel does not parse");
    std::vector<std::string> files;
    if (const json::Array *list = request.getArray("files"))
      for (const json::Value &v : *list)
        files.push_back(v.getAsString().value_or("").str());
    reportPhase("reading the schedules");
    auto spaces = schedules::findSpaces(
        *module, target, request.getInteger("threads").value_or(1), files);
    if (!spaces)
      return fail("illegal", toString(spaces.takeError()));
    json::Array all;
    for (const schedules::Space &space : *spaces)
      all.push_back(json::Object{{"name", space.schedule},
                                 {"knobs", int64_t(space.knobs.size())}});
    return json::Object{
        {"outcome", "ok"}, {"message", ""}, {"spaces", std::move(all)}};
  }

private:
  void add(Diagnostic &d) {
    if (d.getSeverity() == DiagnosticSeverity::Remark ||
        messages.size() > kMaxMessage)
      return;
    if (!messages.empty())
      messages += "\n";
    messages += d.str().substr(0, 600);
  }

  json::Object fail(llvm::StringRef outcome, llvm::StringRef message) {
    std::string text = message.str();
    if (!messages.empty() && !message.contains(messages))
      text += (text.empty() ? "" : ": ") + messages;
    if (text.empty())
      text = "failed without a message";
    return json::Object{
        {"outcome", outcome.str()}, // A StringRef would not be copied.
        {"message", json::fixUTF8(text.substr(0, kMaxMessage))}};
  }

  bool parse() {
    reportPhase("reading the kernel");
    module = parseSourceString<ModuleOp>(request.getString("ir").value_or(""),
                                         &context);
    return bool(module);
  }

  /// From the scheduled module to a shared object.
  json::Object finish() {
    auto start = std::chrono::steady_clock::now();
    reportPhase("lowering");
    if (failed(lowering::lowerToLLVM(*module, target))) {
      bool large = messages.find("too large") != std::string::npos;
      return fail(large ? "too-large" : "compile-failed", "");
    }
    int64_t ops = 0;
    module->walk([&](Operation *) { ++ops; });
    if (ops > kMaxOps)
      return fail("too-large", "the lowered kernel has " + std::to_string(ops) +
                                   " operations, limit " +
                                   std::to_string(kMaxOps));
    std::vector<std::string> exports{"kernel"};
    if (module->lookupSymbol("kernel_prepack"))
      exports.push_back("kernel_prepack");
    reportPhase("generating code");
    auto object = lowering::emitObject(*module, target);
    if (!object)
      return fail("compile-failed", toString(object.takeError()));
    reportPhase("linking");
    targets::LinkObject input{"kernel.o", {object->data(), object->size()}};
    targets::LinkOptions options;
    options.exports = exports;
    if (llvm::Error error = targets::linkShared(
            input, request.getString("object").value_or(""), target, options)) {
      std::error_code code;
      llvm::visitErrors(error, [&](const llvm::ErrorInfoBase &e) {
        code = e.convertToErrorCode();
      });
      return fail(targets::isEnvironmental(code) ? targets::kEnvironmentFailed
                                                 : "compile-failed",
                  toString(std::move(error)));
    }
    auto hash = llvm::xxh3_128bits(llvm::ArrayRef<uint8_t>(
        reinterpret_cast<const uint8_t *>(object->data()), object->size()));
    double ms = std::chrono::duration<double, std::milli>(
                    std::chrono::steady_clock::now() - start)
                    .count();
    return json::Object{
        {"outcome", "ok"},
        {"message", ""},
        {"object_hash", llvm::utohexstr(hash.high64, true, 16) +
                            llvm::utohexstr(hash.low64, true, 16)},
        {"compile_ms", ms}};
  }

  const json::Object &request;
  const targets::Target &target;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string messages;
};

} // namespace

json::Object CompileService::handle(const json::Object &request) {
  reportPhase("");
  auto t = targetOf(request);
  if (!t)
    return json::Object{{"outcome", "illegal"},
                        {"message", toString(t.takeError())}};
  Compilation compilation(registry, request, **t);
  llvm::StringRef op = request.getString("op").value_or("");
  if (op == "reference")
    return compilation.reference();
  if (op == "compile")
    return compilation.compile();
  if (op == "schedules")
    return compilation.schedules();
  return json::Object{{"outcome", "illegal"},
                      {"message", "unknown request '" + op.str() + "'"}};
}
