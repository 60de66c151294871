//===- Convolution.cpp - Conv ---------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Padding is a tensor.pad before, bias an elementwise op after the
// convolution, so that both can be fused or moved on their own. Plain and
// depthwise 2-D convolutions are named ops; all others are linalg.generic.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Ops.h"
#include "lowering/onnx/Window.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace pto::lowering {

/// Adds `bias` along dim 1.
static llvm::Expected<Tensor> addBias(Node &n, Tensor x, Tensor &bias) {
  Sizes shape(x.rank() - 1, n.b.getIndexAttr(1));
  shape[0] = sizesOf(n, bias)[0];
  Tensor column = reshape(n, bias, shape);
  return elementwise(n, {&x, &column}, x.dtype,
                     [](OpBuilder &b, Location loc, ArrayRef<Value> args) {
                       return scalarAdd(b, loc, args[0], args[1]);
                     });
}

/// Any rank and group: (n, [g,] m, positions..., c, taps...).
static Value genericConv(Node &n, const Window &w, Value input, Value weight,
                         ArrayRef<OpFoldResult> positions, int64_t group) {
  OpBuilder &b = n.b;
  int64_t rank = w.rank(), grouped = group > 1;
  Sizes in = sizesOf(b, n.loc, input), wt = sizesOf(b, n.loc, weight);
  OpFoldResult groups = b.getIndexAttr(group);
  OpFoldResult perGroup = divSizes(b, n.loc, wt[0], groups);
  Sizes out = {in[0]};
  if (grouped) {
    Sizes split = {in[0], groups, wt[1]};
    split.append(in.begin() + 2, in.end());
    input = reshape(b, n.loc, input, split);
    split = {groups, perGroup};
    split.append(wt.begin() + 1, wt.end());
    weight = reshape(b, n.loc, weight, split);
    out.push_back(groups);
  }
  out.push_back(perGroup);
  llvm::append_range(out, positions);

  int64_t next = 0;
  auto dim = [&] { return b.getAffineDimExpr(next++); };
  SmallVector<AffineExpr> inExprs, wExprs, outExprs;
  AffineExpr batch = dim();
  inExprs.push_back(batch);
  outExprs.push_back(batch);
  if (grouped) {
    AffineExpr g = dim();
    for (auto *exprs : {&inExprs, &wExprs, &outExprs})
      exprs->push_back(g);
  }
  AffineExpr m = dim();
  wExprs.push_back(m);
  outExprs.push_back(m);
  SmallVector<AffineExpr> position;
  for (int64_t d = 0; d < rank; ++d)
    position.push_back(dim());
  llvm::append_range(outExprs, position);
  AffineExpr c = dim();
  inExprs.push_back(c);
  wExprs.push_back(c);
  for (int64_t d = 0; d < rank; ++d) {
    AffineExpr tap = dim();
    inExprs.push_back(windowExpr(w, d, position[d], tap));
    wExprs.push_back(tap);
  }
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(next, 0, exprs, b.getContext());
  };
  SmallVector<bool> isReduction(next, false);
  std::fill(isReduction.end() - rank - 1, isReduction.end(), true);
  Type type = cast<RankedTensorType>(input.getType()).getElementType();
  Value init = filledTensor(b, n.loc, out, scalarConstant(b, n.loc, type, 0));
  Value result =
      contract(b, n.loc, input, weight, init,
               {map(inExprs), map(wExprs), map(outExprs)}, isReduction);
  if (!grouped)
    return result;
  Sizes merged = {in[0], wt[0]};
  llvm::append_range(merged, positions);
  return reshape(b, n.loc, result, merged);
}

llvm::Error buildConv(Node &n) {
  Tensor &x = n.in(0), &weight = n.in(1);
  if (!isFloat(x.dtype) || weight.dtype != x.dtype)
    return n.invalid("a convolution of " + onnxTypeName(x.dtype) + " with " +
                     onnxTypeName(weight.dtype));
  if (x.rank() < 3 || weight.rank() != x.rank())
    return n.invalid("input of rank " + Twine(x.rank()) + ", weight of rank " +
                     Twine(weight.rank()));
  if (!weight.type.hasStaticShape())
    return n.unsupported("a weight of dynamic shape");
  OpBuilder &b = n.b;
  Sizes in = sizesOf(n, x);
  int64_t group = n.intAttr("group", 1);
  ArrayRef<int64_t> kernel = weight.shape().drop_front(2);
  int64_t outChannels = weight.shape()[0], perGroup = weight.shape()[1];
  if (group < 1 || outChannels % group)
    return n.invalid(Twine(outChannels) + " output channels in " +
                     Twine(group) + " groups");
  if (known(in[1]) && *known(in[1]) != group * perGroup)
    return n.invalid("input of " + Twine(*known(in[1])) +
                     " channels, weight for " + Twine(group * perGroup));
  SmallVector<int64_t> declared = n.intsAttr("kernel_shape");
  if (!declared.empty() && ArrayRef<int64_t>(declared) != kernel)
    return n.invalid("kernel_shape differs from the weight's shape");
  auto w = readWindow(n, kernel, ArrayRef(in).drop_front(2));
  if (!w)
    return w.takeError();
  Sizes positions = windowPositions(n, *w, ArrayRef(in).drop_front(2));
  Value zero = scalarConstant(b, n.loc, x.elementType(), 0);
  Value padded = padForWindow(n, *w, n.value(x), positions, zero);

  Value result;
  bool depthwise = group > 1 && perGroup == 1 && outChannels == group;
  if (w->rank() == 2 && (group == 1 || depthwise)) {
    Sizes out = {in[0], b.getIndexAttr(outChannels)};
    llvm::append_range(out, positions);
    Value init = filledTensor(b, n.loc, out, zero);
    auto strides = b.getI64TensorAttr(w->strides);
    auto dilations = b.getI64TensorAttr(w->dilations);
    if (depthwise) {
      Tensor taps =
          reshape(n, weight,
                  getAsIndexOpFoldResult(b.getContext(),
                                         {outChannels, kernel[0], kernel[1]}));
      result = linalg::DepthwiseConv2DNchwChwOp::create(
                   b, n.loc, TypeRange{init.getType()},
                   ValueRange{padded, n.value(taps)}, ValueRange{init}, strides,
                   dilations)
                   .getResult(0);
    } else {
      result =
          linalg::Conv2DNchwFchwOp::create(b, n.loc, TypeRange{init.getType()},
                                           ValueRange{padded, n.value(weight)},
                                           ValueRange{init}, strides, dilations)
              .getResult(0);
    }
  } else {
    result = genericConv(n, *w, padded, n.value(weight), positions, group);
  }
  Tensor out = Tensor::fromValue(x.dtype, result);
  if (n.has(2)) {
    auto biased = addBias(n, out, n.in(2));
    if (!biased)
      return biased.takeError();
    out = *biased;
  }
  n.set(0, out);
  return llvm::Error::success();
}

} // namespace pto::lowering
