//===- Ops.h - From op name to builder --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The one table of what pto imports. To add an op: write its builder in the
// file of its family, declare it here, add a line to the table in Ops.cpp and
// a case to tests/unit/lowering/OnnxOpsTest.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_ONNX_OPS_H
#define PTO_LOWERING_ONNX_OPS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace pto::lowering {

class Node;

struct OpEntry {
  llvm::StringLiteral name; ///< In the default domain, ai.onnx.
  /// The oldest version of the op's definition that the builder reads.
  int since;
  llvm::Error (*build)(Node &);
};

llvm::ArrayRef<OpEntry> opTable();
/// Null when there is none.
const OpEntry *lookupOp(llvm::StringRef name);

// Elementwise.cpp
llvm::Error buildElementwise(Node &n);
llvm::Error buildVariadic(Node &n);
llvm::Error buildClip(Node &n);
llvm::Error buildWhere(Node &n);
// Cast.cpp
llvm::Error buildCast(Node &n);
llvm::Error buildCastLike(Node &n);
// Convolution.cpp
llvm::Error buildConv(Node &n);
llvm::Error buildConvTranspose(Node &n);
// MatMul.cpp
llvm::Error buildEinsum(Node &n);
llvm::Error buildGemm(Node &n);
llvm::Error buildMatMul(Node &n);
// Normalization.cpp
llvm::Error buildBatchNormalization(Node &n);
llvm::Error buildInstanceNormalization(Node &n);
llvm::Error buildLayerNormalization(Node &n);
llvm::Error buildLpNormalization(Node &n);
// Pooling.cpp
llvm::Error buildMaxPool(Node &n);
llvm::Error buildAveragePool(Node &n);
llvm::Error buildLpPool(Node &n);
llvm::Error buildLrn(Node &n);
// Reduce.cpp
llvm::Error buildReduce(Node &n);
llvm::Error buildGlobalPool(Node &n);
// Softmax.cpp
llvm::Error buildSoftmax(Node &n);
// Constant.cpp
llvm::Error buildConstant(Node &n);
llvm::Error buildConstantOfShape(Node &n);
llvm::Error buildRange(Node &n);
llvm::Error buildShape(Node &n);
llvm::Error buildSize(Node &n);
// Reshape.cpp
llvm::Error buildIdentity(Node &n);
llvm::Error buildDropout(Node &n);
llvm::Error buildReshape(Node &n);
llvm::Error buildFlatten(Node &n);
llvm::Error buildSqueeze(Node &n);
llvm::Error buildUnsqueeze(Node &n);
// Movement.cpp
llvm::Error buildTranspose(Node &n);
llvm::Error buildExpand(Node &n);
llvm::Error buildConcat(Node &n);
llvm::Error buildSplit(Node &n);
llvm::Error buildSlice(Node &n);
// Gather.cpp
llvm::Error buildGather(Node &n);
llvm::Error buildGatherElements(Node &n);
llvm::Error buildGatherND(Node &n);
// Scatter.cpp
llvm::Error buildScatterElements(Node &n);
llvm::Error buildScatterND(Node &n);
// Pad.cpp
llvm::Error buildPad(Node &n);
llvm::Error buildTile(Node &n);
llvm::Error buildDepthToSpace(Node &n);
llvm::Error buildSpaceToDepth(Node &n);
// Positional.cpp
llvm::Error buildTrilu(Node &n);
llvm::Error buildEyeLike(Node &n);
llvm::Error buildOneHot(Node &n);
llvm::Error buildCumulative(Node &n);
llvm::Error buildArgExtreme(Node &n);
llvm::Error buildHardmax(Node &n);
llvm::Error buildTopK(Node &n);
// Quantize.cpp
llvm::Error buildQuantizeLinear(Node &n);
llvm::Error buildDequantizeLinear(Node &n);
llvm::Error buildMatMulInteger(Node &n);
llvm::Error buildConvInteger(Node &n);
llvm::Error buildQLinearMatMul(Node &n);
llvm::Error buildQLinearConv(Node &n);
// Resize.cpp
llvm::Error buildResize(Node &n);
// Control.cpp
llvm::Error buildIf(Node &n);

} // namespace pto::lowering

#endif // PTO_LOWERING_ONNX_OPS_H
