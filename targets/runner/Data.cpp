//===- Data.cpp -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Data.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstring>

using namespace pto::targets;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

static double halfToDouble(uint16_t h) {
  int exponent = (h >> 10) & 31, mantissa = h & 1023;
  double sign = h & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return mantissa ? std::nan("") : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

/// Inputs only: normal numbers, truncation is fine.
static uint16_t doubleToHalf(double x) {
  uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  int exponent;
  double m = std::frexp(std::fabs(x), &exponent); // m in [0.5, 1)
  return sign | uint16_t((exponent + 14) << 10) | (uint16_t(m * 2048) & 1023);
}

static double loadFloat(const char *data, DType type, int64_t i) {
  switch (type) {
  case DType::F32: {
    float v;
    std::memcpy(&v, data + i * 4, 4);
    return v;
  }
  case DType::F64: {
    double v;
    std::memcpy(&v, data + i * 8, 8);
    return v;
  }
  case DType::F16:
  case DType::BF16: {
    uint16_t h;
    std::memcpy(&h, data + i * 2, 2);
    if (type == DType::F16)
      return halfToDouble(h);
    return llvm::bit_cast<float>(uint32_t(h) << 16);
  }
  default:
    return 0;
  }
}

static void storeFloat(char *data, DType type, int64_t i, double v) {
  switch (type) {
  case DType::F32: {
    float f = float(v);
    std::memcpy(data + i * 4, &f, 4);
    break;
  }
  case DType::F64:
    std::memcpy(data + i * 8, &v, 8);
    break;
  case DType::F16: {
    uint16_t h = doubleToHalf(v);
    std::memcpy(data + i * 2, &h, 2);
    break;
  }
  case DType::BF16: {
    uint16_t h = uint16_t(llvm::bit_cast<uint32_t>(float(v)) >> 16);
    std::memcpy(data + i * 2, &h, 2);
    break;
  }
  default:
    break;
  }
}

static int64_t loadInteger(const char *data, DType type, int64_t i) {
  switch (byteSize(type)) {
  case 1:
    return int8_t(data[i]);
  case 2: {
    int16_t v;
    std::memcpy(&v, data + i * 2, 2);
    return v;
  }
  case 4: {
    int32_t v;
    std::memcpy(&v, data + i * 4, 4);
    return v;
  }
  default: {
    int64_t v;
    std::memcpy(&v, data + i * 8, 8);
    return v;
  }
  }
}

static void storeInteger(char *data, DType type, int64_t i, int64_t v) {
  // Little-endian, like every target so far.
  std::memcpy(data + i * byteSize(type), &v, byteSize(type));
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// splitmix64: equal on every machine, and each element by itself.
static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// A quarter of the regions (16ths of a tensor) are negative throughout, an
/// eighth positive; elsewhere signs are random.
static bool negative(DataSet set, int64_t i, int64_t n, uint64_t seed,
                     uint64_t bits) {
  if (set != DataSet::Mixed)
    return set == DataSet::Negative;
  int64_t region = n >= 256 ? i / ((n + 15) / 16) : 0;
  uint64_t kind = n >= 256 ? mix(seed ^ (0xABCDull + region)) % 8 : 7;
  if (region == 1)
    kind = 0; // At least one such region in every tensor of some size.
  if (kind < 2)
    return true;
  if (kind == 2)
    return false;
  return bits & 1;
}

void pto::targets::fillInput(char *data, const ArgumentSpec &argument,
                             DataSet set, uint64_t seed) {
  const TensorSpec &t = argument.tensor;
  int64_t n = t.elements();
  for (int64_t i = 0; i < n; ++i) {
    uint64_t bits = mix(seed * 0x1000003 + uint64_t(i));
    bool minus = negative(set, i, n, seed, bits);
    if (isFloat(t.dtype)) {
      // Magnitudes in [0.125, 1.125): sums neither vanish nor overflow.
      double v = 0.125 + double(bits >> 11) * 0x1p-53;
      storeFloat(data, t.dtype, i, minus ? -v : v);
    } else if (t.dtype == DType::I1) {
      storeInteger(data, t.dtype, i, (bits >> 8) & 1);
    } else if (argument.indexBound > 0) {
      storeInteger(data, t.dtype, i, (bits >> 8) % argument.indexBound);
    } else {
      int64_t v = 1 + (bits >> 8) % 100;
      storeInteger(data, t.dtype, i, minus ? -v : v);
    }
  }
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

// Quiet NaNs with a payload that arithmetic on other NaNs does not give.
static constexpr uint32_t kPoison32 = 0x7FE5A17D;
static constexpr uint64_t kPoison64 = 0x7FFC5A17DEADBEEF;
static constexpr uint16_t kPoisonF16 = 0x7F5A;
static constexpr uint16_t kPoisonBF16 = 0x7FE5;

void pto::targets::poison(char *data, const TensorSpec &t, uint64_t seed) {
  int64_t n = t.elements();
  size_t size = byteSize(t.dtype);
  for (int64_t i = 0; i < n; ++i) {
    switch (t.dtype) {
    case DType::F32:
      std::memcpy(data + i * size, &kPoison32, size);
      break;
    case DType::F64:
      std::memcpy(data + i * size, &kPoison64, size);
      break;
    case DType::F16:
      std::memcpy(data + i * size, &kPoisonF16, size);
      break;
    case DType::BF16:
      std::memcpy(data + i * size, &kPoisonBF16, size);
      break;
    default: {
      uint64_t bits = mix(seed + uint64_t(i));
      if (t.dtype == DType::I1)
        bits &= 1;
      std::memcpy(data + i * size, &bits, size);
    }
    }
  }
}

static bool isPoison(const char *data, DType type, int64_t i) {
  size_t size = byteSize(type);
  switch (type) {
  case DType::F32:
    return !std::memcmp(data + i * size, &kPoison32, size);
  case DType::F64:
    return !std::memcmp(data + i * size, &kPoison64, size);
  case DType::F16:
    return !std::memcmp(data + i * size, &kPoisonF16, size);
  case DType::BF16:
    return !std::memcmp(data + i * size, &kPoisonBF16, size);
  default:
    return false;
  }
}

double pto::targets::tolerance(DType type, int64_t reductionLength) {
  // Rounding errors of a sum grow like the square root of its length when they
  // are independent. The constants leave room for polynomial exp, tanh and erf.
  double root = std::sqrt(double(std::max<int64_t>(1, reductionLength)));
  switch (type) {
  case DType::F32:
    return 0x1p-23 * (64 + 4 * root);
  case DType::F64:
    return 0x1p-52 * (64 + 4 * root);
  case DType::F16:
    return 0x1p-10 * (4 + root / 4);
  case DType::BF16:
    return 0x1p-7 * (4 + root / 4);
  default:
    return 0;
  }
}

/// "[1, 5, 0]" of a flat index.
static std::string position(const TensorSpec &t, int64_t flat) {
  std::string text;
  for (size_t d = t.shape.size(); d-- > 0;) {
    text =
        std::to_string(flat % t.shape[d]) + (text.empty() ? "" : ", ") + text;
    flat /= t.shape[d];
  }
  return "[" + text + "]";
}

static std::string describe(const TensorSpec &t, int64_t i, double actual,
                            double expected, bool unwritten, int64_t bad) {
  char text[200];
  if (unwritten)
    std::snprintf(text, sizeof text, "%s was not written, want %.9g",
                  position(t, i).c_str(), expected);
  else
    std::snprintf(text, sizeof text, "%s is %.9g, want %.9g",
                  position(t, i).c_str(), actual, expected);
  return std::string(text) + "; " + std::to_string(bad) + " of " +
         std::to_string(t.elements()) + " elements differ";
}

static Verdict compareFloats(const char *actual, const char *expected,
                             const TensorSpec &t, double tolerance) {
  int64_t n = t.elements();
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    double e = loadFloat(expected, t.dtype, i);
    if (std::isfinite(e)) {
      sum += e * e;
      ++finite;
    }
  }
  double rms = finite ? std::sqrt(sum / finite) : 0;

  Verdict verdict;
  int64_t bad = 0, first = -1;
  for (int64_t i = 0; i < n; ++i) {
    double a = loadFloat(actual, t.dtype, i);
    double e = loadFloat(expected, t.dtype, i);
    bool wrong;
    if (std::isnan(a) || std::isnan(e))
      wrong = std::isnan(a) != std::isnan(e) || isPoison(actual, t.dtype, i);
    else if (std::isinf(a) || std::isinf(e))
      wrong = a != e;
    else {
      double scale = std::max(std::fabs(e), rms);
      double error = a == e ? 0 : scale > 0 ? std::fabs(a - e) / scale : 1;
      verdict.worst = std::max(verdict.worst, error);
      wrong = error > tolerance;
    }
    if (wrong && bad++ == 0)
      first = i;
  }
  if (bad) {
    verdict.equal = false;
    verdict.message = describe(t, first, loadFloat(actual, t.dtype, first),
                               loadFloat(expected, t.dtype, first),
                               isPoison(actual, t.dtype, first), bad);
    char text[64];
    std::snprintf(text, sizeof text, " (tolerance %.2g)", tolerance);
    verdict.message += text;
  }
  return verdict;
}

Verdict pto::targets::compareOutput(const char *actual, const char *expected,
                                    const TensorSpec &t, double tolerance) {
  if (isFloat(t.dtype))
    return compareFloats(actual, expected, t, tolerance);
  Verdict verdict;
  int64_t bad = 0, first = -1, n = t.elements();
  for (int64_t i = 0; i < n; ++i)
    if (loadInteger(actual, t.dtype, i) != loadInteger(expected, t.dtype, i) &&
        bad++ == 0)
      first = i;
  if (bad) {
    verdict.equal = false;
    verdict.worst = 1;
    verdict.message =
        describe(t, first, double(loadInteger(actual, t.dtype, first)),
                 double(loadInteger(expected, t.dtype, first)), false, bad);
  }
  return verdict;
}
