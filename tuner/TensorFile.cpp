//===- TensorFile.cpp - ONNX tensors in files -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/TensorFile.h"
#include "targets/cpu/runtime/pto_abi.h"
#include "tuner/ToolError.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstring>
#include <onnx/onnx_pb.h>

namespace pto::tuner {
namespace {

template <typename To, typename Field>
void copyField(const Field &field, std::vector<char> &bytes) {
  bytes.resize(field.size() * sizeof(To));
  for (int i = 0; i < field.size(); ++i) {
    To value = static_cast<To>(field.Get(i));
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
}

/// The typed fields, where raw_data is not used.
void copyFields(const onnx::TensorProto &proto, HostTensor &tensor) {
  switch (tensor.dtype) {
  case PTO_F32:
    return copyField<float>(proto.float_data(), tensor.bytes);
  case PTO_F64:
    return copyField<double>(proto.double_data(), tensor.bytes);
  case PTO_I64:
    return copyField<int64_t>(proto.int64_data(), tensor.bytes);
  case PTO_U32:
    return copyField<uint32_t>(proto.uint64_data(), tensor.bytes);
  case PTO_U64:
    return copyField<uint64_t>(proto.uint64_data(), tensor.bytes);
  case PTO_I32:
    return copyField<int32_t>(proto.int32_data(), tensor.bytes);
  case PTO_U8:
  case PTO_I8:
  case PTO_BOOL:
    return copyField<uint8_t>(proto.int32_data(), tensor.bytes);
  case PTO_U16:
  case PTO_I16:
  case PTO_F16:
  case PTO_BF16:
    return copyField<uint16_t>(proto.int32_data(), tensor.bytes);
  }
}

} // namespace

int64_t elementBytes(int32_t dtype) {
  switch (dtype) {
  case PTO_U8:
  case PTO_I8:
  case PTO_BOOL:
    return 1;
  case PTO_U16:
  case PTO_I16:
  case PTO_F16:
  case PTO_BF16:
    return 2;
  case PTO_F32:
  case PTO_I32:
  case PTO_U32:
    return 4;
  case PTO_F64:
  case PTO_I64:
  case PTO_U64:
    return 8;
  }
  return 0;
}

llvm::StringRef dtypeText(int32_t dtype) {
  static const char *const names[] = {"?",   "f32", "u8", "i8",   "u16", "i16",
                                      "i32", "i64", "?",  "bool", "f16", "f64",
                                      "u32", "u64", "?",  "?",    "bf16"};
  return dtype >= 0 && dtype <= PTO_BF16 ? names[dtype] : "?";
}

int64_t HostTensor::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

llvm::Expected<HostTensor> readTensorFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return toolError(BadInput, path + ": " + buffer.getError().message());
  onnx::TensorProto proto;
  if (!proto.ParseFromArray((*buffer)->getBufferStart(),
                            static_cast<int>((*buffer)->getBufferSize())))
    return toolError(BadInput, path + ": is no ONNX tensor, or is truncated");
  HostTensor tensor;
  tensor.name = proto.name();
  tensor.dtype = proto.data_type();
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  int64_t size = elementBytes(tensor.dtype);
  if (!size)
    return toolError(BadInput, path + ": element type " +
                                   llvm::Twine(tensor.dtype) +
                                   " is not supported");
  if (proto.has_raw_data())
    tensor.bytes.assign(proto.raw_data().begin(), proto.raw_data().end());
  else
    copyFields(proto, tensor);
  int64_t expected = size;
  for (int64_t dim : tensor.shape)
    if (dim < 0 || __builtin_mul_overflow(expected, dim, &expected))
      return toolError(BadInput, path + ": impossible shape");
  if (static_cast<int64_t>(tensor.bytes.size()) != expected)
    return toolError(BadInput,
                     path + ": has " + llvm::Twine(tensor.bytes.size()) +
                         " bytes; its shape needs " + llvm::Twine(expected));
  return tensor;
}

llvm::Expected<std::vector<HostTensor>>
readTensorFolder(llvm::StringRef folder, llvm::StringRef prefix) {
  std::vector<HostTensor> tensors;
  for (unsigned i = 0;; ++i) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, prefix + "_" + llvm::Twine(i) + ".pb");
    if (!llvm::sys::fs::exists(path))
      return std::move(tensors);
    auto tensor = readTensorFile(path);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
}

} // namespace pto::tuner
