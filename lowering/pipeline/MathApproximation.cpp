//===- MathApproximation.cpp - Elementwise math as short polynomials
//--------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// libm calls would make every vector scalar, and MLIR's own exp carries twice
// the instructions that full accuracy needs.
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Stages.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace pto::lowering {
namespace {

/// exp(x) = 2^n * e^r, n = round(x / ln 2), |r| <= ln 2 / 2. e^r is the
/// polynomial of Cephes' expf (error below 1 ulp). 2^n is applied in two
/// factors, so that results reach infinity and the subnormals as they should;
/// a NaN passes through. No float becomes an integer by conversion: that would
/// be undefined for NaN.
struct ExpPattern : public OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &b) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return failure();
    Location loc = op.getLoc();
    auto like = [&](Type element) -> Type {
      if (auto v = dyn_cast<VectorType>(type))
        return v.clone(element);
      return element;
    };
    Type intType = like(b.getI32Type());
    auto constant = [&](Type t, Attribute element) -> Value {
      if (auto v = dyn_cast<VectorType>(t))
        return arith::ConstantOp::create(
            b, loc, DenseElementsAttr::get(v, ArrayRef<Attribute>{element}));
      return arith::ConstantOp::create(b, loc, cast<TypedAttr>(element));
    };
    auto f = [&](float v) { return constant(type, b.getF32FloatAttr(v)); };
    auto i = [&](int32_t v) {
      return constant(intType, b.getI32IntegerAttr(v));
    };
    auto contract = arith::FastMathFlags::contract;
    auto mul = [&](Value x, Value y) -> Value {
      return arith::MulFOp::create(b, loc, x, y, contract);
    };
    auto add = [&](Value x, Value y) -> Value {
      return arith::AddFOp::create(b, loc, x, y, contract);
    };
    // The compares are false for NaN, and NaN stays: one instruction on x86.
    Value x = op.getOperand(), low = f(-104.5f), high = f(89.5f);
    Value isZero =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, low, x);
    x = arith::SelectOp::create(b, loc, isZero, low, x);
    Value isInfinite =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, high, x);
    x = arith::SelectOp::create(b, loc, isInfinite, high, x);
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    constexpr float magic = 12582912.0f;
    constexpr int32_t magicBits = 0x4B400000;
    Value shifted = add(mul(x, f(1.44269504088896341f)), f(magic));
    Value n = arith::SubFOp::create(b, loc, shifted, f(magic));
    Value r = add(mul(n, f(-0.693359375f)), x);
    r = add(mul(n, f(2.12194440e-4f)), r);
    Value p = f(1.9875691500e-4f);
    for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                    1.6666665459e-1f, 5.0000001201e-1f})
      p = add(mul(p, r), f(c));
    p = add(add(mul(p, mul(r, r)), r), f(1.0f));

    // Underflow in the products below would cost a hundred cycles for each of
    // the elements that a mask of attention has made very negative.
    p = arith::SelectOp::create(b, loc, isZero, f(0.0f), p);
    Value bits = arith::BitcastOp::create(b, loc, intType, shifted);
    Value exponent = arith::SubIOp::create(b, loc, bits, i(magicBits));
    Value half = arith::ShRSIOp::create(b, loc, exponent, i(1));
    Value rest = arith::SubIOp::create(b, loc, exponent, half);
    for (Value e : {half, rest}) {
      Value biased = arith::AddIOp::create(b, loc, e, i(127));
      Value scaleBits = arith::ShLIOp::create(b, loc, biased, i(23));
      p = arith::MulFOp::create(
          b, loc, p, arith::BitcastOp::create(b, loc, type, scaleBits));
    }
    b.replaceOp(op, p);
    return success();
  }
};

} // namespace

LogicalResult approximateMath(func::FuncOp func) {
  RewritePatternSet patterns(func.getContext());
  patterns.add<ExpPattern>(func.getContext(), /*benefit=*/2);
  auto f32Only = [](StringRef name) {
    return llvm::is_contained({"math.tanh", "math.erf", "math.log", "math.log2",
                               "math.log1p", "math.expm1", "math.sin",
                               "math.cos"},
                              name);
  };
  populateMathPolynomialApproximationPatterns(patterns, f32Only);
  return applyPatternsGreedily(func, std::move(patterns));
}

} // namespace pto::lowering
