//===- Model.cpp - A checked ONNX model in memory -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The one file that is compiled with exceptions: the onnx library throws.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Model.h"
#include "lowering/onnx/Ops.h"
#include "lowering/onnx/TensorData.h"
#include "onnx/checker.h"
#include "onnx/defs/schema.h"
#include "onnx/inliner/inliner.h"
#include "onnx/shape_inference/implementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

using llvm::StringRef;
using llvm::Twine;
using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;

namespace pto::lowering {

int Model::opset(StringRef domain) const {
  for (const onnx::OperatorSetIdProto &import : proto->opset_import())
    if (canonicalDomain(import.domain()) == canonicalDomain(domain))
      return import.version();
  return 0;
}

int sinceVersion(StringRef op, StringRef domain, int opset) {
  const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Schema(
      op.str(), opset, canonicalDomain(domain).str());
  return schema ? schema->since_version() : 0;
}

std::string describeNode(const NodeProto &node, int opset) {
  std::string name = node.name();
  if (name.empty())
    for (const std::string &output : node.output())
      if (!output.empty()) {
        name = "(output '" + output + "')";
        break;
      }
  StringRef domain = canonicalDomain(node.domain());
  return (name + ": " + node.op_type() + " (domain " +
          (domain.empty() ? StringRef("ai.onnx") : domain) + ", opset " +
          Twine(opset) + ")")
      .str();
}

namespace {

llvm::Error failure(StringRef path, const Twine &message) {
  return llvm::createStringError(path + ": " + message);
}

/// Runs `fn`, which calls the onnx library; what it throws becomes an error.
template <typename Fn>
llvm::Error guarded(StringRef path, StringRef what, Fn fn) {
  try {
    fn();
    return llvm::Error::success();
  } catch (const std::exception &e) {
    return failure(path, what + ": " + StringRef(e.what()).trim());
  } catch (...) {
    return failure(path, what + ": unknown error of the onnx library");
  }
}

llvm::Expected<std::unique_ptr<ModelProto>> parse(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return failure(path, "cannot be read: " + buffer.getError().message());
  StringRef data = (*buffer)->getBuffer();
  if (data.size() >= INT32_MAX)
    return failure(path, "is larger than 2 GiB, the limit of ONNX files; keep "
                         "the weights in external data");
  google::protobuf::LogSilencer silence;
  google::protobuf::io::ArrayInputStream stream(data.data(), data.size());
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT32_MAX);
  auto model = std::make_unique<ModelProto>();
  if (!model->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    return failure(path, "cannot be parsed as an ONNX model (truncated, or "
                         "another kind of file)");
  if (!model->has_graph())
    return failure(path, "cannot be parsed as an ONNX model (it has no graph)");
  return model;
}

llvm::Error checkOpsets(StringRef path, const ModelProto &model) {
  auto known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  for (const onnx::OperatorSetIdProto &import : model.opset_import()) {
    auto it = known.find(canonicalDomain(import.domain()).str());
    if (it != known.end() && import.version() > it->second.second)
      return failure(path, "asks for opset " + Twine(import.version()) +
                               " of domain " +
                               (it->first.empty() ? "ai.onnx" : it->first) +
                               "; the newest that is supported is " +
                               Twine(it->second.second));
  }
  return llvm::Error::success();
}

/// Calls `fn` on every node, those of subgraphs included.
template <typename Nodes, typename Fn> void forEachNode(Nodes &nodes, Fn fn) {
  for (auto &node : nodes) {
    fn(node);
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        forEachNode(*attribute.mutable_g()->mutable_node(), fn);
      for (GraphProto &g : *attribute.mutable_graphs())
        forEachNode(*g.mutable_node(), fn);
    }
  }
}

/// Calls `fn` on every tensor of the graph: initializers and attributes.
template <typename Fn> void forEachTensor(GraphProto &graph, Fn fn) {
  for (TensorProto &t : *graph.mutable_initializer())
    fn(t, StringRef(t.name()));
  for (NodeProto &node : *graph.mutable_node())
    for (AttributeProto &attribute : *node.mutable_attribute()) {
      StringRef name = node.output_size() ? StringRef(node.output(0))
                                          : StringRef(node.name());
      if (attribute.has_t())
        fn(*attribute.mutable_t(), name);
      for (TensorProto &t : *attribute.mutable_tensors())
        fn(t, name);
      if (attribute.has_g())
        forEachTensor(*attribute.mutable_g(), fn);
      for (GraphProto &g : *attribute.mutable_graphs())
        forEachTensor(g, fn);
    }
}

/// All tensors: sizes checked, external data loaded.
llvm::Error checkTensors(StringRef path, ModelProto &model) {
  std::string problems;
  StringRef folder = llvm::sys::path::parent_path(path);
  auto collect = [&](llvm::Error error) {
    if (error)
      problems +=
          (problems.empty() ? "" : "\n  ") + llvm::toString(std::move(error));
  };
  forEachTensor(*model.mutable_graph(), [&](TensorProto &t, StringRef name) {
    if (t.data_location() == TensorProto::EXTERNAL)
      collect(loadExternalData(t, folder));
    else
      collect(checkTensor(t, name));
  });
  if (problems.empty())
    return llvm::Error::success();
  return failure(path, problems);
}

/// The checker reports unsorted graphs, too, but less readably.
llvm::Error checkOrder(StringRef path, const GraphProto &graph) {
  llvm::StringMap<const NodeProto *> producer;
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      if (!output.empty())
        producer[output] = &node;
  llvm::StringSet<> done;
  for (const onnx::ValueInfoProto &input : graph.input())
    done.insert(input.name());
  for (const TensorProto &t : graph.initializer())
    done.insert(t.name());
  for (const NodeProto &node : graph.node()) {
    for (const std::string &input : node.input()) {
      auto it = producer.find(input);
      if (!input.empty() && !done.contains(input) && it != producer.end())
        return failure(path, "node '" + node.name() + "' (" + node.op_type() +
                                 ") reads '" + input + "', which node '" +
                                 it->second->name() + "' (" +
                                 it->second->op_type() +
                                 ") computes only later: the graph has a cycle "
                                 "or is not sorted");
    }
    for (const std::string &output : node.output())
      done.insert(output);
  }
  return llvm::Error::success();
}

bool hasFunctionBody(const NodeProto &node, int opset) {
  const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Schema(
      node.op_type(), opset, canonicalDomain(node.domain()).str());
  return schema &&
         (schema->HasFunction() || schema->HasContextDependentFunction());
}

/// Lists the nodes that have neither a builder nor a function body. True in
/// `unknown` when onnx's checker would stop at one of them.
void listUnsupported(Model &model, bool &unknown) {
  ModelProto &proto = *model.proto;
  llvm::StringSet<> local;
  for (const onnx::FunctionProto &f : proto.functions())
    local.insert((canonicalDomain(f.domain()) + "::" + f.name()).str());
  bool inSubgraph = false;
  auto visit = [&](const NodeProto &node) {
    StringRef domain = canonicalDomain(node.domain());
    int opset = model.opset(domain);
    if (local.contains((domain + "::" + node.op_type()).str()))
      return;
    if (domain.empty() && lookupOp(node.op_type()))
      return;
    int since = sinceVersion(node.op_type(), domain, opset);
    if (since && hasFunctionBody(node, opset))
      return;
    unknown |= !since;
    // A branch may never be taken: its nodes are judged when they are built.
    if (since && inSubgraph)
      return;
    model.unsupported.push_back(
        describeNode(node, opset) +
        (since ? ": this op is not supported"
               : ": there is no such op, and the model does not define it"));
  };
  auto visitAll = [&](auto &nodes) {
    for (NodeProto &node : nodes) {
      inSubgraph = false;
      visit(node);
      inSubgraph = true;
      for (AttributeProto &attribute : *node.mutable_attribute()) {
        if (attribute.has_g())
          forEachNode(*attribute.mutable_g()->mutable_node(), visit);
        for (GraphProto &g : *attribute.mutable_graphs())
          forEachNode(*g.mutable_node(), visit);
      }
    }
  };
  visitAll(*proto.mutable_graph()->mutable_node());
  for (onnx::FunctionProto &f : *proto.mutable_functions())
    visitAll(*f.mutable_node());
}

/// The sizes of the graph's inputs: from the options, equal symbols equal,
/// the rest 1 when dims are to be pinned.
llvm::Error fixInputs(StringRef path, GraphProto &graph,
                      const ImportOptions &options,
                      llvm::SmallVectorImpl<std::string> *warnings) {
  llvm::StringSet<> initializers;
  for (const TensorProto &t : graph.initializer())
    initializers.insert(t.name());
  llvm::SmallVector<onnx::ValueInfoProto *> inputs;
  for (onnx::ValueInfoProto &input : *graph.mutable_input())
    if (!initializers.contains(input.name()))
      inputs.push_back(&input);

  llvm::StringSet<> names;
  llvm::StringMap<int64_t> symbols;
  for (onnx::ValueInfoProto *input : inputs) {
    StringRef name = input->name();
    names.insert(name);
    if (!input->type().has_tensor_type())
      return failure(path, "input '" + name +
                               "' is no tensor, which is not supported");
    auto it = options.shapes.find(name);
    auto &tensor = *input->mutable_type()->mutable_tensor_type();
    if (it == options.shapes.end()) {
      if (!tensor.has_shape())
        return failure(path, "input '" + name +
                                 "' has no rank in the model: give its shape");
      continue;
    }
    llvm::ArrayRef<int64_t> shape = it->second;
    if (!tensor.has_shape())
      for (size_t i = 0; i < shape.size(); ++i)
        tensor.mutable_shape()->add_dim();
    if (tensor.shape().dim_size() != int(shape.size()))
      return failure(path, "input '" + name + "' has rank " +
                               Twine(tensor.shape().dim_size()) +
                               ", the given shape has " + Twine(shape.size()));
    for (auto [dim, size] :
         llvm::zip(*tensor.mutable_shape()->mutable_dim(), shape)) {
      if (dim.has_dim_value() && dim.dim_value() != size)
        return failure(path, "input '" + name + "' has a dim of size " +
                                 Twine(dim.dim_value()) + ", given as " +
                                 Twine(size));
      if (size < 0)
        return failure(path, "input '" + name + "': negative size given");
      if (dim.has_dim_param() && !dim.dim_param().empty()) {
        auto [symbol, isNew] = symbols.try_emplace(dim.dim_param(), size);
        if (!isNew && symbol->second != size)
          return failure(path, "dim '" + dim.dim_param() + "' is given as " +
                                   Twine(symbol->second) + " and as " +
                                   Twine(size));
      }
      dim.set_dim_value(size);
    }
  }
  for (const auto &entry : options.shapes)
    if (!names.contains(entry.first())) {
      llvm::SmallVector<StringRef> known;
      for (onnx::ValueInfoProto *input : inputs)
        known.push_back(input->name());
      return failure(path, "there is no input '" + entry.first() +
                               "'; the inputs are: " + llvm::join(known, ", "));
    }
  for (onnx::ValueInfoProto *input : inputs)
    for (auto [d, dim] : llvm::enumerate(*input->mutable_type()
                                              ->mutable_tensor_type()
                                              ->mutable_shape()
                                              ->mutable_dim())) {
      if (dim.has_dim_value() && dim.dim_value() >= 0)
        continue;
      auto symbol = symbols.find(dim.dim_param());
      if (symbol != symbols.end() && !dim.dim_param().empty()) {
        dim.set_dim_value(symbol->second);
      } else if (options.pinDynamicDims) {
        if (warnings)
          warnings->push_back(
              ("dim " + Twine(d) + " of input '" + input->name() + "'" +
               (dim.dim_param().empty()
                    ? Twine()
                    : " ('" + Twine(dim.dim_param()) + "')") +
               " is dynamic and nothing determines it: taken as 1")
                  .str());
        dim.set_dim_value(1);
      }
    }
  return llvm::Error::success();
}

/// The types that shape inference has found, by value name.
llvm::StringMap<onnx::TypeProto> valueTypes(const GraphProto &graph) {
  llvm::StringMap<onnx::TypeProto> types;
  for (const TensorProto &t : graph.initializer()) {
    auto &tensor = *types[t.name()].mutable_tensor_type();
    tensor.set_elem_type(t.data_type());
    auto &shape = *tensor.mutable_shape();
    for (int64_t d : t.dims())
      shape.add_dim()->set_dim_value(d);
  }
  for (const auto *list :
       {&graph.input(), &graph.output(), &graph.value_info()})
    for (const onnx::ValueInfoProto &info : *list)
      types[info.name()] = info.type();
  return types;
}

/// Makes the function body of `node`'s op a function of the model, specialised
/// for this node, and the node a call of it. The onnx library's own inliner
/// does not fill in attributes' defaults and fails on omitted inputs.
void callBody(Model &model, NodeProto &node,
              const llvm::StringMap<onnx::TypeProto> &types, int number) {
  StringRef domain = canonicalDomain(node.domain());
  int opset = model.opset(domain);
  const onnx::OpSchema *schema =
      onnx::OpSchemaRegistry::Schema(node.op_type(), opset, domain.str());
  for (const auto &[name, attribute] : schema->attributes()) {
    bool given = false;
    for (const AttributeProto &a : node.attribute())
      given |= a.name() == name;
    if (!given && attribute.default_value.has_name())
      *node.add_attribute() = attribute.default_value;
  }
  onnx::FunctionProto body;
  if (const onnx::FunctionProto *fixed = schema->GetFunction(opset)) {
    body = *fixed;
  } else {
    std::vector<onnx::TypeProto> inputs;
    for (const std::string &input : node.input()) {
      auto it = types.find(input);
      inputs.push_back(it == types.end() ? onnx::TypeProto() : it->second);
    }
    onnx::FunctionBodyBuildContextImpl context(node, inputs);
    if (!schema->BuildContextDependentFunction(context, body, opset))
      return;
  }
  const char *ownDomain = "pto.bodies";
  body.set_name(node.op_type() + "_" + std::to_string(number));
  body.set_domain(ownDomain);
  // The versions of GetFunction's ops hold at the model's opset.
  body.clear_opset_import();
  for (const onnx::OperatorSetIdProto &import : model.proto->opset_import())
    *body.add_opset_import() = import;
  if (!model.opset(ownDomain)) {
    onnx::OperatorSetIdProto &import = *model.proto->add_opset_import();
    import.set_domain(ownDomain);
    import.set_version(1);
  }
  node.set_op_type(body.name());
  node.set_domain(ownDomain);
  *model.proto->add_functions() = std::move(body);
}

/// Types of all values as far as the onnx library finds them.
void inferTypes(ModelProto &proto) {
  onnx::ShapeInferenceOptions options(/*check_type=*/true, /*strict_mode=*/0,
                                      /*data_prop=*/true);
  onnx::shape_inference::InferShapes(proto, onnx::OpSchemaRegistry::Instance(),
                                     options);
}

/// Replaces nodes of functions by their bodies: those that the model defines,
/// and ops without a builder whose definition is a function.
void inlineFunctions(Model &model) {
  ModelProto &proto = *model.proto;
  if (proto.functions_size())
    onnx::inliner::InlineLocalFunctions(proto, /*convert_version=*/false);
  // A body may use further ops that are functions.
  int number = 0;
  for (int round = 0; round < 8; ++round) {
    llvm::SmallVector<NodeProto *> calls;
    forEachNode(*proto.mutable_graph()->mutable_node(), [&](NodeProto &node) {
      StringRef domain = canonicalDomain(node.domain());
      if (!(domain.empty() && lookupOp(node.op_type())) &&
          hasFunctionBody(node, model.opset(domain)))
        calls.push_back(&node);
    });
    if (calls.empty())
      return;
    inferTypes(proto);
    llvm::StringMap<onnx::TypeProto> types = valueTypes(proto.graph());
    for (NodeProto *node : calls)
      callBody(model, *node, types, number++);
    onnx::inliner::InlineLocalFunctions(proto, /*convert_version=*/false);
  }
}

} // namespace

llvm::Expected<Model> loadModel(StringRef path, const ImportOptions &options,
                                llvm::SmallVectorImpl<std::string> *warnings) {
  Model model;
  model.path = path.str();
  auto proto = parse(path);
  if (!proto)
    return proto.takeError();
  model.proto = std::move(*proto);
  GraphProto &graph = *model.proto->mutable_graph();
  if (auto error = checkOpsets(path, *model.proto))
    return error;
  if (auto error = checkTensors(path, *model.proto))
    return error;
  bool unknown = false;
  listUnsupported(model, unknown);
  if (unknown)
    return failure(path, Twine(model.unsupported.size()) +
                             " nodes cannot be imported:\n  " +
                             llvm::join(model.unsupported, "\n  "));
  if (auto error = checkOrder(path, graph))
    return error;
  if (auto error = guarded(path, "invalid model", [&] {
        onnx::checker::check_model(*model.proto, /*full_check=*/false,
                                   /*skip_opset_compatibility_check=*/true);
      }))
    return error;
  // Shapes that an exporter wrote down may be those of one example.
  graph.clear_value_info();
  for (onnx::ValueInfoProto &output : *graph.mutable_output())
    if (output.type().has_tensor_type())
      output.mutable_type()->mutable_tensor_type()->clear_shape();
  if (auto error = fixInputs(path, graph, options, warnings))
    return error;
  if (auto error = guarded(path, "inlining of functions failed",
                           [&] { inlineFunctions(model); }))
    return error;
  if (auto error = guarded(path, "shape inference failed",
                           [&] { inferTypes(*model.proto); }))
    return error;
  return model;
}

} // namespace pto::lowering
