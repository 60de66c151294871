//===- Engine.cpp - Schedules, their spaces, and applying them
//--------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "schedules/engine/Engine.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Transform/IR/TransformOps.h"
#include "mlir/Dialect/Transform/Transforms/TransformInterpreterUtils.h"
#include "mlir/Dialect/Transform/TuneExtension/TuneExtensionOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "schedules/engine/Knobs.h"
#include "schedules/engine/extension/KernelKind.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using transform::tune::AlternativesOp;
using transform::tune::KnobOp;

namespace pto::schedules {
namespace {

/// Collects diagnostics as "file:line:col: error: text" lines.
class Messages {
public:
  explicit Messages(MLIRContext *ctx)
      : handler(ctx, [this](Diagnostic &d) {
          if (d.getSeverity() == DiagnosticSeverity::Remark)
            return success();
          add(d);
          for (Diagnostic &note : d.getNotes())
            add(note);
          return success();
        }) {}
  const std::string &str() const { return text; }

private:
  void add(Diagnostic &d) {
    if (!text.empty())
      text += "\n";
    if (auto loc = d.getLocation()->findInstanceOf<FileLineColLoc>())
      text += loc.getFilename().str() + ":" + std::to_string(loc.getLine()) +
              ":" + std::to_string(loc.getColumn()) + ": ";
    // Notes with whole modules help nobody in a database.
    text += d.str().substr(0, 600);
  }
  std::string text;
  ScopedDiagnosticHandler handler;
};

llvm::Expected<OwningOpRef<ModuleOp>>
parseSchedule(MLIRContext *ctx, StringRef text, StringRef name) {
  Messages messages(ctx);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name),
                             llvm::SMLoc());
  // Verified later: an illegal knob value is reported with its name.
  ParserConfig config(ctx, /*verifyAfterParse=*/true);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, config);
  if (!module)
    return llvm::createStringError(messages.str().empty()
                                       ? "not a schedule: " + name.str()
                                       : messages.str());
  return module;
}

/// Runs @match of `schedule`; a schedule without one matches.
bool matches(ModuleOp schedule, ModuleOp kernelModule) {
  auto matcher = schedule.lookupSymbol<transform::NamedSequenceOp>("match");
  if (!matcher)
    return true;
  ScopedDiagnosticHandler quiet(schedule.getContext(),
                                [](Diagnostic &) { return success(); });
  return succeeded(transform::applyTransformNamedSequence(
      kernelModule, matcher, schedule,
      transform::TransformOptions().enableExpensiveChecks(false)));
}

/// Registers of a tile that a schedule's "rows" and "panel" knobs describe.
std::function<std::string(llvm::ArrayRef<size_t>)>
registerLimit(const std::vector<Knob> &knobs, const KernelFacts &facts,
              const targets::Target &target) {
  int rows = -1, panel = -1;
  for (auto [i, knob] : llvm::enumerate(knobs)) {
    if (knob.name == "rows")
      rows = int(i);
    if (knob.name == "panel")
      panel = int(i);
  }
  if (rows < 0 || panel < 0)
    return [](llvm::ArrayRef<size_t>) { return std::string(); };
  int64_t width = std::max<int64_t>(1, target.vectorBits / facts.elementBits);
  int64_t limit = target.vectorRegisters;
  std::vector<Knob> copy = knobs;
  return [=](llvm::ArrayRef<size_t> point) -> std::string {
    RegisterTile tile;
    tile.rows = std::stoll(copy[rows].options[point[rows]]);
    tile.vectors = std::max<int64_t>(
        1, std::stoll(copy[panel].options[point[panel]]) / width);
    int64_t need = registersFor(tile);
    if (need <= limit)
      return "";
    return "the register tile needs " + std::to_string(need) + " of " +
           std::to_string(limit) + " vector registers";
  };
}

llvm::Expected<Space> makeSpace(ModuleOp schedule, StringRef name,
                                StringRef text, const KernelFacts &facts,
                                const targets::Target &target,
                                unsigned threads) {
  Space space;
  space.schedule = name.str();
  space.text = text.str();
  std::string error;
  llvm::StringSet<> seen;
  schedule.walk([&](Operation *op) {
    if (!error.empty())
      return;
    if (auto knob = dyn_cast<KnobOp>(op)) {
      if (!seen.insert(knob.getName()).second)
        return; // The same knob twice takes the same value.
      if (Attribute selected = knob.getSelectedAttr()) {
        // Already decided by the author: no choice left.
        return;
      }
      auto resolved = resolveKnob(knob.getName(), knob.getOptions(), facts,
                                  target, threads);
      if (!resolved)
        error = llvm::toString(resolved.takeError());
      else
        space.knobs.push_back(std::move(*resolved));
    } else if (auto alternatives = dyn_cast<AlternativesOp>(op)) {
      if (alternatives.getSelectedRegionAttr() ||
          alternatives.getSelectedRegionParam() ||
          !seen.insert(alternatives.getName()).second)
        return;
      Knob choice;
      choice.name = alternatives.getName().str();
      for (size_t i = 0; i < alternatives.getAlternatives().size(); ++i)
        choice.options.push_back(std::to_string(i));
      space.knobs.push_back(std::move(choice));
    }
  });
  if (!error.empty())
    return llvm::createStringError(name + ": " + error);
  space.refuse = registerLimit(space.knobs, facts, target);
  return space;
}

} // namespace

KnobValues Space::valuesAt(llvm::ArrayRef<size_t> point) const {
  KnobValues values;
  for (auto [knob, i] : llvm::zip_equal(knobs, point))
    values.emplace_back(knob.name, knob.options[i]);
  return values;
}

KnobValues Space::defaults() const {
  KnobValues values;
  for (const Knob &knob : knobs)
    values.emplace_back(knob.name, knob.options[knob.defaultIndex]);
  return values;
}

OwningOpRef<ModuleOp> isolateKernel(func::FuncOp kernel,
                                    const targets::Target &target) {
  OwningOpRef<ModuleOp> module(ModuleOp::create(kernel.getLoc()));
  OpBuilder b = OpBuilder::atBlockBegin(module->getBody());
  auto copy = cast<func::FuncOp>(b.clone(*kernel));
  copy.setName("kernel");
  copy.setPublic();

  MLIRContext *ctx = kernel.getContext();
  ctx->loadDialect<DLTIDialect>();
  SmallVector<DataLayoutEntryInterface> facts;
  auto fact = [&](StringRef name, int64_t value) {
    facts.push_back(DataLayoutEntryAttr::get(b.getStringAttr(name),
                                             b.getI64IntegerAttr(value)));
  };
  fact("vector_bits", target.vectorBits);
  fact("vector_registers", target.vectorRegisters);
  fact("l1_bytes", target.l1Bytes);
  fact("l2_bytes", target.l2Bytes);
  fact("l3_bytes", target.l3Bytes);
  fact("line_bytes", target.lineBytes);
  fact("cores", target.cores);
  DataLayoutEntryInterface device = DataLayoutEntryAttr::get(
      b.getStringAttr("CPU"), TargetDeviceSpecAttr::get(ctx, facts));
  (*module)->setAttr(DLTIDialect::kTargetSystemDescAttrName,
                     TargetSystemSpecAttr::get(ctx, {device}));
  return module;
}

/// Whether some tensor has a size of zero: tiling and knobs' sources
/// divide by it.
static bool holdsEmptyTensor(ModuleOp module) {
  auto isEmpty = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && llvm::is_contained(tensor.getShape(), 0);
  };
  return module
      .walk([&](Operation *op) {
        return llvm::any_of(op->getOperandTypes(), isEmpty) ||
                       llvm::any_of(op->getResultTypes(), isEmpty)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

llvm::Expected<std::vector<Space>>
findSpaces(ModuleOp kernelModule, const targets::Target &target,
           unsigned threads, llvm::ArrayRef<std::string> userFiles) {
  MLIRContext *ctx = kernelModule.getContext();
  KernelFacts facts = factsOf(kernelModule);
  std::vector<Space> spaces;
  bool empty = holdsEmptyTensor(kernelModule);
  for (auto [name, text] : builtinSchedules()) {
    if (empty && name != "any/plain")
      continue;
    auto schedule = parseSchedule(ctx, text, (name + ".mlir").str());
    if (!schedule)
      return schedule.takeError();
    if (!matches(**schedule, kernelModule))
      continue;
    auto space = makeSpace(**schedule, name, text, facts, target, threads);
    if (!space)
      return space.takeError();
    spaces.push_back(std::move(*space));
  }
  for (const std::string &file : userFiles) {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer)
      return llvm::createStringError(file + ": " + buffer.getError().message());
    auto schedule = parseSchedule(ctx, (*buffer)->getBuffer(), file);
    if (!schedule)
      return schedule.takeError();
    if (!matches(**schedule, kernelModule))
      continue;
    auto space = makeSpace(**schedule, file, (*buffer)->getBuffer(), facts,
                           target, threads);
    if (!space)
      return space.takeError();
    spaces.push_back(std::move(*space));
  }
  return spaces;
}

llvm::Expected<std::string> fillKnobs(MLIRContext *ctx, StringRef text,
                                      const KnobValues &values,
                                      StringRef name) {
  auto schedule = parseSchedule(ctx, text, name);
  if (!schedule)
    return schedule.takeError();
  Builder b(ctx);
  std::string error;
  auto valueOf = [&](StringRef knob) -> Attribute {
    for (auto &[n, v] : values)
      if (n == knob) {
        // Plain integers are i64 params.
        int64_t number;
        if (!StringRef(v).getAsInteger(10, number))
          return b.getI64IntegerAttr(number);
        Attribute parsed = parseAttribute(v, ctx);
        if (!parsed)
          error = "knob '" + knob.str() + "': cannot parse the value " + v;
        return parsed;
      }
    return {};
  };
  (*schedule)->walk([&](Operation *op) {
    if (auto knob = dyn_cast<KnobOp>(op)) {
      if (Attribute v = valueOf(knob.getName())) {
        if (auto array = dyn_cast<ArrayAttr>(knob.getOptions()))
          if (!llvm::is_contained(array, v))
            error = "knob '" + knob.getName().str() + "': the value is not " +
                    "among its options";
        knob.setSelectedAttr(v);
      } else if (!knob.getSelectedAttr() && error.empty()) {
        error = "knob '" + knob.getName().str() + "' has no value";
      }
    } else if (auto alternatives = dyn_cast<AlternativesOp>(op)) {
      Attribute v = valueOf(alternatives.getName());
      if (auto i = dyn_cast_or_null<IntegerAttr>(v)) {
        if (i.getInt() < 0 ||
            i.getInt() >= int64_t(alternatives.getAlternatives().size()))
          error = "alternatives '" + alternatives.getName().str() +
                  "': no such region";
        alternatives.setSelectedRegionAttrAttr(b.getIndexAttr(i.getInt()));
      } else if (!alternatives.getSelectedRegionAttr() &&
                 !alternatives.getSelectedRegionParam() && error.empty()) {
        error =
            "alternatives '" + alternatives.getName().str() + "' has no value";
      }
    }
  });
  if (!error.empty())
    return llvm::createStringError(error);
  std::string filled;
  llvm::raw_string_ostream os(filled);
  (*schedule)->print(os);
  return filled;
}

llvm::Expected<KnobValues> knobsIn(MLIRContext *ctx, StringRef text) {
  auto schedule = parseSchedule(ctx, text, "schedule.mlir");
  if (!schedule)
    return schedule.takeError();
  KnobValues values;
  (*schedule)->walk([&](KnobOp knob) {
    Attribute selected = knob.getSelectedAttr();
    if (!selected)
      return;
    std::string value;
    llvm::raw_string_ostream os(value);
    selected.print(os, /*elideType=*/true);
    values.emplace_back(knob.getName().str(), value);
  });
  return values;
}

Applied applySchedule(ModuleOp kernelModule, StringRef text, StringRef name) {
  MLIRContext *ctx = kernelModule.getContext();
  auto schedule = parseSchedule(ctx, text, name);
  if (!schedule)
    return {"illegal", llvm::toString(schedule.takeError())};
  if (holdsEmptyTensor(kernelModule))
    return {}; // Left as it is: there is nothing to gain.
  Messages messages(ctx);
  auto entry = dyn_cast_or_null<transform::TransformOpInterface>(
      transform::detail::findTransformEntryPoint(**schedule, ModuleOp()));
  if (!entry)
    return {"illegal", name.str() + ": no @__transform_main"};
  // With expensive checks a misused handle is an error, not a crash.
  LogicalResult done = transform::applyTransformNamedSequence(
      kernelModule, entry, ModuleOp(),
      transform::TransformOptions().enableExpensiveChecks(true));
  std::string message = messages.str();
  if (failed(done)) {
    bool large = message.find("too large:") != std::string::npos;
    return {large ? "too-large" : "transform-failed",
            message.empty() ? "the schedule failed" : message};
  }
  if (failed(verify(kernelModule)))
    return {"transform-failed",
            "the scheduled kernel is invalid: " + messages.str()};
  // MLIR only warns of a race.
  if (message.find("not thread safe") != std::string::npos)
    return {"illegal", message};
  return {};
}

llvm::Expected<Scheduled> scheduleByDefault(ModuleOp kernelModule,
                                            const targets::Target &target,
                                            unsigned threads) {
  auto spaces = findSpaces(kernelModule, target, threads);
  if (!spaces)
    return spaces.takeError();
  for (Space &space : *spaces) {
    Scheduled result;
    result.knobs = space.defaults();
    auto filled = fillKnobs(kernelModule.getContext(), space.text, result.knobs,
                            space.schedule);
    if (!filled)
      return filled.takeError();
    result.module = kernelModule.clone();
    Applied applied = applySchedule(*result.module, *filled, space.schedule);
    if (applied.outcome != "ok")
      continue;
    result.schedule = space.schedule;
    result.text = *filled;
    return result;
  }
  Scheduled plain;
  plain.module = kernelModule.clone();
  return plain;
}

} // namespace pto::schedules
