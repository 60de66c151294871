//===- TensorData.cpp - Weights from a TensorProto ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/TensorData.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using onnx::TensorProto;

namespace pto::lowering {

static llvm::Error failure(StringRef name, const Twine &reason) {
  return llvm::createStringError("tensor '" + name + "': " + reason);
}

static std::string dimsText(const TensorProto &tensor) {
  SmallVector<std::string> dims;
  for (int64_t d : tensor.dims())
    dims.push_back(std::to_string(d));
  return llvm::join(dims, "x");
}

/// Number of elements, or an error for negative dims and overflow.
static llvm::Expected<int64_t> countElements(const TensorProto &tensor,
                                             StringRef name) {
  int64_t count = 1;
  for (int64_t d : tensor.dims()) {
    if (d < 0)
      return failure(name, "negative dim in " + dimsText(tensor));
    auto next = llvm::checkedMul(count, d);
    // Bytes must fit as well.
    if (!next || *next > INT64_MAX / 16)
      return failure(name, "claims " + dimsText(tensor) +
                               " elements, which no file can hold");
    count = *next;
  }
  return count;
}

/// Elements given in the typed field that holds `dtype`; -1 for raw_data.
static int64_t givenElements(const TensorProto &t) {
  if (t.has_raw_data())
    return -1;
  switch (t.data_type()) {
  case TensorProto::FLOAT:
    return t.float_data_size();
  case TensorProto::DOUBLE:
    return t.double_data_size();
  case TensorProto::INT64:
    return t.int64_data_size();
  case TensorProto::UINT32:
  case TensorProto::UINT64:
    return t.uint64_data_size();
  default:
    return t.int32_data_size();
  }
}

llvm::Error checkTensor(const TensorProto &tensor, StringRef name) {
  auto count = countElements(tensor, name);
  if (!count)
    return count.takeError();
  unsigned bytes = dtypeBytes(tensor.data_type());
  if (bytes == 0 || tensor.data_location() == TensorProto::EXTERNAL)
    return llvm::Error::success();
  if (tensor.has_segment())
    return failure(name, "segmented tensors are not supported");
  int64_t given = givenElements(tensor);
  int64_t have = given < 0 ? int64_t(tensor.raw_data().size()) : given;
  int64_t want = given < 0 ? *count * bytes : *count;
  if (have != want)
    return failure(name, "shape " + dimsText(tensor) + " of " +
                             onnxTypeName(tensor.data_type()) + " needs " +
                             Twine(want) + (given < 0 ? " bytes" : " values") +
                             ", the model has " + Twine(have));
  return llvm::Error::success();
}

llvm::Error loadExternalData(TensorProto &tensor, StringRef folder) {
  if (tensor.data_location() != TensorProto::EXTERNAL)
    return llvm::Error::success();
  StringRef name = tensor.name();
  std::string location;
  uint64_t offset = 0, length = 0;
  bool hasLength = false;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    StringRef value = entry.value();
    if (entry.key() == "location")
      location = value.str();
    else if (entry.key() == "offset" && value.getAsInteger(10, offset))
      return failure(name, "external data with offset '" + value + "'");
    else if (entry.key() == "length") {
      hasLength = true;
      if (value.getAsInteger(10, length))
        return failure(name, "external data with length '" + value + "'");
    }
  }
  if (location.empty())
    return failure(name, "external data without a location");
  // Only files in the model's folder or below: a model must not be able to
  // read elsewhere.
  if (llvm::sys::path::is_absolute(location))
    return failure(name, "external data file '" + location +
                             "' must be given relative to the model");
  for (StringRef part : llvm::make_range(llvm::sys::path::begin(location),
                                         llvm::sys::path::end(location)))
    if (part == "..")
      return failure(name, "external data file '" + location +
                               "' is outside the model's folder");
  SmallString<256> path(folder);
  llvm::sys::path::append(path, location);

  auto count = countElements(tensor, name);
  if (!count)
    return count.takeError();
  unsigned bytes = dtypeBytes(tensor.data_type());
  if (bytes == 0)
    return failure(name, "data type " + onnxTypeName(tensor.data_type()) +
                             " is not supported");
  uint64_t want = uint64_t(*count) * bytes;
  if (hasLength && length != want)
    return failure(name, "external data file '" + location + "': shape " +
                             dimsText(tensor) + " needs " + Twine(want) +
                             " bytes, its length is given as " + Twine(length));
  llvm::sys::fs::file_status status;
  if (auto error = llvm::sys::fs::status(path, status))
    return failure(name, "external data file '" + Twine(path) +
                             "': " + error.message());
  if (!llvm::sys::fs::is_regular_file(status))
    return failure(name, "external data file '" + Twine(path) +
                             "' is no regular file");
  uint64_t size = status.getSize();
  if (offset > size || size - offset < want)
    return failure(name, "external data file '" + Twine(path) + "': needs " +
                             Twine(want) + " bytes at offset " + Twine(offset) +
                             ", the file has " + Twine(size));
  if (want == 0) {
    tensor.set_raw_data("");
  } else {
    auto buffer = llvm::MemoryBuffer::getFileSlice(path, want, offset);
    if (!buffer)
      return failure(name, "external data file '" + Twine(path) +
                               "': " + buffer.getError().message());
    if ((*buffer)->getBufferSize() != want)
      return failure(name, "external data file '" + Twine(path) +
                               "' changed while it was read");
    tensor.set_raw_data((*buffer)->getBufferStart(), want);
  }
  tensor.clear_data_location();
  tensor.clear_external_data();
  return llvm::Error::success();
}

/// Bytes of a typed field, narrowed to the stored type.
template <typename To, typename From>
static SmallVector<char> pack(const From &field) {
  SmallVector<char> bytes;
  bytes.reserve(field.size() * sizeof(To));
  for (auto value : field) {
    To narrow = static_cast<To>(value);
    const char *p = reinterpret_cast<const char *>(&narrow);
    bytes.append(p, p + sizeof(To));
  }
  return bytes;
}

static SmallVector<char> typedBytes(const TensorProto &t) {
  switch (t.data_type()) {
  case TensorProto::FLOAT:
    return pack<float>(t.float_data());
  case TensorProto::DOUBLE:
    return pack<double>(t.double_data());
  case TensorProto::INT64:
    return pack<int64_t>(t.int64_data());
  case TensorProto::UINT64:
    return pack<uint64_t>(t.uint64_data());
  case TensorProto::UINT32:
    return pack<uint32_t>(t.uint64_data());
  case TensorProto::INT32:
    return pack<int32_t>(t.int32_data());
  default:
    return dtypeBytes(t.data_type()) == 2 ? pack<uint16_t>(t.int32_data())
                                          : pack<uint8_t>(t.int32_data());
  }
}

llvm::Expected<Tensor> readTensor(MLIRContext *context, TensorProto &tensor,
                                  StringRef name) {
  int dtype = tensor.data_type();
  Type element = storageType(context, dtype);
  if (!element)
    return failure(name,
                   "data type " + onnxTypeName(dtype) + " is not supported");
  if (auto error = checkTensor(tensor, name))
    return error;
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  auto type = RankedTensorType::get(shape, element);
  ElementsAttr constant;
  if (tensor.has_raw_data()) {
    ArrayRef<char> raw(tensor.raw_data().data(), tensor.raw_data().size());
    constant = makeConstant(type, raw, name);
    std::unique_ptr<std::string>(tensor.release_raw_data());
  } else {
    constant = makeConstant(type, typedBytes(tensor), name);
  }
  return Tensor::fromConstant(dtype, constant);
}

} // namespace pto::lowering
