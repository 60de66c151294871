//===- Import.cpp - ONNX to linalg ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// In order: loadModel (Model.h), one argument per graph input, one constant
// per initializer that is read, one builder call per node (Ops.h), results,
// dead code removed, verified.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Import.h"
#include "lowering/onnx/Model.h"
#include "lowering/onnx/Node.h"
#include "lowering/onnx/Ops.h"
#include "lowering/onnx/Shapes.h"
#include "lowering/onnx/SizeChecks.h"
#include "lowering/onnx/TensorData.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace pto::lowering {

namespace {

class Importer {
public:
  Importer(MLIRContext &context, Model &model)
      : model(model), graph(*model.proto->mutable_graph()), b(&context),
        problems(model.unsupported) {}

  llvm::Expected<OwningOpRef<ModuleOp>> run();

private:
  llvm::Error addArguments();
  void addInitializers();
  void addNode(onnx::NodeProto &node);
  void addResults();
  llvm::Error addSubgraph(onnx::AttributeProto &attribute,
                          SmallVectorImpl<Tensor> &outputs);
  /// What the element type alone does not say: ONNX's name, and that i8 holds
  /// booleans or that integers are unsigned.
  DictionaryAttr valueAttrs(StringRef name, int dtype) {
    SmallVector<NamedAttribute> attrs = {
        b.getNamedAttr("pto.name", b.getStringAttr(name))};
    if (isBool(dtype))
      attrs.push_back(b.getNamedAttr("pto.bool", b.getUnitAttr()));
    if (isUnsigned(dtype))
      attrs.push_back(b.getNamedAttr("pto.unsigned", b.getUnitAttr()));
    return b.getDictionaryAttr(attrs);
  }
  llvm::Error failure(const Twine &message) {
    return llvm::createStringError(model.path + ": " + message);
  }

  Model &model;
  onnx::GraphProto &graph;
  OpBuilder b;
  func::FuncOp main;
  Block *entry = nullptr;
  /// Values by ONNX name; a null Tensor stands for one whose node failed.
  llvm::StringMap<Tensor> values;
  std::vector<std::string> &problems;
  /// Results that say which index was out of bounds, and in which node.
  SmallVector<std::pair<Value, std::string>> checks;
};

llvm::Expected<OwningOpRef<ModuleOp>> Importer::run() {
  Location loc = NameLoc::get(b.getStringAttr(model.path));
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  (*module)->setAttr("pto.model",
                     b.getStringAttr(llvm::sys::path::stem(model.path)));
  b.setInsertionPointToStart(module->getBody());
  main = func::FuncOp::create(b, loc, "main", b.getFunctionType({}, {}));
  entry = main.addEntryBlock();
  b.setInsertionPointToStart(entry);

  if (auto error = addArguments())
    return error;
  addInitializers();
  for (onnx::NodeProto &node : *graph.mutable_node())
    addNode(node);
  if (problems.empty())
    addResults();
  if (!problems.empty())
    return failure(Twine(problems.size()) +
                   (problems.size() == 1 ? " node" : " nodes") +
                   " cannot be imported:\n  " + llvm::join(problems, "\n  "));

  IRRewriter rewriter(b.getContext());
  (void)runRegionDCE(rewriter, main->getRegions());
  std::string messages;
  ScopedDiagnosticHandler handler(b.getContext(), [&](Diagnostic &d) {
    llvm::raw_string_ostream os(messages);
    os << "\n  " << d.getLocation() << ": " << d.str();
    return success();
  });
  if (failed(verify(*module)))
    return failure("the imported form is not valid MLIR:" + messages);
  if (failed(addSizeChecks(main)))
    return failure("sizes do not fit each other:" + messages);
  return module;
}

llvm::Error Importer::addArguments() {
  llvm::StringSet<> initializers;
  for (const onnx::TensorProto &t : graph.initializer())
    initializers.insert(t.name());
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  for (const onnx::ValueInfoProto &input : graph.input()) {
    if (initializers.contains(input.name()))
      continue;
    const auto &proto = input.type().tensor_type();
    int dtype = proto.elem_type();
    Type element = storageType(b.getContext(), dtype);
    if (!element) {
      problems.push_back("input '" + input.name() + "': data type " +
                         onnxTypeName(dtype).str() + " is not supported");
      values[input.name()] = Tensor();
      continue;
    }
    SmallVector<int64_t> shape;
    for (const auto &dim : proto.shape().dim())
      shape.push_back(dim.has_dim_value() ? dim.dim_value()
                                          : ShapedType::kDynamic);
    auto type = RankedTensorType::get(shape, element);
    Location loc = NameLoc::get(b.getStringAttr(input.name()));
    values[input.name()] =
        Tensor::fromValue(dtype, entry->addArgument(type, loc));
    types.push_back(type);
    attrs.push_back(valueAttrs(input.name(), dtype));
    if (!type.hasStaticShape()) {
      // Which dims are equal, by their symbols.
      SmallVector<Attribute> symbols;
      for (const auto &dim : proto.shape().dim())
        symbols.push_back(b.getStringAttr(dim.dim_param()));
      NamedAttrList list(attrs.back());
      list.set("pto.dims", b.getArrayAttr(symbols));
      attrs.back() = list.getDictionary(b.getContext());
    }
  }
  main.setFunctionType(b.getFunctionType(types, {}));
  main.setAllArgAttrs(attrs);
  return llvm::Error::success();
}

/// The names that nodes read, those in subgraphs included.
static void collectReads(const onnx::GraphProto &graph,
                         llvm::StringSet<> &read) {
  for (const onnx::NodeProto &node : graph.node()) {
    for (const std::string &input : node.input())
      read.insert(input);
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        collectReads(attribute.g(), read);
      for (const onnx::GraphProto &g : attribute.graphs())
        collectReads(g, read);
    }
  }
  for (const onnx::ValueInfoProto &output : graph.output())
    read.insert(output.name());
}

void Importer::addInitializers() {
  llvm::StringSet<> read;
  collectReads(graph, read);
  for (onnx::TensorProto &proto : *graph.mutable_initializer()) {
    if (!read.contains(proto.name()))
      continue;
    auto tensor = readTensor(b.getContext(), proto, proto.name());
    if (tensor) {
      values[proto.name()] = *tensor;
      continue;
    }
    problems.push_back(llvm::toString(tensor.takeError()));
    values[proto.name()] = Tensor();
  }
}

void Importer::addNode(onnx::NodeProto &proto) {
  int opset = model.opset(proto.domain());
  auto fail = [&](const Twine &reason) {
    problems.push_back(describeNode(proto, opset) + ": " + reason.str());
  };
  auto poison = [&] {
    for (const std::string &output : proto.output())
      values[output] = Tensor();
  };
  const OpEntry *entryOp = canonicalDomain(proto.domain()).empty()
                               ? lookupOp(proto.op_type())
                               : nullptr;
  if (!entryOp) {
    // Listed by loadModel already, unless a function body brought it in.
    std::string text = describeNode(proto, opset);
    if (llvm::none_of(problems, [&](const std::string &p) {
          return StringRef(p).starts_with(text);
        }))
      fail("this op is not supported");
    return poison();
  }
  int since = sinceVersion(proto.op_type(), "", opset);
  if (since < entryOp->since) {
    fail("version " + Twine(since) +
         " of this op is too old; the oldest that is supported is " +
         Twine(entryOp->since));
    return poison();
  }
  SmallVector<Tensor *> inputs;
  for (const std::string &input : proto.input()) {
    if (input.empty()) {
      inputs.push_back(nullptr);
      continue;
    }
    auto it = values.find(input);
    // Nothing to say about nodes that read what failed.
    if (it == values.end() || !it->second)
      return poison();
    inputs.push_back(&it->second);
  }
  while (!inputs.empty() && !inputs.back())
    inputs.pop_back();

  StringRef name = proto.name();
  if (name.empty() && proto.output_size())
    name = proto.output(0);
  Location loc = NameLoc::get(b.getStringAttr(name));
  Node node(proto, since, b, loc, entry, inputs);
  node.checks = &checks;
  node.buildSubgraph = [&](const onnx::AttributeProto &attribute,
                           SmallVectorImpl<Tensor> &outputs) {
    // The model is ours: attributes of its nodes may be consumed.
    return addSubgraph(const_cast<onnx::AttributeProto &>(attribute), outputs);
  };
  if (auto error = entryOp->build(node)) {
    fail(llvm::toString(std::move(error)));
    return poison();
  }
  for (auto [output, tensor] : llvm::zip(proto.output(), node.results()))
    if (!output.empty())
      values[output] = std::move(tensor);
}

llvm::Error Importer::addSubgraph(onnx::AttributeProto &attribute,
                                  SmallVectorImpl<Tensor> &outputs) {
  // Names are unique over a model and its subgraphs (IR specification), so the
  // branch's values can join the others.
  onnx::GraphProto &g = *attribute.mutable_g();
  for (onnx::TensorProto &proto : *g.mutable_initializer()) {
    auto tensor = readTensor(b.getContext(), proto, proto.name());
    if (!tensor)
      return tensor.takeError();
    values[proto.name()] = *tensor;
  }
  size_t before = problems.size();
  for (onnx::NodeProto &node : *g.mutable_node())
    addNode(node);
  for (const onnx::ValueInfoProto &output : g.output()) {
    auto it = values.find(output.name());
    if (it == values.end() || !it->second)
      return llvm::createStringError(
          problems.size() > before ? "a node of the branch cannot be imported"
                                   : "an output of the branch is not computed");
    outputs.push_back(it->second);
  }
  return llvm::Error::success();
}

void Importer::addResults() {
  SmallVector<Value> results;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    Tensor &tensor = values[output.name()];
    if (!tensor) {
      problems.push_back("output '" + output.name() + "' is not computed");
      continue;
    }
    onnx::NodeProto none;
    Node node(none, 0, b, NameLoc::get(b.getStringAttr(output.name())), entry,
              {});
    Value value = node.value(tensor);
    // A size that is known after all belongs in the signature.
    if (auto cast = value.getDefiningOp<tensor::CastOp>())
      if (tensor::preservesStaticInformation(value.getType(),
                                             cast.getSource().getType()))
        value = cast.getSource();
    results.push_back(value);
    types.push_back(results.back().getType());
    attrs.push_back(valueAttrs(output.name(), tensor.dtype));
  }
  for (auto &[worst, text] : checks) {
    results.push_back(worst);
    types.push_back(worst.getType());
    attrs.push_back(b.getDictionaryAttr(
        b.getNamedAttr("pto.check", b.getStringAttr(text))));
  }
  func::ReturnOp::create(b, main.getLoc(), results);
  main.setFunctionType(b.getFunctionType(entry->getArgumentTypes(), types));
  main.setAllResultAttrs(attrs);
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>>
importOnnx(MLIRContext &context, StringRef path, const ImportOptions &options,
           llvm::SmallVectorImpl<std::string> *warnings) {
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect,
                      func::FuncDialect, linalg::LinalgDialect,
                      math::MathDialect, tensor::TensorDialect>();
  auto model = loadModel(path, options, warnings);
  if (!model)
    return model.takeError();
  return Importer(context, *model).run();
}

} // namespace pto::lowering
