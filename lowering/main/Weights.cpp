//===- Weights.cpp - A model's constants as bytes -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/main/Weights.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "targets/cpu/runtime/pto_artifact.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace pto::lowering {
namespace {

constexpr int64_t weightAlignment = 64;

std::pair<uint64_t, uint64_t> hashOf(ArrayRef<char> bytes) {
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(ArrayRef<uint8_t>(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  return {hash.low64, hash.high64};
}

int64_t elementBytes(Type type) {
  if (type.isIndex())
    return 8;
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

/// One element's bytes, `count` times.
void repeat(ArrayRef<char> element, int64_t count, SmallVector<char, 0> &out) {
  out.resize_for_overwrite(element.size() * count);
  for (int64_t i = 0; i < count; ++i)
    std::copy(element.begin(), element.end(), out.begin() + i * element.size());
}

} // namespace

llvm::Expected<int64_t> Weights::add(ElementsAttr value) {
  auto known = offsets.find(value);
  if (known != offsets.end())
    return known->second;

  auto type = cast<ShapedType>(value.getType());
  int64_t count = type.getNumElements();
  int64_t size = elementBytes(type.getElementType());
  ArrayRef<char> bytes;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return llvm::createStringError(
          llvm::inconvertibleErrorCode(),
          "constant '" + resource.getRawHandle().getKey() + "' has no data");
    bytes = blob->getData();
  } else if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (type.getElementType().isInteger(1)) {
      SmallVector<char, 0> &own = expanded.emplace_back();
      own.reserve(count);
      for (bool element : dense.getValues<bool>())
        own.push_back(element);
      bytes = own;
    } else if (dense.isSplat()) {
      SmallVector<char, 0> &own = expanded.emplace_back();
      repeat(dense.getRawData().take_front(size), count, own);
      bytes = own;
    } else {
      bytes = dense.getRawData();
    }
  }
  if (static_cast<int64_t>(bytes.size()) != count * size)
    return llvm::createStringError(
        llvm::inconvertibleErrorCode(),
        "a constant has " + llvm::Twine(bytes.size()) +
            " bytes; its type has " + llvm::Twine(count * size));

  std::vector<size_t> &equal = byHash[hashOf(bytes)];
  for (size_t index : equal)
    if (all[index].bytes == bytes)
      return offsets[value] = all[index].offset;
  equal.push_back(all.size());
  int64_t offset = end;
  all.push_back({offset, bytes});
  end = llvm::alignTo(offset + bytes.size(), weightAlignment);
  return offsets[value] = offset;
}

uint64_t Weights::id() const {
  std::vector<uint64_t> hashes;
  for (const Entry &entry : all) {
    auto [low, high] = hashOf(entry.bytes);
    hashes.insert(hashes.end(),
                  {static_cast<uint64_t>(entry.offset), low, high});
  }
  return llvm::xxh3_64bits(
      ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(hashes.data()),
                        hashes.size() * sizeof(uint64_t)));
}

void Weights::writeFile(llvm::raw_ostream &out) const {
  pto_weights_header header = {};
  std::copy_n("PTOWGHT1", 8, header.magic);
  header.size = size();
  header.id = id();
  out.write(reinterpret_cast<const char *>(&header), sizeof(header));
  int64_t at = 0;
  for (const Entry &entry : all) {
    out.write_zeros(entry.offset - at);
    out.write(entry.bytes.data(), entry.bytes.size());
    at = entry.offset + entry.bytes.size();
  }
  out.write_zeros(end - at);
}

} // namespace pto::lowering
