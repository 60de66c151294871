//===- TensorFile.h - ONNX tensors in files ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reads input_J.pb and output_J.pb of an ONNX test_data_set folder.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_TENSORFILE_H
#define PTO_TUNER_TENSORFILE_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pto::tuner {

/// A dense row-major tensor with its own bytes. dtype: pto_abi.h's numbers,
/// which are ONNX's.
struct HostTensor {
  std::string name;
  int32_t dtype = 0;
  std::vector<int64_t> shape;
  std::vector<char> bytes;

  int64_t elements() const;
};

/// Bytes of an element; 0 for a type that the C interface does not know.
int64_t elementBytes(int32_t dtype);

/// "f32", "u8", ... for people.
llvm::StringRef dtypeText(int32_t dtype);

llvm::Expected<HostTensor> readTensorFile(llvm::StringRef path);

/// FOLDER/PREFIX_J.pb for J = 0, 1, ..; a gap ends the list.
llvm::Expected<std::vector<HostTensor>>
readTensorFolder(llvm::StringRef folder, llvm::StringRef prefix);

} // namespace pto::tuner

#endif // PTO_TUNER_TENSORFILE_H
