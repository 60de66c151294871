//===- ConstantTranspose.cpp - Constants stored in another order ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/ConstantTranspose.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace pto::lowering {

/// Constants of at most so many bytes are inline.
constexpr size_t kInlineBytes = 64;

/// Copies a row-major tensor so that dim i of the copy is dim perm[i], of size
/// sizes[i], of `from`. Width is the element's size in bytes.
template <typename Element>
static void transpose(const char *from, char *to, ArrayRef<int64_t> sizes,
                      ArrayRef<int64_t> strides) {
  auto *source = reinterpret_cast<const Element *>(from);
  auto *target = reinterpret_cast<Element *>(to);
  SmallVector<int64_t> index(sizes.size(), 0);
  int64_t inner = sizes.back(), step = strides.back(), offset = 0;
  while (true) {
    for (int64_t i = 0; i < inner; ++i)
      *target++ = source[offset + i * step];
    int64_t dim = static_cast<int64_t>(sizes.size()) - 2;
    for (; dim >= 0; --dim) {
      offset += strides[dim];
      if (++index[dim] < sizes[dim])
        break;
      offset -= strides[dim] * sizes[dim];
      index[dim] = 0;
    }
    if (dim < 0)
      return;
  }
}

ElementsAttr transposedConstant(linalg::GenericOp op) {
  std::optional<SmallVector<int64_t>> perm =
      linalg::isaTransposeOpInterface(op);
  auto constant =
      perm ? op.getDpsInputs()[0].getDefiningOp<arith::ConstantOp>() : nullptr;
  if (!constant)
    return {};
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  Type elementType = type.getElementType();
  if (!elementType.isIntOrFloat() || type.getNumElements() == 0)
    return {};
  unsigned bits = elementType.getIntOrFloatBitWidth();
  ArrayRef<char> data;
  if (auto resource =
          dyn_cast<DenseResourceElementsAttr>(constant.getValue())) {
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      data = blob->getData();
  } else if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue())) {
    if (!dense.isSplat())
      data = dense.getRawData();
  }
  if (bits % 8 != 0 ||
      data.size() < static_cast<size_t>(type.getNumElements() * bits / 8))
    return {};

  // The generic walks its result in order; read where its input map says.
  ArrayRef<int64_t> source =
      cast<RankedTensorType>(constant.getType()).getShape();
  AffineMap in = op.getIndexingMapsArray()[0];
  SmallVector<int64_t> strides(source.size());
  int64_t stride = 1;
  for (int64_t dim = static_cast<int64_t>(source.size()) - 1; dim >= 0; --dim) {
    strides[in.getDimPosition(dim)] = stride;
    stride *= source[dim];
  }
  AsmResourceBlob blob = HeapAsmResourceBlob::allocate(
      type.getNumElements() * bits / 8, 64, /*dataIsMutable=*/true);
  char *to = blob.getMutableData().data();
  switch (bits) {
  case 8:
    transpose<uint8_t>(data.data(), to, type.getShape(), strides);
    break;
  case 16:
    transpose<uint16_t>(data.data(), to, type.getShape(), strides);
    break;
  case 32:
    transpose<uint32_t>(data.data(), to, type.getShape(), strides);
    break;
  case 64:
    transpose<uint64_t>(data.data(), to, type.getShape(), strides);
    break;
  default:
    return {};
  }
  if (blob.getData().size() <= kInlineBytes)
    return DenseElementsAttr::getFromRawBuffer(type, blob.getData());
  return DenseResourceElementsAttr::get(type, "transposed", std::move(blob));
}

} // namespace pto::lowering
