//===- Movement.cpp - Ops that move elements to new places ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace pto::lowering {

/// When the elements are tracked: the result whose element at `index` is
/// `source(index)`, a linear index into the elements of `x`.
static std::optional<Tensor>
moveElements(Tensor &x, ArrayRef<int64_t> shape,
             llvm::function_ref<int64_t(ArrayRef<int64_t>)> source) {
  auto elements = trackedElements(x);
  if (!elements || ShapedType::isDynamicShape(shape) ||
      ShapedType::getNumElements(shape) > kMaxTrackedElements)
    return std::nullopt;
  SmallVector<OpFoldResult> result;
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0, e = ShapedType::getNumElements(shape); i < e; ++i) {
    int64_t rest = i;
    for (int64_t d = shape.size() - 1; d >= 0; --d) {
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    result.push_back((*elements)[source(index)]);
  }
  return Tensor::fromElements(x.dtype, x.type.clone(shape), result);
}

static int64_t linearIndex(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t linear = 0;
  for (auto [i, s] : llvm::zip_equal(index, shape))
    linear = linear * s + i;
  return linear;
}

llvm::Error buildTranspose(Node &n) {
  Tensor &x = n.in(0);
  SmallVector<int64_t> perm = n.intsAttr("perm");
  if (perm.empty())
    for (int64_t d = x.rank() - 1; d >= 0; --d)
      perm.push_back(d);
  SmallVector<int64_t> sorted(perm);
  llvm::sort(sorted);
  if (int64_t(perm.size()) != x.rank() ||
      sorted != llvm::to_vector(llvm::seq<int64_t>(0, x.rank())))
    return n.invalid("perm is no permutation of the dims");
  if (perm == sorted) {
    n.set(0, x);
    return llvm::Error::success();
  }
  Sizes in = sizesOf(n, x), out;
  for (int64_t p : perm)
    out.push_back(in[p]);
  auto moved = moveElements(x, staticShape(out), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from(index.size());
    for (auto [d, p] : llvm::enumerate(perm))
      from[p] = index[d];
    return linearIndex(from, x.shape());
  });
  if (moved) {
    n.set(0, *moved);
    return llvm::Error::success();
  }
  Value init = emptyTensor(n.b, n.loc, out, x.elementType());
  n.set(0, x.dtype,
        linalg::TransposeOp::create(n.b, n.loc, n.value(x), init, perm)
            ->getResult(0));
  return llvm::Error::success();
}

llvm::Error buildExpand(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  auto dims = elementsOf(n, n.in(1));
  if (!dims || n.in(1).rank() != 1)
    return n.unsupported("a shape of unknown length");
  Sizes target;
  for (OpFoldResult d : *dims)
    target.push_back(toIndex(b, n.loc, d));
  Sizes in = sizesOf(n, x);
  auto sizes = broadcastSizes(n, {in, target});
  if (!sizes)
    return sizes.takeError();
  if (*sizes == in) {
    n.set(0, x);
    return llvm::Error::success();
  }
  n.set(0, elementwiseOver(
               n, {&x}, *sizes, x.dtype,
               [](OpBuilder &, Location, ArrayRef<Value> v) { return v[0]; }));
  return llvm::Error::success();
}

llvm::Error buildConcat(Node &n) {
  OpBuilder &b = n.b;
  SmallVector<Tensor *> inputs;
  for (size_t i = 0; i < n.numInputs(); ++i)
    inputs.push_back(&n.in(i));
  if (inputs.empty())
    return n.invalid("no inputs");
  int64_t rank = inputs[0]->rank();
  auto axis = normalizeAxis(n, n.intAttr("axis", 0), rank);
  if (!axis)
    return axis.takeError();
  for (Tensor *t : inputs)
    if (t->rank() != rank || rank == 0 || t->dtype != inputs[0]->dtype)
      return n.invalid("inputs of different ranks or types");
  if (inputs.size() == 1) {
    n.set(0, *inputs[0]);
    return llvm::Error::success();
  }
  SmallVector<Sizes> sizes;
  Sizes out;
  for (Tensor *t : inputs) {
    sizes.push_back(sizesOf(n, *t));
    if (out.empty()) {
      out = sizes.back();
      continue;
    }
    for (int64_t d = 0; d < rank; ++d) {
      OpFoldResult s = sizes.back()[d];
      if (d == *axis)
        out[d] = addSizes(b, n.loc, out[d], s);
      else if (auto error = n.require(arith::CmpIPredicate::eq, s, out[d],
                                      "inputs differ in dim " + Twine(d)))
        return error;
      else if (known(s))
        out[d] = s;
    }
  }
  // Shape arithmetic.
  if (rank == 1) {
    SmallVector<OpFoldResult> elements;
    bool all = true;
    for (Tensor *t : inputs) {
      auto own = trackedElements(*t);
      all &= own.has_value();
      if (own)
        llvm::append_range(elements, *own);
    }
    if (all && int64_t(elements.size()) <= kMaxTrackedElements) {
      auto type = RankedTensorType::get({int64_t(elements.size())},
                                        inputs[0]->elementType());
      n.set(0, Tensor::fromElements(inputs[0]->dtype, type, elements));
      return llvm::Error::success();
    }
  }
  Value result = emptyTensor(b, n.loc, out, inputs[0]->elementType());
  Sizes offsets(rank, b.getIndexAttr(0)), strides(rank, b.getIndexAttr(1));
  for (auto [t, own] : llvm::zip(inputs, sizes)) {
    if (known(own[*axis]) == 0)
      continue;
    result = tensor::InsertSliceOp::create(b, n.loc, n.value(*t), result,
                                           offsets, own, strides);
    offsets[*axis] = addSizes(b, n.loc, offsets[*axis], own[*axis]);
  }
  n.set(0, inputs[0]->dtype, result);
  return llvm::Error::success();
}

/// x[offset : offset + size : stride] along every dim; strides are positive.
static Tensor extract(Node &n, Tensor &x, ArrayRef<OpFoldResult> offsets,
                      ArrayRef<OpFoldResult> sizes,
                      ArrayRef<OpFoldResult> strides) {
  bool staticOffsets = llvm::all_of(offsets, [](auto o) { return known(o); });
  if (staticOffsets)
    if (auto moved =
            moveElements(x, staticShape(sizes), [&](ArrayRef<int64_t> index) {
              SmallVector<int64_t> from;
              for (auto [d, i] : llvm::enumerate(index))
                from.push_back(*known(offsets[d]) + i * *known(strides[d]));
              return linearIndex(from, x.shape());
            }))
      return *moved;
  // tensor.extract_slice has no offset for an empty dim.
  if (llvm::any_of(sizes, [](auto s) { return known(s) == 0; }))
    return Tensor::fromValue(x.dtype,
                             emptyTensor(n.b, n.loc, sizes, x.elementType()));
  return Tensor::fromValue(
      x.dtype, tensor::ExtractSliceOp::create(n.b, n.loc, n.value(x), offsets,
                                              sizes, strides));
}

llvm::Error buildSplit(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  auto axis = normalizeAxis(n, n.intAttr("axis", 0), x.rank());
  if (!axis)
    return axis.takeError();
  Sizes sizes = sizesOf(n, x), parts;
  int64_t count = n.numOutputs();
  if (n.since < 13) {
    for (int64_t part : n.intsAttr("split"))
      parts.push_back(b.getIndexAttr(part));
  } else if (n.has(1)) {
    auto elements = elementsOf(n, n.in(1));
    if (!elements)
      return n.unsupported("'split' of unknown length");
    for (OpFoldResult e : *elements)
      parts.push_back(toIndex(b, n.loc, e));
  }
  if (parts.empty()) {
    auto total = known(sizes[*axis]);
    if (!total)
      return n.unsupported("an even split of a dynamic dim");
    // The last part may be smaller (since version 18).
    int64_t part = llvm::divideCeil(*total, std::max<int64_t>(count, 1));
    for (int64_t i = 0; i < count; ++i)
      parts.push_back(
          b.getIndexAttr(std::clamp<int64_t>(*total - i * part, 0, part)));
  }
  if (int64_t(parts.size()) != count)
    return n.invalid(Twine(parts.size()) + " parts for " + Twine(count) +
                     " outputs");
  OpFoldResult sum = b.getIndexAttr(0);
  for (OpFoldResult p : parts)
    sum = addSizes(b, n.loc, sum, p);
  if (known(sum) && known(sizes[*axis]) && known(sizes[*axis]) != known(sum))
    return n.invalid("the parts do not add up to the dim");
  Sizes offsets(x.rank(), b.getIndexAttr(0)),
      strides(x.rank(), b.getIndexAttr(1));
  OpFoldResult offset = b.getIndexAttr(0);
  for (auto [i, part] : llvm::enumerate(parts)) {
    // An empty part at the end would start outside.
    offsets[*axis] =
        known(part) == 0 ? OpFoldResult(b.getIndexAttr(0)) : offset;
    sizes[*axis] = part;
    offset = addSizes(b, n.loc, offset, part);
    if (n.wants(i))
      n.set(i, extract(n, x, offsets, sizes, strides));
  }
  return llvm::Error::success();
}

llvm::Error buildSlice(Node &n) {
  Tensor &x = n.in(0);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int64_t rank = x.rank();
  SmallVector<OpFoldResult> starts, ends;
  SmallVector<int64_t> axes, steps;
  if (n.since < 10) {
    for (int64_t v : n.intsAttr("starts"))
      starts.push_back(b.getIndexAttr(v));
    for (int64_t v : n.intsAttr("ends"))
      ends.push_back(b.getIndexAttr(v));
    axes = n.intsAttr("axes");
  } else {
    for (auto [i, list] : {std::make_pair(1, &starts), {2, &ends}}) {
      auto elements = elementsOf(n, n.in(i));
      if (!elements)
        return n.unsupported("'starts' or 'ends' of unknown length");
      for (OpFoldResult e : *elements)
        list->push_back(toIndex(b, loc, e));
    }
    for (auto [i, list] : {std::make_pair(3, &axes), {4, &steps}}) {
      if (!n.has(i))
        continue;
      auto values = knownIntegers(n.in(i));
      if (!values)
        return n.unsupported("a run-time value of 'axes' or 'steps'");
      *list = *values;
    }
  }
  if (axes.empty())
    axes.assign(llvm::seq<int64_t>(0, starts.size()).begin(),
                llvm::seq<int64_t>(0, starts.size()).end());
  if (steps.empty())
    steps.assign(axes.size(), 1);
  if (starts.size() != axes.size() || ends.size() != axes.size() ||
      steps.size() != axes.size())
    return n.invalid("starts, ends, axes and steps differ in length");

  Sizes in = sizesOf(n, x), sizes = in;
  Sizes offsets(rank, b.getIndexAttr(0));
  SmallVector<int64_t> strides(rank, 1);
  for (auto [i, a] : llvm::enumerate(axes)) {
    auto axis = normalizeAxis(n, a, rank);
    if (!axis)
      return axis.takeError();
    int64_t step = steps[i];
    if (step == 0)
      return n.invalid("a step of 0");
    OpFoldResult dim = in[*axis], zero = b.getIndexAttr(0),
                 one = b.getIndexAttr(1);
    // Negative positions count from the end; then they are clamped to what
    // the step's direction can reach.
    bool back = step < 0;
    OpFoldResult lo = back ? OpFoldResult(b.getIndexAttr(-1)) : zero;
    OpFoldResult top = back ? subSizes(b, loc, dim, one) : dim;
    auto resolve = [&](OpFoldResult v, OpFoldResult lowest) -> OpFoldResult {
      auto k = known(v), size = known(dim);
      if (k && size) {
        int64_t at = *k < 0 ? std::max(*k, -*size - 1) + *size : *k;
        return b.getIndexAttr(
            std::max(*known(lowest), std::min(at, *known(top))));
      }
      if (k) {
        // Huge values mean "to the end"; adding to them could overflow.
        if (*k >= INT32_MAX)
          return top;
        if (*k <= -INT32_MAX)
          return lowest;
        if (*k >= 0)
          return *k == 0 ? v : minSizes(b, loc, v, top);
        return maxSizes(b, loc, addSizes(b, loc, v, dim), lowest);
      }
      if (nonNegative(v))
        return minSizes(b, loc, v, top);
      Value value = cast<Value>(v);
      Value negative = b.createOrFold<arith::CmpIOp>(
          loc, arith::CmpIPredicate::slt, value,
          arith::ConstantIndexOp::create(b, loc, 0));
      Value wrapped = scalarAdd(b, loc, value,
                                getValueOrCreateConstantIndexOp(b, loc, dim));
      v = getAsOpFoldResult(
          b.createOrFold<arith::SelectOp>(loc, negative, wrapped, value));
      return minSizes(b, loc, maxSizes(b, loc, v, lowest), top);
    };
    OpFoldResult start = resolve(starts[i], zero);
    OpFoldResult end = resolve(ends[i], lo);
    int64_t width = std::abs(step);
    OpFoldResult span =
        back ? subSizes(b, loc, start, end) : subSizes(b, loc, end, start);
    if (width != 1)
      span = divSizes(b, loc, addSizes(b, loc, span, b.getIndexAttr(width - 1)),
                      b.getIndexAttr(width));
    // Slices from the first element need no check for being empty.
    sizes[*axis] =
        !back && known(start) == 0 ? span : maxSizes(b, loc, span, zero);
    offsets[*axis] = start;
    strides[*axis] = step;
  }
  if (sizes == in && llvm::all_of(strides, [](int64_t s) { return s == 1; })) {
    n.set(0, x);
    return llvm::Error::success();
  }
  if (llvm::all_of(strides, [](int64_t s) { return s > 0; })) {
    // An empty slice at the very end would start outside.
    for (int64_t d = 0; d < rank; ++d)
      if (known(sizes[d]) == 0)
        offsets[d] = b.getIndexAttr(0);
    Sizes strideAttrs;
    for (int64_t s : strides)
      strideAttrs.push_back(b.getIndexAttr(s));
    n.set(0, extract(n, x, offsets, sizes, strideAttrs));
    return llvm::Error::success();
  }
  if (llvm::all_of(offsets, [](auto o) { return known(o); }))
    if (auto moved =
            moveElements(x, staticShape(sizes), [&](ArrayRef<int64_t> index) {
              SmallVector<int64_t> from;
              for (auto [d, i] : llvm::enumerate(index))
                from.push_back(*known(offsets[d]) + i * strides[d]);
              return linearIndex(from, x.shape());
            })) {
      n.set(0, *moved);
      return llvm::Error::success();
    }
  // Backwards: read element by element.
  Value source = n.value(x);
  Value init = emptyTensor(b, loc, sizes, x.elementType());
  SmallVector<Value> offsetValues;
  for (OpFoldResult o : offsets)
    offsetValues.push_back(getValueOrCreateConstantIndexOp(b, loc, o));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      b, loc, TypeRange{init.getType()}, ValueRange{}, ValueRange{init},
      {b.getMultiDimIdentityMap(rank)}, iterators,
      [&](OpBuilder &b, Location loc, ValueRange) {
        SmallVector<Value> index;
        for (int64_t d = 0; d < rank; ++d) {
          Value i = linalg::IndexOp::create(b, loc, d);
          Value step = arith::ConstantIndexOp::create(b, loc, strides[d]);
          index.push_back(
              scalarAdd(b, loc, offsetValues[d], scalarMul(b, loc, i, step)));
        }
        linalg::YieldOp::create(
            b, loc,
            tensor::ExtractOp::create(b, loc, source, index).getResult());
      });
  n.set(0, x.dtype, op.getResult(0));
  return llvm::Error::success();
}

} // namespace pto::lowering
