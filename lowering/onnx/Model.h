//===- Model.h - A checked ONNX model in memory -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Everything that needs the onnx library: parsing, checking, inlining of
// functions, shapes of inputs, shape inference. What the library accepts
// though it should not (opsets it does not know, external data that is not
// there, tensors larger than their data) is checked here.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_ONNX_MODEL_H
#define PTO_LOWERING_ONNX_MODEL_H

#include "lowering/onnx/Import.h"
#include "onnx/onnx_pb.h"
#include <memory>

namespace pto::lowering {

struct Model {
  std::string path;
  std::unique_ptr<onnx::ModelProto> proto;
  /// One line per node that no builder exists for: the importer goes on and
  /// adds what else it finds.
  std::vector<std::string> unsupported;

  /// Version of `domain` that the model imports; 0 if it does not.
  int opset(llvm::StringRef domain) const;
};

/// Reads and prepares the model: checked, functions inlined, the sizes of
/// `options` written into the graph's inputs, types of all values inferred as
/// far as the onnx library can (graph.value_info).
llvm::Expected<Model> loadModel(llvm::StringRef path,
                                const ImportOptions &options,
                                llvm::SmallVectorImpl<std::string> *warnings);

/// The version of the op's definition in effect at `opset`; 0 when the onnx
/// library knows no such op.
int sinceVersion(llvm::StringRef op, llvm::StringRef domain, int opset);

/// `name: Op (domain ai.onnx, opset 17)`, for messages.
std::string describeNode(const onnx::NodeProto &node, int opset);

/// ai.onnx is the long form of the empty domain.
inline llvm::StringRef canonicalDomain(llvm::StringRef domain) {
  return domain == "ai.onnx" ? llvm::StringRef() : domain;
}

} // namespace pto::lowering

#endif // PTO_LOWERING_ONNX_MODEL_H
