//===- Elementwise.cpp - Arithmetic, activations, comparisons -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One scalar function per op; buildElementwise looks it up by the op's name
// and emits one linalg.generic over the broadcast shape.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using onnx::TensorProto;

namespace pto::lowering {

namespace {

/// One scalar computation: builder, operands and the first operand's dtype.
struct Scalar {
  Node &n;
  OpBuilder &b;
  Location loc;
  int dtype;
  ArrayRef<Value> args;

  Value operator[](size_t i) const { return args[i]; }
  Type type() const { return args[0].getType(); }
  bool isFp() const { return isFloat(dtype); }

  template <typename Op, typename... Args> Value op(Args... operands) const {
    return b.createOrFold<Op>(loc, operands...);
  }
  Value num(double v) const { return scalarConstant(b, loc, type(), v); }
  Value add(Value x, Value y) const { return scalarAdd(b, loc, x, y); }
  Value mul(Value x, Value y) const { return scalarMul(b, loc, x, y); }
  Value sub(Value x, Value y) const {
    return isFp() ? op<arith::SubFOp>(x, y) : op<arith::SubIOp>(x, y);
  }
  Value div(Value x, Value y) const { return op<arith::DivFOp>(x, y); }
  Value max(Value x, Value y) const { return scalarMax(b, loc, dtype, x, y); }
  Value min(Value x, Value y) const { return scalarMin(b, loc, dtype, x, y); }
  Value exp(Value x) const { return op<math::ExpOp>(x); }
  Value neg(Value x) const {
    return isFp() ? op<arith::NegFOp>(x) : sub(num(0), x);
  }
  Value select(Value c, Value x, Value y) const {
    return op<arith::SelectOp>(c, x, y);
  }
  /// Ordered comparison: false for NaN.
  Value cmp(arith::CmpFPredicate f, arith::CmpIPredicate s,
            arith::CmpIPredicate u, Value x, Value y) const {
    if (isFp())
      return op<arith::CmpFOp>(f, x, y);
    // Sizes are never negative: exporters ask whether they are -1.
    APInt bound;
    if (isSigned(dtype) && matchPattern(y, m_ConstantInt(&bound)) &&
        (bound.isNegative() ||
         (bound.isZero() && s == arith::CmpIPredicate::slt)) &&
        nonNegative(x) && !matchPattern(x, m_Constant()))
      return arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
    return op<arith::CmpIOp>(isSigned(dtype) ? s : u, x, y);
  }
  Value lt(Value x, Value y) const {
    return cmp(arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt,
               arith::CmpIPredicate::ult, x, y);
  }
  Value le(Value x, Value y) const {
    return cmp(arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle,
               arith::CmpIPredicate::ule, x, y);
  }
  Value eq(Value x, Value y) const {
    return cmp(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq,
               arith::CmpIPredicate::eq, x, y);
  }
};

} // namespace

/// Integer quotient and remainder without the traps of the machine: a zero
/// divisor acts as 1, and min / -1 wraps.
static Value safeDivisor(const Scalar &s, Value y) {
  y = s.select(s.eq(y, s.num(0)), s.num(1), y);
  return isSigned(s.dtype) ? s.select(s.eq(y, s.num(-1)), s.num(1), y) : y;
}

static Value divide(const Scalar &s) {
  Value x = s[0], y = s[1];
  if (s.isFp())
    return s.div(x, y);
  Value safe = safeDivisor(s, y);
  if (!isSigned(s.dtype))
    return s.op<arith::DivUIOp>(x, safe);
  return s.select(s.eq(y, s.num(-1)), s.sub(s.num(0), x),
                  s.op<arith::DivSIOp>(x, safe));
}

static Value modulo(const Scalar &s) {
  Value x = s[0], y = s[1];
  bool fmod = s.n.intAttr("fmod", 0);
  // Python's rule: the result has the divisor's sign.
  auto withDivisorsSign = [&](Value r, Value divisor) {
    Value zero = s.num(0);
    Value differs = s.op<arith::XOrIOp>(s.lt(r, zero), s.lt(divisor, zero));
    Value isZero = s.eq(r, zero);
    Value moved = s.select(differs, s.add(r, divisor), r);
    if (!s.isFp())
      return s.select(isZero, r, moved);
    return s.select(isZero, s.op<math::CopySignOp>(zero, divisor), moved);
  };
  if (s.isFp()) {
    Value r = s.op<arith::RemFOp>(x, y);
    return fmod ? r : withDivisorsSign(r, y);
  }
  Value safe = safeDivisor(s, y);
  if (!isSigned(s.dtype))
    return s.op<arith::RemUIOp>(x, safe);
  Value r = s.op<arith::RemSIOp>(x, safe);
  return fmod ? r : withDivisorsSign(r, safe);
}

static Value absolute(const Scalar &s, Value x) {
  if (s.isFp())
    return s.op<math::AbsFOp>(x);
  return isSigned(s.dtype) ? s.op<math::AbsIOp>(x) : x;
}

static Value sigmoid(const Scalar &s, Value x) {
  return s.div(s.num(1), s.add(s.num(1), s.exp(s.neg(x))));
}

/// log(1 + exp(x)) without overflow.
static Value softplus(const Scalar &s, Value x) {
  Value tail = s.op<math::Log1pOp>(s.exp(s.neg(s.op<math::AbsFOp>(x))));
  return s.add(s.max(x, s.num(0)), tail);
}

static Value hardSigmoid(const Scalar &s, Value x, double alpha, double beta) {
  Value line = s.add(s.mul(x, s.num(alpha)), s.num(beta));
  return s.max(s.num(0), s.min(s.num(1), line));
}

static Value sign(const Scalar &s) {
  Value x = s[0], zero = s.num(0);
  Value negative =
      isUnsigned(s.dtype) ? x : s.select(s.lt(x, zero), s.num(-1), x);
  return s.select(s.lt(zero, x), s.num(1), negative);
}

static Value gelu(const Scalar &s) {
  Value x = s[0], half = s.num(0.5), one = s.num(1);
  Value inner;
  if (s.n.stringAttr("approximate", "none") == "tanh") {
    Value cubic = s.mul(s.num(0.044715), s.mul(x, s.mul(x, x)));
    inner =
        s.op<math::TanhOp>(s.mul(s.num(0.7978845608028654), s.add(x, cubic)));
  } else {
    inner = s.op<math::ErfOp>(s.mul(x, s.num(0.7071067811865476)));
  }
  return s.mul(s.mul(half, x), s.add(one, inner));
}

static Value power(const Scalar &s) {
  Value x = s[0], y = s[1];
  int exponentDtype = s.n.in(1).dtype;
  // Small whole exponents are products: exact, and what models use.
  if (auto e = knownScalar(s.n.in(1))) {
    double v = NAN;
    if (auto f = dyn_cast<FloatAttr>(e))
      v = f.getValueAsDouble();
    else if (isSigned(exponentDtype))
      v = cast<IntegerAttr>(e).getValue().getSExtValue();
    if (v == 1)
      return x;
    if (v == 2)
      return s.mul(x, x);
    if (v == 3)
      return s.mul(s.mul(x, x), x);
  }
  if (s.isFp()) {
    if (isFloat(exponentDtype)) {
      if (y.getType() != x.getType())
        y = x.getType().getIntOrFloatBitWidth() >
                    y.getType().getIntOrFloatBitWidth()
                ? s.op<arith::ExtFOp>(x.getType(), y)
                : s.op<arith::TruncFOp>(x.getType(), y);
    } else {
      y = isSigned(exponentDtype) ? s.op<arith::SIToFPOp>(x.getType(), y)
                                  : s.op<arith::UIToFPOp>(x.getType(), y);
    }
    return s.op<math::PowFOp>(x, y);
  }
  if (isFloat(exponentDtype)) {
    Type f64 = s.b.getF64Type();
    Value base = isSigned(s.dtype) ? s.op<arith::SIToFPOp>(f64, x)
                                   : s.op<arith::UIToFPOp>(f64, x);
    if (y.getType() != f64)
      y = s.op<arith::ExtFOp>(f64, y);
    Value r = s.op<math::PowFOp>(base, y);
    return isSigned(s.dtype) ? s.op<arith::FPToSIOp>(x.getType(), r)
                             : s.op<arith::FPToUIOp>(x.getType(), r);
  }
  if (y.getType() != x.getType())
    y = x.getType().getIntOrFloatBitWidth() >
                y.getType().getIntOrFloatBitWidth()
            ? s.op<arith::ExtSIOp>(x.getType(), y)
            : s.op<arith::TruncIOp>(x.getType(), y);
  // Square and multiply. Beyond 63 only bases 0, 1 and -1 do not overflow, and
  // for them only the parity counts.
  Value big = s.lt(s.num(63), y);
  Value parity = s.op<arith::AndIOp>(y, s.num(1));
  Value e = s.select(big, s.add(s.num(62), parity), y);
  Value result = s.num(1), square = x;
  for (int bit = 0; bit < 6; ++bit) {
    Value isSet =
        s.op<arith::CmpIOp>(arith::CmpIPredicate::ne,
                            s.op<arith::AndIOp>(e, s.num(1 << bit)), s.num(0));
    result = s.select(isSet, s.mul(result, square), result);
    square = s.mul(square, square);
  }
  if (!isSigned(s.dtype))
    return result;
  // 1 / x^-y, rounded to zero.
  Value unit = s.op<arith::OrIOp>(s.eq(x, s.num(1)), s.eq(x, s.num(-1)));
  Value signedUnit = s.select(s.eq(parity, s.num(0)), s.num(1), x);
  Value inverse = s.select(unit, signedUnit, s.num(0));
  return s.select(s.lt(y, s.num(0)), inverse, result);
}

static Value isInf(const Scalar &s) {
  Value inf = s.num(INFINITY), ninf = s.num(-INFINITY);
  Value pos = s.op<arith::CmpFOp>(arith::CmpFPredicate::OEQ, s[0], inf);
  Value neg = s.op<arith::CmpFOp>(arith::CmpFPredicate::OEQ, s[0], ninf);
  bool wantPos = s.n.intAttr("detect_positive", 1);
  bool wantNeg = s.n.intAttr("detect_negative", 1);
  Value no = s.op<arith::XOrIOp>(pos, pos);
  return s.op<arith::OrIOp>(wantPos ? pos : no, wantNeg ? neg : no);
}

static Value bitShift(const Scalar &s) {
  unsigned width = s.type().getIntOrFloatBitWidth();
  // Shifting by the width or more (or by a negative number) is no poison: no
  // bit but copies of the sign remain.
  Value tooFar =
      s.op<arith::CmpIOp>(arith::CmpIPredicate::uge, s[1], s.num(width));
  bool left = s.n.stringAttr("direction", "") == "LEFT";
  if (isSigned(s.dtype) && !left)
    return s.op<arith::ShRSIOp>(s[0], s.select(tooFar, s.num(width - 1), s[1]));
  Value by = s.select(tooFar, s.num(0), s[1]);
  Value shifted =
      left ? s.op<arith::ShLIOp>(s[0], by) : s.op<arith::ShRUIOp>(s[0], by);
  return s.select(tooFar, s.num(0), shifted);
}

namespace {
struct ScalarOp {
  StringLiteral name;
  enum { Same, Bool } result;
  enum { Any = 0, Fp = 1, Integer = 2, Boolean = 4, Number = 3 };
  int domain; ///< What the first operand may be.
  Value (*fn)(const Scalar &);
};
} // namespace

static const ScalarOp kScalarOps[] = {
    {"Add", ScalarOp::Same, ScalarOp::Number,
     [](const Scalar &s) { return s.add(s[0], s[1]); }},
    {"Sub", ScalarOp::Same, ScalarOp::Number,
     [](const Scalar &s) { return s.sub(s[0], s[1]); }},
    {"Mul", ScalarOp::Same, ScalarOp::Number,
     [](const Scalar &s) { return s.mul(s[0], s[1]); }},
    {"Div", ScalarOp::Same, ScalarOp::Number, divide},
    {"Mod", ScalarOp::Same, ScalarOp::Number, modulo},
    {"Pow", ScalarOp::Same, ScalarOp::Number, power},
    {"PRelu", ScalarOp::Same, ScalarOp::Number,
     [](const Scalar &s) {
       return s.select(s.lt(s[0], s.num(0)), s.mul(s[1], s[0]), s[0]);
     }},
    // Comparisons and logic.
    {"Equal", ScalarOp::Bool, ScalarOp::Any,
     [](const Scalar &s) { return s.eq(s[0], s[1]); }},
    {"Less", ScalarOp::Bool, ScalarOp::Number,
     [](const Scalar &s) { return s.lt(s[0], s[1]); }},
    {"LessOrEqual", ScalarOp::Bool, ScalarOp::Number,
     [](const Scalar &s) { return s.le(s[0], s[1]); }},
    {"Greater", ScalarOp::Bool, ScalarOp::Number,
     [](const Scalar &s) { return s.lt(s[1], s[0]); }},
    {"GreaterOrEqual", ScalarOp::Bool, ScalarOp::Number,
     [](const Scalar &s) { return s.le(s[1], s[0]); }},
    {"And", ScalarOp::Bool, ScalarOp::Boolean,
     [](const Scalar &s) { return s.op<arith::AndIOp>(s[0], s[1]); }},
    {"Or", ScalarOp::Bool, ScalarOp::Boolean,
     [](const Scalar &s) { return s.op<arith::OrIOp>(s[0], s[1]); }},
    {"Xor", ScalarOp::Bool, ScalarOp::Boolean,
     [](const Scalar &s) { return s.op<arith::XOrIOp>(s[0], s[1]); }},
    {"Not", ScalarOp::Bool, ScalarOp::Boolean,
     [](const Scalar &s) {
       Value yes = arith::ConstantOp::create(s.b, s.loc, s.b.getBoolAttr(true));
       return s.op<arith::XOrIOp>(s[0], yes);
     }},
    {"IsNaN", ScalarOp::Bool, ScalarOp::Fp,
     [](const Scalar &s) {
       return s.op<arith::CmpFOp>(arith::CmpFPredicate::UNO, s[0], s[0]);
     }},
    {"IsInf", ScalarOp::Bool, ScalarOp::Fp, isInf},
    {"BitwiseAnd", ScalarOp::Same, ScalarOp::Integer,
     [](const Scalar &s) { return s.op<arith::AndIOp>(s[0], s[1]); }},
    {"BitwiseOr", ScalarOp::Same, ScalarOp::Integer,
     [](const Scalar &s) { return s.op<arith::OrIOp>(s[0], s[1]); }},
    {"BitwiseXor", ScalarOp::Same, ScalarOp::Integer,
     [](const Scalar &s) { return s.op<arith::XOrIOp>(s[0], s[1]); }},
    {"BitwiseNot", ScalarOp::Same, ScalarOp::Integer,
     [](const Scalar &s) { return s.op<arith::XOrIOp>(s[0], s.num(-1)); }},
    {"BitShift", ScalarOp::Same, ScalarOp::Integer, bitShift},
    // Unary arithmetic.
    {"Abs", ScalarOp::Same, ScalarOp::Number,
     [](const Scalar &s) { return absolute(s, s[0]); }},
    {"Neg", ScalarOp::Same, ScalarOp::Number,
     [](const Scalar &s) { return s.neg(s[0]); }},
    {"Sign", ScalarOp::Same, ScalarOp::Number, sign},
    {"Reciprocal", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.div(s.num(1), s[0]); }},
    {"Sqrt", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::SqrtOp>(s[0]); }},
    {"Exp", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.exp(s[0]); }},
    {"Log", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::LogOp>(s[0]); }},
    {"Floor", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::FloorOp>(s[0]); }},
    {"Ceil", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::CeilOp>(s[0]); }},
    {"Round", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::RoundEvenOp>(s[0]); }},
    {"Erf", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::ErfOp>(s[0]); }},
    {"Sin", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::SinOp>(s[0]); }},
    {"Cos", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::CosOp>(s[0]); }},
    {"Tan", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::TanOp>(s[0]); }},
    {"Asin", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::AsinOp>(s[0]); }},
    {"Acos", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::AcosOp>(s[0]); }},
    {"Atan", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::AtanOp>(s[0]); }},
    {"Sinh", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::SinhOp>(s[0]); }},
    {"Cosh", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::CoshOp>(s[0]); }},
    {"Asinh", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::AsinhOp>(s[0]); }},
    {"Acosh", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::AcoshOp>(s[0]); }},
    {"Atanh", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::AtanhOp>(s[0]); }},
    // Activations.
    {"Tanh", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return s.op<math::TanhOp>(s[0]); }},
    {"Relu", ScalarOp::Same, ScalarOp::Number,
     [](const Scalar &s) { return s.max(s[0], s.num(0)); }},
    {"LeakyRelu", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) {
       Value a = s.num(s.n.floatAttr("alpha", 0.01f));
       return s.select(s.lt(s[0], s.num(0)), s.mul(a, s[0]), s[0]);
     }},
    {"ThresholdedRelu", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) {
       Value a = s.num(s.n.floatAttr("alpha", 1.0f));
       return s.select(s.lt(a, s[0]), s[0], s.num(0));
     }},
    {"Elu", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) {
       Value a = s.num(s.n.floatAttr("alpha", 1.0f));
       Value low = s.mul(a, s.sub(s.exp(s[0]), s.num(1)));
       return s.select(s.lt(s[0], s.num(0)), low, s[0]);
     }},
    {"Selu", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) {
       Value a = s.num(s.n.floatAttr("alpha", 1.67326319217681884765625f));
       Value g = s.num(s.n.floatAttr("gamma", 1.05070102214813232421875f));
       Value low = s.sub(s.mul(a, s.exp(s[0])), a);
       return s.mul(g, s.select(s.le(s[0], s.num(0)), low, s[0]));
     }},
    {"Celu", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) {
       Value a = s.num(s.n.floatAttr("alpha", 1.0f));
       Value low = s.mul(a, s.sub(s.exp(s.div(s[0], a)), s.num(1)));
       return s.add(s.max(s[0], s.num(0)), s.min(low, s.num(0)));
     }},
    {"Sigmoid", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return sigmoid(s, s[0]); }},
    {"Swish", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) {
       Value a = s.num(s.n.floatAttr("alpha", 1.0f));
       return s.mul(s[0], sigmoid(s, s.mul(a, s[0])));
     }},
    {"HardSigmoid", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) {
       return hardSigmoid(s, s[0], s.n.floatAttr("alpha", 0.2f),
                          s.n.floatAttr("beta", 0.5f));
     }},
    {"HardSwish", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) {
       return s.mul(s[0], hardSigmoid(s, s[0], 1.0 / 6.0, 0.5));
     }},
    {"Softplus", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) { return softplus(s, s[0]); }},
    {"Softsign", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) {
       return s.div(s[0], s.add(s.num(1), absolute(s, s[0])));
     }},
    {"Mish", ScalarOp::Same, ScalarOp::Fp,
     [](const Scalar &s) {
       return s.mul(s[0], s.op<math::TanhOp>(softplus(s, s[0])));
     }},
    {"Shrink", ScalarOp::Same, ScalarOp::Number,
     [](const Scalar &s) {
       double lambd = s.n.floatAttr("lambd", 0.5f);
       Value bias = s.num(s.n.floatAttr("bias", 0));
       Value high =
           s.select(s.lt(s.num(lambd), s[0]), s.sub(s[0], bias), s.num(0));
       return s.select(s.lt(s[0], s.num(-lambd)), s.add(s[0], bias), high);
     }},
    {"Gelu", ScalarOp::Same, ScalarOp::Fp, gelu},
};

llvm::Error buildElementwise(Node &n) {
  const ScalarOp *entry = llvm::find_if(
      kScalarOps, [&](const ScalarOp &o) { return o.name == n.op(); });
  assert(entry != std::end(kScalarOps) && "op table names an unknown op");
  SmallVector<Tensor *> inputs;
  for (size_t i = 0; i < n.numInputs(); ++i) {
    if (!n.has(i))
      return n.invalid("input " + Twine(i) + " is missing");
    inputs.push_back(&n.in(i));
  }
  int dtype = inputs.front()->dtype;
  int kind = isFloat(dtype)  ? ScalarOp::Fp
             : isBool(dtype) ? ScalarOp::Boolean
                             : ScalarOp::Integer;
  if (entry->domain && !(entry->domain & kind))
    return n.unsupported("data type " + onnxTypeName(dtype));
  if (inputs.size() == 2 && n.op() != "Pow" && inputs[1]->dtype != dtype)
    return n.invalid("operands of types " + onnxTypeName(dtype) + " and " +
                     onnxTypeName(inputs[1]->dtype));
  int result = entry->result == ScalarOp::Bool ? int(TensorProto::BOOL) : dtype;
  auto out = elementwise(n, inputs, result,
                         [&](OpBuilder &b, Location loc, ArrayRef<Value> args) {
                           return entry->fn(Scalar{n, b, loc, dtype, args});
                         });
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

llvm::Error buildVariadic(Node &n) {
  SmallVector<Tensor *> inputs;
  for (size_t i = 0; i < n.numInputs(); ++i)
    inputs.push_back(&n.in(i));
  if (inputs.empty())
    return n.invalid("no inputs");
  int dtype = inputs.front()->dtype;
  for (Tensor *t : inputs)
    if (t->dtype != dtype)
      return n.invalid("operands of different types");
  StringRef name = n.op();
  auto out = elementwise(n, inputs, dtype,
                         [&](OpBuilder &b, Location loc, ArrayRef<Value> args) {
                           Scalar s{n, b, loc, dtype, args};
                           Value r = args[0];
                           for (Value v : args.drop_front())
                             r = name == "Max"   ? s.max(r, v)
                                 : name == "Min" ? s.min(r, v)
                                                 : s.add(r, v);
                           if (name == "Mean")
                             r = s.div(r, s.num(args.size()));
                           return r;
                         });
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

llvm::Error buildClip(Node &n) {
  int dtype = n.in(0).dtype;
  // Bounds: attributes (floats) before version 11, optional inputs since.
  Tensor lowTensor, highTensor;
  auto bound = [&](size_t i, StringRef name) -> Tensor {
    if (n.since >= 11)
      return n.has(i) ? n.in(i) : Tensor();
    if (!n.hasAttr(name))
      return Tensor();
    auto type = RankedTensorType::get({}, n.in(0).elementType());
    return Tensor::fromElements(
        dtype, type,
        OpFoldResult(
            n.b.getFloatAttr(type.getElementType(), n.floatAttr(name, 0))));
  };
  lowTensor = bound(1, "min");
  highTensor = bound(2, "max");
  for (Tensor *t : {&lowTensor, &highTensor})
    if (*t && (!t->type.hasStaticShape() || t->type.getNumElements() != 1))
      return n.invalid("a bound is no scalar");
  SmallVector<Tensor *> inputs = {&n.in(0)};
  if (lowTensor)
    inputs.push_back(&lowTensor);
  if (highTensor)
    inputs.push_back(&highTensor);
  if (inputs.size() == 1) {
    n.set(0, n.in(0));
    return llvm::Error::success();
  }
  // Bounds of shape [1] must not raise the rank of a scalar.
  for (Tensor *t : ArrayRef(inputs).drop_front())
    *t = reshape(n, *t, {});
  auto out = elementwise(n, inputs, dtype,
                         [&](OpBuilder &b, Location loc, ArrayRef<Value> args) {
                           size_t next = 1;
                           Value r = args[0];
                           if (lowTensor)
                             r = scalarMax(b, loc, dtype, r, args[next++]);
                           if (highTensor)
                             r = scalarMin(b, loc, dtype, r, args[next++]);
                           return r;
                         });
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

llvm::Error buildWhere(Node &n) {
  if (n.in(1).dtype != n.in(2).dtype)
    return n.invalid("operands of different types");
  auto out = elementwise(n, {&n.in(0), &n.in(1), &n.in(2)}, n.in(1).dtype,
                         [&](OpBuilder &b, Location loc, ArrayRef<Value> args) {
                           return b.createOrFold<arith::SelectOp>(
                               loc, args[0], args[1], args[2]);
                         });
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

} // namespace pto::lowering
