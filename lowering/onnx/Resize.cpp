//===- Resize.cpp - Resize and Upsample -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Separable: one op per resized axis. Which input positions an output position
// reads, and with which weights, is computed here into small constant tables,
// so that every coordinate mode, filter and rounding rule is plain C++.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "onnx/onnx_pb.h"
#include <cmath>

using namespace mlir;
using onnx::TensorProto;

namespace pto::lowering {

namespace {

struct Rule {
  std::string mode, coordinates, nearest;
  double cubicA = -0.75;
  bool excludeOutside = false, antialias = false;
};

/// One axis: sizes, scale and, for tf_crop_and_resize, the region.
struct Axis {
  int64_t in = 1, out = 1;
  double scale = 1, start = 0, end = 1;
};

/// For each output position the taps: input position and weight. `inside` is
/// false where tf_crop_and_resize extrapolates.
struct Table {
  int64_t taps = 1;
  std::vector<int64_t> positions;
  std::vector<double> weights;
  std::vector<bool> inside;
};

} // namespace

static double sourceCoordinate(const Rule &rule, const Axis &a, int64_t o) {
  StringRef mode = rule.coordinates;
  if (mode == "align_corners")
    return a.out == 1 ? 0 : double(o) * (a.in - 1) / (a.out - 1);
  if (mode == "asymmetric")
    return o / a.scale;
  if (mode == "tf_crop_and_resize")
    return a.out > 1 ? a.start * (a.in - 1) +
                           o * (a.end - a.start) * (a.in - 1) / (a.out - 1)
                     : 0.5 * (a.start + a.end) * (a.in - 1);
  if (mode == "pytorch_half_pixel" && a.out == 1)
    return 0;
  double x = (o + 0.5) / a.scale - 0.5;
  if (mode == "half_pixel_symmetric") {
    double adjustment = a.out / (a.scale * a.in);
    x += a.in / 2.0 * (1 - adjustment);
  }
  return x;
}

static double nearestPosition(StringRef rule, double x) {
  if (rule == "floor")
    return std::floor(x);
  if (rule == "ceil")
    return std::ceil(x);
  if (rule == "round_prefer_ceil")
    return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

static double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2)
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

static Table makeTable(const Rule &rule, const Axis &a) {
  Table t;
  bool nearest = rule.mode == "nearest", linear = rule.mode == "linear";
  // The filter's reach to the left, in input elements.
  double shrink = rule.antialias ? std::min(a.scale, 1.0) : 1.0;
  int64_t first = int64_t(std::floor((linear ? -1 : -2) / shrink)) + 1;
  t.taps = nearest ? 1 : 2 - 2 * first;
  for (int64_t o = 0; o < a.out; ++o) {
    double x = sourceCoordinate(rule, a, o);
    t.inside.push_back(rule.coordinates != "tf_crop_and_resize" ||
                       (x >= 0 && x <= a.in - 1));
    auto clampTo = [&](double at) {
      return int64_t(std::clamp<double>(at, 0, a.in - 1));
    };
    if (nearest) {
      t.positions.push_back(clampTo(nearestPosition(rule.nearest, x)));
      t.weights.push_back(1);
      continue;
    }
    double base = std::floor(x), sum = 0;
    std::vector<double> weights;
    for (int64_t k = 0; k < t.taps; ++k) {
      double at = base + first + k, distance = (at - x) * shrink;
      double w = linear ? std::max(0.0, 1 - std::fabs(distance))
                        : cubic(distance, rule.cubicA);
      if (rule.excludeOutside && (at < 0 || at > a.in - 1))
        w = 0;
      t.positions.push_back(clampTo(at));
      weights.push_back(w);
      sum += w;
    }
    for (double w : weights)
      t.weights.push_back(sum != 0 ? w / sum : w);
  }
  return t;
}

/// A constant of `values` in storage of `dtype`.
template <typename T>
static Value tableConstant(Node &n, ArrayRef<int64_t> shape, Type type,
                           ArrayRef<T> values) {
  auto tensorType = RankedTensorType::get(shape, type);
  SmallVector<Attribute> attrs;
  for (T v : values)
    attrs.push_back(isa<FloatType>(type)
                        ? Attribute(n.b.getFloatAttr(type, double(v)))
                        : Attribute(n.b.getIntegerAttr(type, int64_t(v))));
  auto dense = DenseElementsAttr::get(tensorType, attrs);
  return n.constant(makeConstant(tensorType, constantBytes(dense), "resize"));
}

/// Resizes `axis` of `x` by the table.
static Tensor resizeAxis(Node &n, Tensor x, int64_t axis, const Axis &a,
                         const Table &t, double extrapolation) {
  OpBuilder &b = n.b;
  Location loc = n.loc;
  int64_t rank = x.rank();
  Sizes in = sizesOf(n, x), out = in;
  out[axis] = b.getIndexAttr(a.out);
  bool allInside = llvm::all_of(t.inside, [](bool v) { return v; });

  // Whole repetitions are a broadcast.
  int64_t repeat = a.in ? a.out / a.in : 0;
  bool repeats = t.taps == 1 && allInside && repeat * a.in == a.out;
  for (int64_t o = 0; repeats && o < a.out; ++o)
    repeats = t.positions[o] == o / repeat;
  if (repeats) {
    Sizes split = in, wide = in;
    split.insert(split.begin() + axis + 1, b.getIndexAttr(1));
    wide.insert(wide.begin() + axis + 1, b.getIndexAttr(repeat));
    Tensor column = reshape(n, x, split);
    Tensor repeated = elementwiseOver(
        n, {&column}, wide, x.dtype,
        [](OpBuilder &, Location, ArrayRef<Value> v) { return v[0]; });
    return reshape(n, repeated, out);
  }

  Value source = n.value(x);
  Value positions =
      tableConstant<int64_t>(n, {a.out, t.taps}, b.getI64Type(), t.positions);
  auto read = [&](OpBuilder &b, Location loc, ArrayRef<Value> loops,
                  Value position) -> Value {
    SmallVector<Value> at(loops.take_front(rank));
    at[axis] = arith::IndexCastOp::create(b, loc, b.getIndexType(), position);
    return tensor::ExtractOp::create(b, loc, source, at);
  };
  Tensor result;
  if (t.taps == 1) {
    Value flat =
        reshape(b, loc, positions, {OpFoldResult(b.getIndexAttr(a.out))});
    auto map = AffineMap::get(rank, 0, b.getAffineDimExpr(axis));
    result = Tensor::fromValue(
        x.dtype,
        indexed(n, {{flat, map}}, out, x.elementType(),
                [&](OpBuilder &b, Location loc, ArrayRef<Value> loops,
                    ArrayRef<Value> v) { return read(b, loc, loops, v[0]); }));
  } else {
    int compute = dtypeBytes(x.dtype) == 2 ? int(TensorProto::FLOAT) : x.dtype;
    Type type = storageType(b.getContext(), compute);
    Value weights = tableConstant<double>(n, {a.out, t.taps}, type, t.weights);
    Value init = filledTensor(b, loc, out, scalarConstant(b, loc, type, 0));
    auto tableMap = AffineMap::get(
        rank + 1, 0, {b.getAffineDimExpr(axis), b.getAffineDimExpr(rank)},
        b.getContext());
    SmallVector<AffineExpr> outExprs;
    for (int64_t d = 0; d < rank; ++d)
      outExprs.push_back(b.getAffineDimExpr(d));
    auto outMap = AffineMap::get(rank + 1, 0, outExprs, b.getContext());
    SmallVector<utils::IteratorType> iterators(rank + 1,
                                               utils::IteratorType::parallel);
    iterators.back() = utils::IteratorType::reduction;
    auto op = linalg::GenericOp::create(
        b, loc, TypeRange{init.getType()}, ValueRange{positions, weights},
        ValueRange{init}, {tableMap, tableMap, outMap}, iterators,
        [&](OpBuilder &b, Location loc, ValueRange args) {
          SmallVector<Value> loops;
          for (int64_t d = 0; d < rank; ++d)
            loops.push_back(linalg::IndexOp::create(b, loc, d));
          Value v = scalarCast(b, loc, read(b, loc, loops, args[0]), x.dtype,
                               compute);
          Value m = scalarMul(b, loc, v, args[1], true);
          linalg::YieldOp::create(b, loc, scalarAdd(b, loc, args[2], m, true));
        });
    result = Tensor::fromValue(compute, op.getResult(0));
    if (compute != x.dtype)
      result =
          elementwiseOver(n, {&result}, out, x.dtype,
                          [&](OpBuilder &b, Location loc, ArrayRef<Value> v) {
                            return scalarCast(b, loc, v[0], compute, x.dtype);
                          });
  }
  if (allInside)
    return result;
  std::vector<int64_t> inside(t.inside.begin(), t.inside.end());
  SmallVector<int64_t> column(rank - axis, 1);
  column[0] = a.out;
  Tensor mask = Tensor::fromValue(
      TensorProto::BOOL,
      tableConstant<int64_t>(n, column, b.getI8Type(), inside));
  return elementwiseOver(
      n, {&mask, &result}, out, x.dtype,
      [&](OpBuilder &b, Location loc, ArrayRef<Value> v) -> Value {
        Value other = scalarConstant(b, loc, v[1].getType(), extrapolation);
        return b.createOrFold<arith::SelectOp>(loc, v[0], v[1], other);
      });
}

/// The known floats of an input; empty when it is absent or empty.
static llvm::Expected<SmallVector<double>> floatsOf(Node &n, size_t i) {
  SmallVector<double> result;
  if (!n.has(i))
    return result;
  Tensor &t = n.in(i);
  if (t.type.hasStaticShape() && t.type.getNumElements() == 0)
    return result;
  auto elements = trackedElements(t);
  if (!elements)
    return n.unsupported("run-time scales, sizes or region");
  for (OpFoldResult e : *elements) {
    auto attr = dyn_cast<Attribute>(e);
    if (auto f = dyn_cast_if_present<FloatAttr>(attr))
      result.push_back(f.getValueAsDouble());
    else if (auto integer = dyn_cast_if_present<IntegerAttr>(attr))
      result.push_back(integer.getValue().getSExtValue());
    else
      return n.unsupported("run-time scales, sizes or region");
  }
  return result;
}

llvm::Error buildResize(Node &n) {
  Tensor x = n.in(0);
  int64_t rank = x.rank();
  bool upsample = n.op() == "Upsample", old = upsample || n.since < 11;
  Rule rule;
  rule.mode = n.stringAttr("mode", "nearest");
  if (rule.mode == "bilinear" || rule.mode == "trilinear")
    rule.mode = "linear";
  rule.coordinates =
      old ? "asymmetric"
          : n.stringAttr("coordinate_transformation_mode", "half_pixel");
  rule.nearest =
      old ? "floor" : n.stringAttr("nearest_mode", "round_prefer_floor");
  rule.cubicA = n.floatAttr("cubic_coeff_a", -0.75f);
  rule.excludeOutside = n.intAttr("exclude_outside", 0);
  rule.antialias = n.intAttr("antialias", 0);
  if (rule.mode != "nearest" && !isFloat(x.dtype))
    return n.unsupported("mode '" + rule.mode + "' for " +
                         onnxTypeName(x.dtype));

  SmallVector<double> scales, sizes, region;
  if (upsample && n.since < 9) {
    for (float f : n.floatsAttr("scales"))
      scales.push_back(f);
  } else {
    auto first = floatsOf(n, old ? 1 : 2);
    if (!first)
      return first.takeError();
    scales = *first;
  }
  if (!old) {
    auto given = floatsOf(n, 3);
    if (!given)
      return given.takeError();
    sizes = *given;
    if (rule.coordinates == "tf_crop_and_resize") {
      auto roi = floatsOf(n, 1);
      if (!roi)
        return roi.takeError();
      region = *roi;
    }
  }
  SmallVector<int64_t> axes = n.intsAttr("axes");
  if (axes.empty())
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  for (int64_t &a : axes) {
    auto axis = normalizeAxis(n, a, rank);
    if (!axis)
      return axis.takeError();
    a = *axis;
  }
  SmallVector<double> &given = sizes.empty() ? scales : sizes;
  if (given.size() != axes.size() ||
      (!region.empty() && region.size() != 2 * axes.size()))
    return n.invalid("scales, sizes or region do not match the axes");

  Sizes in = sizesOf(n, x);
  SmallVector<Axis> plan(rank);
  std::string policy = n.stringAttr("keep_aspect_ratio_policy", "stretch");
  double common = policy == "not_larger" ? INFINITY : 0;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    Axis &a = plan[axis];
    auto size = known(in[axis]);
    if (!size) {
      if (sizes.empty() && scales[i] == 1)
        continue;
      return n.unsupported("a dynamic size of a resized dim");
    }
    a.in = *size;
    if (!sizes.empty()) {
      a.out = int64_t(sizes[i]);
      a.scale = a.in ? double(a.out) / a.in : 1;
      common = policy == "not_larger" ? std::min(common, a.scale)
                                      : std::max(common, a.scale);
    } else {
      a.scale = scales[i];
      a.out = int64_t(std::floor(a.in * a.scale));
    }
    if (!region.empty()) {
      a.start = region[i];
      a.end = region[axes.size() + i];
    }
  }
  if (!sizes.empty() && policy != "stretch")
    for (int64_t axis : axes) {
      plan[axis].scale = common;
      plan[axis].out = int64_t(std::floor(plan[axis].in * common + 0.5));
    }
  double extrapolation = n.floatAttr("extrapolation_value", 0);
  for (int64_t axis : axes) {
    const Axis &a = plan[axis];
    if (!known(in[axis]) || (a.scale == 1 && a.in == a.out &&
                             rule.coordinates != "tf_crop_and_resize"))
      continue;
    if (a.in == 0 && a.out != 0)
      return n.invalid("a resized dim is empty");
    x = resizeAxis(n, x, axis, a, makeTable(rule, a), extrapolation);
  }
  n.set(0, x);
  return llvm::Error::success();
}

} // namespace pto::lowering
