//===- Window.h - Sliding windows of convolutions and pools -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Kernel, strides, dilations and padding as ONNX gives them (auto_pad,
// ceil_mode), and what follows: output sizes, the padded input, and the
// indexing expressions. onnx's own shape inference is wrong for ceil_mode.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_ONNX_WINDOW_H
#define PTO_LOWERING_ONNX_WINDOW_H

#include "lowering/onnx/Generic.h"

namespace pto::lowering {

struct Window {
  llvm::SmallVector<int64_t> kernel, strides, dilations;
  Sizes padBegin, padEnd;
  bool ceil = false;

  int64_t rank() const { return kernel.size(); }
  /// Extent of the dilated kernel.
  int64_t extent(int64_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

/// Reads the window of `n`; `input` holds the spatial sizes.
llvm::Expected<Window> readWindow(Node &n, llvm::ArrayRef<int64_t> kernel,
                                  llvm::ArrayRef<mlir::OpFoldResult> input);

/// Number of window positions per spatial dim.
Sizes windowPositions(Node &n, const Window &w,
                      llvm::ArrayRef<mlir::OpFoldResult> input);

/// `input` (N, C, spatial...) padded with `value` so that every position of
/// the window lies inside.
mlir::Value padForWindow(Node &n, const Window &w, mlir::Value input,
                         llvm::ArrayRef<mlir::OpFoldResult> positions,
                         mlir::Value value);

/// position * stride + tap * dilation, the index expression of dim `d`.
mlir::AffineExpr windowExpr(const Window &w, int64_t d,
                            mlir::AffineExpr position, mlir::AffineExpr tap);

} // namespace pto::lowering

#endif // PTO_LOWERING_ONNX_WINDOW_H
