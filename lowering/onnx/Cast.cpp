//===- Cast.cpp - Conversions between data types --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// ONNX leaves float -> integer out of range undefined; arith makes it poison.
// It is clamped here (NaN becomes 0), so that folded and run-time results are
// the same.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace pto::lowering {

static Value floatToInteger(OpBuilder &b, Location loc, Value v, int to,
                            Type type) {
  auto from = cast<FloatType>(v.getType());
  const llvm::fltSemantics &semantics = from.getFloatSemantics();
  unsigned width = type.getIntOrFloatBitWidth();
  bool isS = isSigned(to);
  // The largest float of `from` that is inside the range, rounding to zero.
  auto limit = [&](const APInt &bound) {
    APFloat f(semantics);
    f.convertFromAPInt(bound, isS, APFloat::rmTowardZero);
    // A bound beyond the format's range is the format's own largest number.
    if (f.isInfinity())
      f = APFloat::getLargest(semantics, f.isNegative());
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(from, f));
  };
  Value lo =
      limit(isS ? APInt::getSignedMinValue(width) : APInt::getMinValue(width));
  Value hi =
      limit(isS ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width));
  Value isNan =
      b.createOrFold<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, v, v);
  Value zero = scalarConstant(b, loc, from, 0);
  v = b.createOrFold<arith::SelectOp>(loc, isNan, zero, v);
  v = b.createOrFold<arith::MaximumFOp>(loc, v, lo);
  v = b.createOrFold<arith::MinimumFOp>(loc, v, hi);
  return isS ? b.createOrFold<arith::FPToSIOp>(loc, type, v)
             : b.createOrFold<arith::FPToUIOp>(loc, type, v);
}

Value scalarCast(OpBuilder &b, Location loc, Value v, int from, int to) {
  if (from == to)
    return v;
  Type type = storageType(b.getContext(), to);
  if (isBool(to)) {
    if (isFloat(from))
      return b.createOrFold<arith::CmpFOp>(
          loc, arith::CmpFPredicate::UNE, v,
          scalarConstant(b, loc, v.getType(), 0));
    return b.createOrFold<arith::CmpIOp>(
        loc, arith::CmpIPredicate::ne, v,
        scalarConstant(b, loc, v.getType(), 0));
  }
  if (isFloat(to)) {
    if (isFloat(from)) {
      unsigned have = v.getType().getIntOrFloatBitWidth();
      unsigned want = type.getIntOrFloatBitWidth();
      if (want > have)
        return b.createOrFold<arith::ExtFOp>(loc, type, v);
      if (want < have)
        return b.createOrFold<arith::TruncFOp>(loc, type, v);
      // f16 <-> bf16
      Value wide = b.createOrFold<arith::ExtFOp>(loc, b.getF32Type(), v);
      return b.createOrFold<arith::TruncFOp>(loc, type, wide);
    }
    return isSigned(from) ? b.createOrFold<arith::SIToFPOp>(loc, type, v)
                          : b.createOrFold<arith::UIToFPOp>(loc, type, v);
  }
  if (isFloat(from))
    return floatToInteger(b, loc, v, to, type);
  unsigned have = v.getType().getIntOrFloatBitWidth();
  unsigned want = type.getIntOrFloatBitWidth();
  if (want < have)
    return b.createOrFold<arith::TruncIOp>(loc, type, v);
  if (want == have)
    return v;
  return isSigned(from) ? b.createOrFold<arith::ExtSIOp>(loc, type, v)
                        : b.createOrFold<arith::ExtUIOp>(loc, type, v);
}

static llvm::Error castTo(Node &n, int to) {
  int from = n.in(0).dtype;
  if (!storageType(n.b.getContext(), to))
    return n.unsupported("a cast to " + onnxTypeName(to));
  if (from == to) {
    n.set(0, n.in(0));
    return llvm::Error::success();
  }
  auto out = elementwise(n, {&n.in(0)}, to,
                         [&](OpBuilder &b, Location loc, ArrayRef<Value> args) {
                           return scalarCast(b, loc, args[0], from, to);
                         });
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

llvm::Error buildCast(Node &n) { return castTo(n, n.intAttr("to", 0)); }
llvm::Error buildCastLike(Node &n) { return castTo(n, n.in(1).dtype); }

} // namespace pto::lowering
