//===- Node.cpp - What a builder sees of an ONNX node ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Node.h"
#include "lowering/onnx/Shapes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace pto::lowering {

Node::Node(onnx::NodeProto &proto, int since, OpBuilder &b, Location loc,
           Block *entry, ArrayRef<Tensor *> inputs)
    : b(b), loc(loc), since(since), node(proto), entry(entry), inputs(inputs),
      outputs(proto.output_size()) {}

StringRef Node::op() const { return node.op_type(); }

bool Node::wants(size_t i) const {
  return int(i) < node.output_size() && !node.output(i).empty();
}

Value Node::constant(ElementsAttr attr) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  return arith::ConstantOp::create(b, loc, attr);
}

Value Node::value(Tensor &tensor) {
  if (tensor.value)
    return tensor.value;
  if (tensor.constant)
    return tensor.value = constant(tensor.constant);
  SmallVector<Value> scalars;
  for (OpFoldResult e : *tensor.elements)
    scalars.push_back(scalarValue(b, loc, e));
  return tensor.value =
             tensor::FromElementsOp::create(b, loc, tensor.type, scalars);
}

const onnx::AttributeProto *Node::attr(StringRef name) const {
  for (const onnx::AttributeProto &a : node.attribute())
    if (a.name() == name)
      return &a;
  return nullptr;
}

int64_t Node::intAttr(StringRef name, int64_t fallback) const {
  auto *a = attr(name);
  return a ? a->i() : fallback;
}
float Node::floatAttr(StringRef name, float fallback) const {
  auto *a = attr(name);
  return a ? a->f() : fallback;
}
std::string Node::stringAttr(StringRef name, StringRef fallback) const {
  auto *a = attr(name);
  return a ? a->s() : fallback.str();
}
SmallVector<int64_t> Node::intsAttr(StringRef name) const {
  auto *a = attr(name);
  return a ? SmallVector<int64_t>(a->ints().begin(), a->ints().end())
           : SmallVector<int64_t>();
}
SmallVector<float> Node::floatsAttr(StringRef name) const {
  auto *a = attr(name);
  return a ? SmallVector<float>(a->floats().begin(), a->floats().end())
           : SmallVector<float>();
}

llvm::Error Node::unsupported(const Twine &reason) const {
  return llvm::createStringError(reason + " is not supported");
}

llvm::Error Node::invalid(const Twine &reason) const {
  return llvm::createStringError("invalid: " + reason);
}

llvm::Expected<int64_t> normalizeAxis(Node &n, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= std::max<int64_t>(rank, 1))
    return n.invalid("axis " + Twine(axis) + " is out of range for rank " +
                     Twine(rank));
  return axis < 0 ? axis + rank : axis;
}

llvm::Expected<SmallVector<int64_t>>
listOperand(Node &n, size_t i, StringRef name, int inputSince) {
  if (n.since < inputSince)
    return n.intsAttr(name);
  if (!n.has(i) || n.in(i).shape() == ArrayRef<int64_t>{0})
    return SmallVector<int64_t>();
  auto known = knownIntegers(n.in(i));
  if (!known)
    return n.unsupported("a run-time value of '" + name + "'");
  return *known;
}

} // namespace pto::lowering
