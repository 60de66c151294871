//===- Ops.cpp - From op name to builder ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Ops.h"
#include "llvm/ADT/STLExtras.h"

namespace pto::lowering {

// Sorted by family, then by name. Ops of ai.onnx that are defined by a function
// body and are missing here are replaced by that body.
static const OpEntry kOps[] = {
    // Arithmetic. Before version 7 broadcasting was an attribute.
    {"Abs", 6, buildElementwise},
    {"Add", 7, buildElementwise},
    {"Div", 7, buildElementwise},
    {"Mod", 10, buildElementwise},
    {"Mul", 7, buildElementwise},
    {"Neg", 6, buildElementwise},
    {"Pow", 7, buildElementwise},
    {"Reciprocal", 6, buildElementwise},
    {"Sign", 9, buildElementwise},
    {"Sqrt", 6, buildElementwise},
    {"Sub", 7, buildElementwise},
    {"Max", 8, buildVariadic},
    {"Mean", 8, buildVariadic},
    {"Min", 8, buildVariadic},
    {"Sum", 8, buildVariadic},
    {"Acos", 7, buildElementwise},
    {"Acosh", 9, buildElementwise},
    {"Asin", 7, buildElementwise},
    {"Asinh", 9, buildElementwise},
    {"Atan", 7, buildElementwise},
    {"Atanh", 9, buildElementwise},
    {"Ceil", 6, buildElementwise},
    {"Cos", 7, buildElementwise},
    {"Cosh", 9, buildElementwise},
    {"Erf", 9, buildElementwise},
    {"Exp", 6, buildElementwise},
    {"Floor", 6, buildElementwise},
    {"Log", 6, buildElementwise},
    {"Round", 11, buildElementwise},
    {"Sin", 7, buildElementwise},
    {"Sinh", 9, buildElementwise},
    {"Tan", 7, buildElementwise},
    // Activations.
    {"Celu", 12, buildElementwise},
    {"Clip", 6, buildClip},
    {"Elu", 6, buildElementwise},
    {"Gelu", 20, buildElementwise},
    {"HardSigmoid", 6, buildElementwise},
    {"HardSwish", 14, buildElementwise},
    {"LeakyRelu", 6, buildElementwise},
    {"Mish", 18, buildElementwise},
    {"PRelu", 7, buildElementwise},
    {"Relu", 6, buildElementwise},
    {"Selu", 6, buildElementwise},
    {"Shrink", 9, buildElementwise},
    {"Sigmoid", 6, buildElementwise},
    {"Softplus", 1, buildElementwise},
    {"Softsign", 1, buildElementwise},
    {"Swish", 24, buildElementwise},
    {"Tanh", 6, buildElementwise},
    {"ThresholdedRelu", 10, buildElementwise},
    {"LogSoftmax", 1, buildSoftmax},
    {"Softmax", 1, buildSoftmax},
    // Comparisons and logic.
    {"And", 7, buildElementwise},
    {"BitShift", 11, buildElementwise},
    {"BitwiseAnd", 18, buildElementwise},
    {"BitwiseNot", 18, buildElementwise},
    {"BitwiseOr", 18, buildElementwise},
    {"BitwiseXor", 18, buildElementwise},
    {"Equal", 7, buildElementwise},
    {"Greater", 7, buildElementwise},
    {"GreaterOrEqual", 12, buildElementwise},
    {"IsInf", 10, buildElementwise},
    {"IsNaN", 9, buildElementwise},
    {"Less", 7, buildElementwise},
    {"LessOrEqual", 12, buildElementwise},
    {"Not", 1, buildElementwise},
    {"Or", 7, buildElementwise},
    {"Where", 9, buildWhere},
    {"Xor", 7, buildElementwise},
    // Conversions.
    {"Cast", 6, buildCast},
    {"CastLike", 15, buildCastLike},
    // Contractions.
    {"Conv", 1, buildConv},
    {"ConvTranspose", 1, buildConvTranspose},
    {"Einsum", 12, buildEinsum},
    {"Gemm", 7, buildGemm},
    {"MatMul", 1, buildMatMul},
    // Quantised.
    {"ConvInteger", 10, buildConvInteger},
    {"DequantizeLinear", 10, buildDequantizeLinear},
    {"MatMulInteger", 10, buildMatMulInteger},
    {"QLinearConv", 10, buildQLinearConv},
    {"QLinearMatMul", 10, buildQLinearMatMul},
    {"QuantizeLinear", 10, buildQuantizeLinear},
    // Normalisation.
    {"BatchNormalization", 7, buildBatchNormalization},
    {"InstanceNormalization", 6, buildInstanceNormalization},
    {"LRN", 1, buildLrn},
    {"LayerNormalization", 17, buildLayerNormalization},
    {"LpNormalization", 1, buildLpNormalization},
    // Pooling and reductions.
    {"AveragePool", 1, buildAveragePool},
    {"GlobalAveragePool", 1, buildGlobalPool},
    {"GlobalMaxPool", 1, buildGlobalPool},
    {"LpPool", 2, buildLpPool},
    {"MaxPool", 1, buildMaxPool},
    {"ArgMax", 1, buildArgExtreme},
    {"ArgMin", 1, buildArgExtreme},
    {"CumProd", 26, buildCumulative},
    {"CumSum", 11, buildCumulative},
    {"Hardmax", 1, buildHardmax},
    {"ReduceL1", 1, buildReduce},
    {"ReduceL2", 1, buildReduce},
    {"ReduceLogSum", 1, buildReduce},
    {"ReduceLogSumExp", 1, buildReduce},
    {"ReduceMax", 1, buildReduce},
    {"ReduceMean", 1, buildReduce},
    {"ReduceMin", 1, buildReduce},
    {"ReduceProd", 1, buildReduce},
    {"ReduceSum", 1, buildReduce},
    {"ReduceSumSquare", 1, buildReduce},
    {"TopK", 1, buildTopK},
    // Constants and shapes.
    {"Constant", 1, buildConstant},
    {"ConstantOfShape", 9, buildConstantOfShape},
    {"EyeLike", 9, buildEyeLike},
    {"OneHot", 9, buildOneHot},
    {"Range", 11, buildRange},
    {"Shape", 1, buildShape},
    {"Size", 1, buildSize},
    {"Dropout", 7, buildDropout},
    {"Flatten", 1, buildFlatten},
    {"Identity", 1, buildIdentity},
    {"Reshape", 5, buildReshape},
    {"Squeeze", 1, buildSqueeze},
    {"Unsqueeze", 1, buildUnsqueeze},
    // Data movement.
    {"Concat", 4, buildConcat},
    {"Expand", 8, buildExpand},
    {"Gather", 1, buildGather},
    {"GatherElements", 11, buildGatherElements},
    {"GatherND", 11, buildGatherND},
    {"Slice", 1, buildSlice},
    {"Split", 2, buildSplit},
    {"DepthToSpace", 1, buildDepthToSpace},
    {"Pad", 2, buildPad},
    {"Resize", 10, buildResize},
    {"Scatter", 9, buildScatterElements},
    {"ScatterElements", 11, buildScatterElements},
    {"ScatterND", 11, buildScatterND},
    {"SpaceToDepth", 1, buildSpaceToDepth},
    {"Tile", 6, buildTile},
    {"Transpose", 1, buildTranspose},
    {"Trilu", 14, buildTrilu},
    {"Upsample", 7, buildResize},
    // Control flow.
    {"If", 1, buildIf},
};

llvm::ArrayRef<OpEntry> opTable() { return kOps; }

const OpEntry *lookupOp(llvm::StringRef name) {
  for (const OpEntry &entry : kOps)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

} // namespace pto::lowering
