//===- Read.cpp - Models given as MLIR ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// In order: parse, find the function, TOSA to linalg, sizes of dynamic dims,
// large constants to resources, ops checked.
//
//===----------------------------------------------------------------------===//

#include "lowering/mlir/Read.h"
#include "lowering/onnx/SizeChecks.h"
#include "mlir/Conversion/TosaToArith/TosaToArith.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Conversion/TosaToTensor/TosaToTensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace pto::lowering {

namespace {

/// The same limits as for ONNX's constants.
constexpr size_t kMaxInlineBytes = 64;
constexpr size_t kResourceAlignment = 64;

/// Collects diagnostics as "file:line:col: message" lines.
class Messages {
public:
  explicit Messages(MLIRContext &context)
      : handler(&context, [this](Diagnostic &d) {
          llvm::raw_string_ostream os(text);
          os << (text.empty() ? "" : "\n  ");
          if (auto at = d.getLocation()->findInstanceOf<FileLineColLoc>())
            os << "line " << at.getLine() << ", column " << at.getColumn()
               << ": ";
          os << d.str();
          return success();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

class Reader {
public:
  Reader(MLIRContext &context, StringRef path, const ImportOptions &options,
         llvm::SmallVectorImpl<std::string> *warnings)
      : context(context), path(path), options(options), warnings(warnings),
        b(&context), messages(context) {}

  llvm::Expected<OwningOpRef<ModuleOp>> run();

private:
  llvm::Error failure(const Twine &message) {
    return llvm::createStringError(path + ": " + message);
  }
  llvm::Error findMain();
  llvm::Error lowerTosa();
  llvm::Error fixInputs();
  void nameValues();
  void moveConstantsToResources();
  llvm::Error checkOps();

  MLIRContext &context;
  StringRef path;
  const ImportOptions &options;
  llvm::SmallVectorImpl<std::string> *warnings;
  Builder b;
  Messages messages;
  OwningOpRef<ModuleOp> module;
  func::FuncOp main;
};

llvm::Expected<OwningOpRef<ModuleOp>> Reader::run() {
  context
      .loadDialect<arith::ArithDialect, cf::ControlFlowDialect,
                   func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                   tensor::TensorDialect, tosa::TosaDialect>();
  // parseSourceFile would print what goes wrong before parsing starts.
  std::string error;
  auto sources = std::make_shared<llvm::SourceMgr>();
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return failure("cannot be read: " + buffer.getError().message());
  sources->AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return failure("is no valid MLIR:\n  " + messages.text);
  if (!(*module)->hasAttr("pto.model"))
    (*module)->setAttr("pto.model",
                       b.getStringAttr(llvm::sys::path::stem(path)));
  if (llvm::any_of(module->getOps<func::FuncOp>(), [](func::FuncOp func) {
        return func->hasAttr("pto.kernel");
      }))
    return std::move(module);
  if (auto error = findMain())
    return error;
  nameValues();
  if (auto error = lowerTosa())
    return error;
  if (auto error = fixInputs())
    return error;
  moveConstantsToResources();
  if (auto error = checkOps())
    return error;
  if (failed(verify(*module)))
    return failure("is no valid MLIR:\n  " + messages.text);
  if (failed(addSizeChecks(main)))
    return failure("sizes do not fit each other:\n  " + messages.text);
  return std::move(module);
}

llvm::Error Reader::findMain() {
  SmallVector<func::FuncOp> candidates;
  for (auto func : module->getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    if (func.getName() == "main") {
      main = func;
      break;
    }
    if (func.isPublic())
      candidates.push_back(func);
  }
  if (!main && candidates.size() == 1)
    main = candidates.front();
  if (!main)
    return failure("has no function @main, and " + Twine(candidates.size()) +
                   " public functions");
  for (Operation &op :
       llvm::make_early_inc_range(module->getBody()->getOperations()))
    if (&op != main.getOperation()) {
      if (!isa<func::FuncOp>(op))
        return failure("holds '" + op.getName().getStringRef() +
                       "' beside the function, which is not supported");
      if (!SymbolTable::symbolKnownUseEmpty(&op, main))
        return failure("@" + SymbolTable::getSymbolName(&op).getValue() +
                       " is called, which is not supported: inline it first "
                       "(mlir-opt --inline)");
      op.erase();
    }
  main.setName("main");
  main.setPublic();
  if (!main.getBody().hasOneBlock())
    return failure("@main has control flow between blocks, which is not "
                   "supported");
  for (Type type :
       llvm::concat<const Type>(main.getArgumentTypes(), main.getResultTypes()))
    if (!isa<RankedTensorType>(type)) {
      std::string text;
      llvm::raw_string_ostream(text) << type;
      return failure("@main takes or returns a " + text +
                     "; only ranked tensors are supported");
    }
  return llvm::Error::success();
}

void Reader::nameValues() {
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (!main.getArgAttr(i, "pto.name"))
      main.setArgAttr(i, "pto.name", b.getStringAttr("input" + Twine(i)));
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (!main.getResultAttr(i, "pto.name"))
      main.setResultAttr(i, "pto.name", b.getStringAttr("output" + Twine(i)));
}

llvm::Error Reader::lowerTosa() {
  bool any = false;
  main.walk([&](Operation *op) {
    any |= isa_and_nonnull<tosa::TosaDialect>(op->getDialect());
  });
  if (!any)
    return llvm::Error::success();
  PassManager pm(&context);
  TosaToLinalgOptions linalg;
  TosaToLinalgNamedOptions named;
  tosa::addTosaToLinalgPasses(pm, linalg, named,
                              /*validationOptions=*/std::nullopt);
  pm.addNestedPass<func::FuncOp>(createTosaToArithPass());
  pm.addNestedPass<func::FuncOp>(createTosaToTensorPass());
  pm.addPass(createCanonicalizerPass());
  if (failed(pm.run(*module)))
    return failure("TOSA cannot be lowered:\n  " + messages.text);
  return llvm::Error::success();
}

llvm::Error Reader::fixInputs() {
  llvm::StringSet<> names;
  SmallVector<StringRef> inOrder;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    inOrder.push_back(
        main.getArgAttrOfType<StringAttr>(i, "pto.name").getValue());
    names.insert(inOrder.back());
  }
  for (const auto &entry : options.shapes)
    if (!names.contains(entry.first()))
      return failure("there is no input '" + entry.first() +
                     "'; the inputs are: " + llvm::join(inOrder, ", "));
  OpBuilder builder(&context);
  builder.setInsertionPointToStart(&main.getBody().front());
  bool changed = false;
  for (auto [arg, name] : llvm::zip(main.getArguments(), inOrder)) {
    auto type = cast<RankedTensorType>(arg.getType());
    SmallVector<int64_t> shape(type.getShape());
    auto it = options.shapes.find(name);
    if (it != options.shapes.end()) {
      if (it->second.size() != shape.size())
        return failure("input '" + name + "' has rank " + Twine(shape.size()) +
                       ", the given shape has " + Twine(it->second.size()));
      for (auto [dim, given] : llvm::zip(shape, it->second)) {
        if (!ShapedType::isDynamic(dim) && dim != given)
          return failure("input '" + name + "' has a dim of size " +
                         Twine(dim) + ", given as " + Twine(given));
        dim = given;
      }
    }
    for (auto [d, dim] : llvm::enumerate(shape)) {
      if (!ShapedType::isDynamic(dim) || !options.pinDynamicDims)
        continue;
      if (warnings)
        warnings->push_back(("dim " + Twine(d) + " of input '" + name +
                             "' is dynamic and nothing determines it: taken "
                             "as 1")
                                .str());
      dim = 1;
    }
    auto fixed = type.clone(shape);
    if (fixed == type)
      continue;
    changed = true;
    arg.setType(fixed);
    auto cast = tensor::CastOp::create(builder, arg.getLoc(), type, arg);
    arg.replaceAllUsesExcept(cast, cast);
  }
  if (!changed)
    return llvm::Error::success();
  main.setFunctionType(b.getFunctionType(
      main.getBody().front().getArgumentTypes(), main.getResultTypes()));
  // Canonicalization carries the sizes through the body.
  PassManager pm(&context);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (failed(pm.run(*module)))
    return failure("canonicalization failed:\n  " + messages.text);
  Operation *ret = main.getBody().front().getTerminator();
  for (OpOperand &operand : ret->getOpOperands())
    if (auto cast = operand.get().getDefiningOp<tensor::CastOp>())
      operand.set(cast.getSource());
  main.setFunctionType(b.getFunctionType(
      main.getBody().front().getArgumentTypes(), ret->getOperandTypes()));
  return llvm::Error::success();
}

void Reader::moveConstantsToResources() {
  auto &manager = DenseResourceElementsHandle::getManagerInterface(&context);
  main.walk([&](arith::ConstantOp op) {
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!dense || dense.isSplat() || !isa<RankedTensorType>(dense.getType()) ||
        dense.getRawData().size() <= kMaxInlineBytes)
      return;
    // Bits are packed in the attribute; they stay inline.
    if (dense.getElementType().isInteger(1))
      return;
    auto blob = HeapAsmResourceBlob::allocateAndCopyWithAlign(
        dense.getRawData(), kResourceAlignment, /*dataIsMutable=*/false);
    op.setValueAttr(DenseResourceElementsAttr::get(
        dense.getType(), manager.insert("constant", std::move(blob))));
  });
}

llvm::Error Reader::checkOps() {
  llvm::StringSet<> seen;
  std::string list;
  main.getBody().walk([&](Operation *op) {
    Dialect *dialect = op->getDialect();
    if (isa_and_nonnull<arith::ArithDialect, linalg::LinalgDialect,
                        math::MathDialect, tensor::TensorDialect>(dialect) ||
        isa<func::ReturnOp>(op))
      return;
    if (seen.insert(op->getName().getStringRef()).second)
      list += "\n  " + op->getName().getStringRef().str();
  });
  if (list.empty())
    return llvm::Error::success();
  return failure("only linalg, TOSA, tensor, arith and math are supported; "
                 "these ops are not:" +
                 list);
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>>
readMlir(MLIRContext &context, StringRef path, const ImportOptions &options,
         llvm::SmallVectorImpl<std::string> *warnings) {
  return Reader(context, path, options, warnings).run();
}

} // namespace pto::lowering
