//===- Window.cpp - Sliding windows of convolutions and pools -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Window.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace pto::lowering {

llvm::Expected<Window> readWindow(Node &n, ArrayRef<int64_t> kernel,
                                  ArrayRef<OpFoldResult> input) {
  Window w;
  w.kernel.assign(kernel.begin(), kernel.end());
  size_t rank = kernel.size();
  if (input.size() != rank)
    return n.invalid("kernel of rank " + Twine(rank) + " on " +
                     Twine(input.size()) + " spatial dims");
  w.strides = n.intsAttr("strides");
  w.dilations = n.intsAttr("dilations");
  if (w.strides.empty())
    w.strides.assign(rank, 1);
  if (w.dilations.empty())
    w.dilations.assign(rank, 1);
  if (w.strides.size() != rank || w.dilations.size() != rank)
    return n.invalid("strides or dilations do not match the kernel's rank");
  for (size_t d = 0; d < rank; ++d)
    if (w.strides[d] < 1 || w.dilations[d] < 1 || w.kernel[d] < 1)
      return n.invalid("strides, dilations and kernel sizes must be positive");
  w.ceil = n.intAttr("ceil_mode", 0);

  std::string autoPad = n.stringAttr("auto_pad", "NOTSET");
  OpBuilder &b = n.b;
  if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
    for (size_t d = 0; d < rank; ++d) {
      OpFoldResult stride = b.getIndexAttr(w.strides[d]);
      // ceil(in / stride) positions; what they need beyond the input is pad.
      OpFoldResult last = divSizes(
          b, n.loc, subSizes(b, n.loc, input[d], b.getIndexAttr(1)), stride);
      OpFoldResult need = addSizes(b, n.loc, mulSizes(b, n.loc, last, stride),
                                   b.getIndexAttr(w.extent(d)));
      OpFoldResult total = maxSizes(b, n.loc, b.getIndexAttr(0),
                                    subSizes(b, n.loc, need, input[d]));
      OpFoldResult half = divSizes(b, n.loc, total, b.getIndexAttr(2));
      OpFoldResult rest = subSizes(b, n.loc, total, half);
      bool upper = autoPad == "SAME_UPPER";
      w.padBegin.push_back(upper ? half : rest);
      w.padEnd.push_back(upper ? rest : half);
    }
    return w;
  }
  SmallVector<int64_t> pads =
      autoPad == "VALID" ? SmallVector<int64_t>() : n.intsAttr("pads");
  if (pads.empty())
    pads.assign(2 * rank, 0);
  if (pads.size() != 2 * rank)
    return n.invalid("pads do not match the kernel's rank");
  for (int64_t p : pads)
    if (p < 0)
      return n.unsupported("negative padding of a window");
  for (size_t d = 0; d < rank; ++d) {
    w.padBegin.push_back(b.getIndexAttr(pads[d]));
    w.padEnd.push_back(b.getIndexAttr(pads[rank + d]));
  }
  return w;
}

Sizes windowPositions(Node &n, const Window &w, ArrayRef<OpFoldResult> input) {
  Sizes result;
  OpBuilder &b = n.b;
  for (int64_t d = 0; d < w.rank(); ++d) {
    OpFoldResult stride = b.getIndexAttr(w.strides[d]);
    OpFoldResult begin = addSizes(b, n.loc, input[d], w.padBegin[d]);
    OpFoldResult span =
        subSizes(b, n.loc, addSizes(b, n.loc, begin, w.padEnd[d]),
                 b.getIndexAttr(w.extent(d)));
    if (w.ceil)
      span = addSizes(b, n.loc, span, b.getIndexAttr(w.strides[d] - 1));
    OpFoldResult count =
        addSizes(b, n.loc, divSizes(b, n.loc, span, stride), b.getIndexAttr(1));
    // A window that would start in the end padding does not count.
    if (w.ceil)
      count = minSizes(
          b, n.loc, count,
          divSizes(b, n.loc,
                   addSizes(b, n.loc, begin, b.getIndexAttr(w.strides[d] - 1)),
                   stride));
    result.push_back(maxSizes(b, n.loc, count, b.getIndexAttr(0)));
  }
  return result;
}

Value padForWindow(Node &n, const Window &w, Value input,
                   ArrayRef<OpFoldResult> positions, Value value) {
  OpBuilder &b = n.b;
  Sizes sizes = sizesOf(b, n.loc, input);
  OpFoldResult zero = b.getIndexAttr(0);
  Sizes low = {zero, zero}, high = {zero, zero};
  bool any = false;
  for (int64_t d = 0; d < w.rank(); ++d) {
    low.push_back(w.padBegin[d]);
    OpFoldResult end = w.padEnd[d];
    if (w.ceil) {
      OpFoldResult reach =
          addSizes(b, n.loc,
                   mulSizes(b, n.loc,
                            subSizes(b, n.loc, positions[d], b.getIndexAttr(1)),
                            b.getIndexAttr(w.strides[d])),
                   b.getIndexAttr(w.extent(d)));
      OpFoldResult have = addSizes(b, n.loc, sizes[d + 2], w.padBegin[d]);
      end = maxSizes(b, n.loc, subSizes(b, n.loc, reach, have), zero);
    }
    high.push_back(end);
    any |= known(low.back()) != 0 || known(high.back()) != 0;
  }
  if (!any)
    return input;
  SmallVector<OpFoldResult> padded;
  for (size_t d = 0; d < sizes.size(); ++d)
    padded.push_back(
        addSizes(b, n.loc, addSizes(b, n.loc, sizes[d], low[d]), high[d]));
  auto type =
      cast<RankedTensorType>(input.getType()).clone(staticShape(padded));
  return tensor::PadOp::create(b, n.loc, type, input, low, high, value);
}

AffineExpr windowExpr(const Window &w, int64_t d, AffineExpr position,
                      AffineExpr tap) {
  return position * w.strides[d] + tap * w.dilations[d];
}

} // namespace pto::lowering
