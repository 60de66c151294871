//===- Convolution.cpp - Convolutions -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Conv and ConvTranspose. Padding is a tensor.pad before, bias an elementwise
// op after the convolution, so that both can be fused or moved on their own.
// Plain and depthwise 2-D convolutions are named ops; all others are
// linalg.generic.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Ops.h"
#include "lowering/onnx/Window.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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
  Type type = sumType(cast<RankedTensorType>(input.getType()).getElementType());
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

/// The convolution without bias of `x` (N, C, spatial...) by `weight`
/// (M, C / group, kernel...). `w` holds the window, padding included.
static Tensor convolve(Node &n, const Window &w, Tensor &x, Tensor &weight,
                       ArrayRef<OpFoldResult> positions, int64_t group) {
  OpBuilder &b = n.b;
  Value zero = scalarConstant(b, n.loc, x.elementType(), 0);
  Value padded = padForWindow(n, w, n.value(x), positions, zero);
  int64_t outChannels = weight.shape()[0], perGroup = weight.shape()[1];
  bool depthwise = group > 1 && perGroup == 1 && outChannels == group;
  if (w.rank() != 2 || (group != 1 && !depthwise))
    return roundSum(
        n, genericConv(n, w, padded, n.value(weight), positions, group),
        x.dtype);
  Sizes out = {sizesOf(n, x)[0], b.getIndexAttr(outChannels)};
  llvm::append_range(out, positions);
  Value init = filledTensor(
      b, n.loc, out, scalarConstant(b, n.loc, sumType(x.elementType()), 0));
  auto strides = b.getI64TensorAttr(w.strides);
  auto dilations = b.getI64TensorAttr(w.dilations);
  if (depthwise) {
    Tensor taps =
        reshape(n, weight,
                getAsIndexOpFoldResult(
                    b.getContext(), {outChannels, w.kernel[0], w.kernel[1]}));
    return roundSum(n,
                    linalg::DepthwiseConv2DNchwChwOp::create(
                        b, n.loc, TypeRange{init.getType()},
                        ValueRange{padded, n.value(taps)}, ValueRange{init},
                        strides, dilations)
                        .getResult(0),
                    x.dtype);
  }
  return roundSum(
      n,
      linalg::Conv2DNchwFchwOp::create(b, n.loc, TypeRange{init.getType()},
                                       ValueRange{padded, n.value(weight)},
                                       ValueRange{init}, strides, dilations)
          .getResult(0),
      x.dtype);
}

llvm::Expected<Tensor> convolution(Node &n, Tensor &x, Tensor &weight) {
  if (x.rank() < 3 || weight.rank() != x.rank())
    return n.invalid("input of rank " + Twine(x.rank()) + ", weight of rank " +
                     Twine(weight.rank()));
  if (!weight.type.hasStaticShape())
    return n.unsupported("a weight of dynamic shape");
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
  return convolve(n, *w, x, weight, positions, group);
}

llvm::Error buildConv(Node &n) {
  Tensor &x = n.in(0), &weight = n.in(1);
  if (!isFloat(x.dtype) || weight.dtype != x.dtype)
    return n.invalid("a convolution of " + onnxTypeName(x.dtype) + " with " +
                     onnxTypeName(weight.dtype));
  auto out = convolution(n, x, weight);
  if (out && n.has(2))
    out = addBias(n, *out, n.in(2));
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

/// As a plain convolution: the input spread out by the strides, with a border
/// of kernel extent - 1 - pad, and the kernel mirrored.
llvm::Error buildConvTranspose(Node &n) {
  Tensor &x = n.in(0), &weight = n.in(1);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  if (!isFloat(x.dtype) || weight.dtype != x.dtype)
    return n.invalid("a convolution of " + onnxTypeName(x.dtype) + " with " +
                     onnxTypeName(weight.dtype));
  if (x.rank() < 3 || weight.rank() != x.rank())
    return n.invalid("ranks of input and weight");
  if (!weight.type.hasStaticShape())
    return n.unsupported("a weight of dynamic shape");
  int64_t rank = x.rank() - 2, group = n.intAttr("group", 1);
  int64_t inChannels = weight.shape()[0], perGroup = weight.shape()[1];
  if (group < 1 || inChannels % group)
    return n.invalid("channels do not match the groups");
  Sizes in = sizesOf(n, x);
  if (known(in[1]) && *known(in[1]) != inChannels)
    return n.invalid("input of " + Twine(*known(in[1])) +
                     " channels, weight for " + Twine(inChannels));

  Window w;
  w.kernel.assign(weight.shape().begin() + 2, weight.shape().end());
  SmallVector<int64_t> strides = n.intsAttr("strides"),
                       dilations = n.intsAttr("dilations"),
                       pads = n.intsAttr("pads"),
                       extra = n.intsAttr("output_padding"),
                       shape = n.intsAttr("output_shape");
  if (strides.empty())
    strides.assign(rank, 1);
  if (dilations.empty())
    dilations.assign(rank, 1);
  if (extra.empty())
    extra.assign(rank, 0);
  std::string autoPad = n.stringAttr("auto_pad", "NOTSET");
  bool same = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  if (pads.empty() || autoPad == "VALID")
    pads.assign(2 * rank, 0);
  for (auto *list : {&strides, &dilations, &extra})
    if (int64_t(list->size()) != rank)
      return n.invalid("an attribute does not match the kernel's rank");
  if (int64_t(pads.size()) != 2 * rank)
    return n.invalid("pads do not match the kernel's rank");
  // output_shape may name all dims or the spatial ones.
  if (int64_t(shape.size()) == rank + 2)
    shape.erase(shape.begin(), shape.begin() + 2);
  w.strides.assign(rank, 1);
  w.dilations = dilations;

  Sizes spread = {in[0], in[1]}, positions, ones(rank + 2, b.getIndexAttr(1)),
        zeros(rank + 2, b.getIndexAttr(0)),
        steps = {b.getIndexAttr(1), b.getIndexAttr(1)};
  bool anyStride = false, anyCut = false;
  Sizes low = {zeros[0], zeros[0]}, high = low, cutLow = low;
  Sizes kept = {in[0], in[1]};
  for (int64_t d = 0; d < rank; ++d) {
    OpFoldResult s = b.getIndexAttr(strides[d]), size = in[2 + d];
    OpFoldResult wide = addSizes(
        b, loc, mulSizes(b, loc, subSizes(b, loc, size, b.getIndexAttr(1)), s),
        b.getIndexAttr(1));
    spread.push_back(wide);
    steps.push_back(s);
    anyStride |= strides[d] != 1;
    int64_t begin = pads[d], end = pads[rank + d];
    int64_t border = w.extent(d) - 1;
    if (!shape.empty() || same) {
      // The padding follows from the wanted size.
      auto have = known(size);
      if (!have)
        return n.unsupported("output_shape or auto_pad with a dynamic size");
      int64_t want = shape.empty() ? *have * strides[d] : shape[d];
      int64_t total = strides[d] * (*have - 1) + extra[d] + w.extent(d) - want;
      // A negative total enlarges the result at its end.
      if (total < 0) {
        extra[d] -= total;
        total = 0;
      }
      begin = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    }
    // What the border lacks is cut off.
    int64_t before = border - begin, after = border - end + extra[d];
    anyCut |= before < 0 || after < 0;
    w.padBegin.push_back(b.getIndexAttr(std::max<int64_t>(before, 0)));
    w.padEnd.push_back(b.getIndexAttr(std::max<int64_t>(after, 0)));
    cutLow.push_back(b.getIndexAttr(std::max<int64_t>(-before, 0)));
    kept.push_back(addSizes(b, loc, wide,
                            b.getIndexAttr(std::min<int64_t>(before, 0) +
                                           std::min<int64_t>(after, 0))));
  }
  Value input = n.value(x);
  if (anyStride) {
    Value zero = scalarConstant(b, loc, x.elementType(), 0);
    Value blank = filledTensor(b, loc, spread, zero);
    input =
        tensor::InsertSliceOp::create(b, loc, input, blank, zeros, in, steps);
  }
  if (anyCut)
    input = tensor::ExtractSliceOp::create(b, loc, input, cutLow, kept, ones);
  Tensor source = Tensor::fromValue(x.dtype, input);

  // weight (C, M / group, k...) -> (M, C / group, mirrored k...).
  int64_t cPer = inChannels / group;
  Value raw = n.value(weight);
  Sizes mirrored = {b.getIndexAttr(perGroup * group), b.getIndexAttr(cPer)};
  for (int64_t k : w.kernel)
    mirrored.push_back(b.getIndexAttr(k));
  Tensor kernel = Tensor::fromValue(
      x.dtype,
      indexed(n, {}, mirrored, x.elementType(),
              [&](OpBuilder &b, Location loc, ArrayRef<Value> loops,
                  ArrayRef<Value>) -> Value {
                auto constant = [&](int64_t v) -> Value {
                  return arith::ConstantIndexOp::create(b, loc, v);
                };
                Value m = loops[0], c = loops[1];
                Value g =
                    b.createOrFold<arith::DivUIOp>(loc, m, constant(perGroup));
                SmallVector<Value> at = {
                    scalarAdd(b, loc, scalarMul(b, loc, g, constant(cPer)), c),
                    b.createOrFold<arith::RemUIOp>(loc, m, constant(perGroup))};
                for (int64_t d = 0; d < rank; ++d)
                  at.push_back(b.createOrFold<arith::SubIOp>(
                      loc, constant(w.kernel[d] - 1), loops[2 + d]));
                return tensor::ExtractOp::create(b, loc, raw, at);
              }));
  positions = windowPositions(n, w, ArrayRef<OpFoldResult>(kept).drop_front(2));
  llvm::Expected<Tensor> out = convolve(n, w, source, kernel, positions, group);
  if (n.has(2))
    out = addBias(n, *out, n.in(2));
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

} // namespace pto::lowering
