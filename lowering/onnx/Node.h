//===- Node.h - What a builder sees of an ONNX node -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A builder (Ops.h) gets one Node: the inputs as Tensors, the attributes, the
// version of the op's definition that holds at the model's opset, and an
// OpBuilder. It sets every output or returns an error that says why not; the
// importer adds node name, op and opset and goes on to the next node.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_ONNX_NODE_H
#define PTO_LOWERING_ONNX_NODE_H

#include "lowering/onnx/Tensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>

namespace onnx {
class AttributeProto;
class NodeProto;
class TensorProto;
} // namespace onnx

namespace pto::lowering {

class Node {
public:
  Node(onnx::NodeProto &proto, int since, mlir::OpBuilder &b,
       mlir::Location loc, mlir::Block *entry, llvm::ArrayRef<Tensor *> inputs);

  mlir::OpBuilder &b;
  mlir::Location loc;
  /// Version of the op's definition in effect: Squeeze at opset 17 has 13.
  const int since;

  llvm::StringRef op() const;
  onnx::NodeProto &proto() { return node; }

  size_t numInputs() const { return inputs.size(); }
  size_t numOutputs() const { return outputs.size(); }
  /// Input i is given (neither missing at the end nor the empty name).
  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  /// Output i has a name, so somebody may read it.
  bool wants(size_t i) const;
  Tensor &in(size_t i) { return *inputs[i]; }
  /// Input i as an SSA value.
  mlir::Value value(size_t i) { return value(in(i)); }
  mlir::Value value(Tensor &tensor);
  /// A constant at the head of the function.
  mlir::Value constant(mlir::ElementsAttr attr);

  bool hasAttr(llvm::StringRef name) const { return attr(name); }
  int64_t intAttr(llvm::StringRef name, int64_t fallback) const;
  float floatAttr(llvm::StringRef name, float fallback) const;
  std::string stringAttr(llvm::StringRef name, llvm::StringRef fallback) const;
  /// Empty when absent.
  llvm::SmallVector<int64_t> intsAttr(llvm::StringRef name) const;
  llvm::SmallVector<float> floatsAttr(llvm::StringRef name) const;
  const onnx::AttributeProto *attr(llvm::StringRef name) const;

  /// Builds the nodes of a subgraph here and gives its outputs. Set by the
  /// importer; for branches that are known to be taken.
  std::function<llvm::Error(const onnx::AttributeProto &,
                            llvm::SmallVectorImpl<Tensor> &)>
      buildSubgraph;

  /// Has a run fail when an element of `indices`, at its position's limit in
  /// `limits` (one, or one for each place of the last dim), is outside
  /// [-limit, limit). An error where that is known now.
  llvm::Error checkIndices(Tensor &indices,
                           llvm::ArrayRef<mlir::OpFoldResult> limits);
  /// Has a run fail unless the comparison holds.
  llvm::Error require(mlir::arith::CmpIPredicate predicate,
                      mlir::OpFoldResult x, mlir::OpFoldResult y,
                      const llvm::Twine &message);
  /// Where checkIndices leaves what the importer has to add to @main's results:
  /// the least index out of bounds, and the text that goes before it.
  llvm::SmallVectorImpl<std::pair<mlir::Value, std::string>> *checks = nullptr;

  void set(size_t i, Tensor tensor) { outputs[i] = std::move(tensor); }
  void set(size_t i, int dtype, mlir::Value value) {
    outputs[i] = Tensor::fromValue(dtype, value);
  }
  llvm::MutableArrayRef<Tensor> results() { return outputs; }

  /// The node is valid ONNX but pto cannot build it (yet).
  llvm::Error unsupported(const llvm::Twine &reason) const;
  /// The node breaks ONNX's rules.
  llvm::Error invalid(const llvm::Twine &reason) const;

private:
  onnx::NodeProto &node;
  mlir::Block *entry;
  llvm::SmallVector<Tensor *> inputs;
  llvm::SmallVector<Tensor> outputs;
};

/// Resolves a negative axis; fails when out of [-rank, rank).
llvm::Expected<int64_t> normalizeAxis(Node &n, int64_t axis, int64_t rank);

/// The list in input `i`, or in attribute `name` where the op's version is
/// older than `inputSince`; empty when absent. Every value must be known.
llvm::Expected<llvm::SmallVector<int64_t>>
listOperand(Node &n, size_t i, llvm::StringRef name, int inputSince);

} // namespace pto::lowering

#endif // PTO_LOWERING_ONNX_NODE_H
