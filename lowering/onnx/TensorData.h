//===- TensorData.h - Weights from a TensorProto ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A TensorProto says its data in one of many ways (raw, typed fields, a file
// beside the model). Everything it claims is checked against what is there
// before anything of the claimed size is allocated.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_ONNX_TENSORDATA_H
#define PTO_LOWERING_ONNX_TENSORDATA_H

#include "lowering/onnx/Tensor.h"
#include "llvm/Support/Error.h"

namespace onnx {
class TensorProto;
} // namespace onnx

namespace pto::lowering {

/// Moves the data of a tensor whose data lies in an external file into
/// raw_data. `folder` is the model's.
llvm::Error loadExternalData(onnx::TensorProto &tensor, llvm::StringRef folder);

/// Checks dims, data type and the number of bytes. For tensors in the model
/// file; external ones are checked when they are loaded.
llvm::Error checkTensor(const onnx::TensorProto &tensor, llvm::StringRef name);

/// The tensor as a constant. The proto's data is released: a model's weights
/// are in memory once.
llvm::Expected<Tensor> readTensor(mlir::MLIRContext *context,
                                  onnx::TensorProto &tensor,
                                  llvm::StringRef name);

} // namespace pto::lowering

#endif // PTO_LOWERING_ONNX_TENSORDATA_H
