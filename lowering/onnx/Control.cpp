//===- Control.cpp - Control flow -----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Exporters write If nodes whose condition follows from shapes or options;
// only the branch taken is built.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Node.h"
#include "lowering/onnx/Ops.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace pto::lowering {

llvm::Error buildIf(Node &n) {
  auto condition = dyn_cast_if_present<IntegerAttr>(knownScalar(n.in(0)));
  if (!condition)
    return n.unsupported("a condition computed at run time");
  const onnx::AttributeProto *branch =
      n.attr(condition.getValue().isZero() ? "else_branch" : "then_branch");
  if (!branch)
    return n.invalid("a branch is missing");
  SmallVector<Tensor> outputs;
  if (auto error = n.buildSubgraph(*branch, outputs))
    return error;
  if (outputs.size() != n.numOutputs())
    return n.invalid("the branch has " + Twine(outputs.size()) + " outputs");
  for (auto [i, tensor] : llvm::enumerate(outputs))
    n.set(i, tensor);
  return llvm::Error::success();
}

} // namespace pto::lowering
