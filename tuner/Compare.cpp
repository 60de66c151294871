//===- Compare.cpp - Are these numbers right? -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/Compare.h"
#include "targets/cpu/runtime/pto_abi.h"
#include "tuner/ToolError.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cmath>
#include <cstring>

namespace pto::tuner {
namespace {

bool isFloat(int32_t dtype) {
  return dtype == PTO_F32 || dtype == PTO_F64 || dtype == PTO_F16 ||
         dtype == PTO_BF16;
}

double floatAt(const HostTensor &tensor, int64_t i) {
  const char *at = tensor.bytes.data() + i * elementBytes(tensor.dtype);
  switch (tensor.dtype) {
  case PTO_F32: {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  case PTO_F64: {
    double value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  default: {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    const llvm::fltSemantics &kind = tensor.dtype == PTO_F16
                                         ? llvm::APFloat::IEEEhalf()
                                         : llvm::APFloat::BFloat();
    llvm::APFloat value(kind, llvm::APInt(16, bits));
    bool lossy;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &lossy);
    return value.convertToDouble();
  }
  }
}

int64_t integerAt(const HostTensor &tensor, int64_t i) {
  uint64_t bits = 0;
  int64_t size = elementBytes(tensor.dtype);
  std::memcpy(&bits, tensor.bytes.data() + i * size, size);
  bool isSigned = tensor.dtype == PTO_I8 || tensor.dtype == PTO_I16 ||
                  tensor.dtype == PTO_I32 || tensor.dtype == PTO_I64;
  if (isSigned && size < 8)
    return static_cast<int64_t>(bits << (64 - 8 * size)) >> (64 - 8 * size);
  return static_cast<int64_t>(bits);
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

class Comparer {
public:
  Comparer(const HostTensor &result, const HostTensor &reference,
           const Tolerance &tolerance)
      : result(result), reference(reference), tolerance(tolerance) {}

  Comparison run() {
    if (result.dtype != reference.dtype)
      return differ(llvm::formatv("element type is {0}, reference has {1}",
                                  dtypeText(result.dtype),
                                  dtypeText(reference.dtype)));
    if (result.shape != reference.shape)
      return differ(llvm::formatv("shape is {0}, reference has {1}",
                                  shapeText(result.shape),
                                  shapeText(reference.shape)));
    if (isFloat(result.dtype))
      compareFloats();
    else
      compareIntegers();
    return out;
  }

private:
  Comparison differ(std::string message) {
    out.message = std::move(message);
    return out;
  }

  void compareFloats() {
    int64_t n = reference.elements(), bad = 0, firstBad = -1;
    double maxReference = 0;
    for (int64_t i = 0; i < n; ++i) {
      double x = floatAt(result, i), r = floatAt(reference, i);
      if (std::isfinite(r))
        maxReference = std::max(maxReference, std::fabs(r));
      if ((std::isnan(x) && std::isnan(r)) || x == r)
        continue;
      double error = std::fabs(x - r);
      bool comparable = std::isfinite(x) && std::isfinite(r);
      if (!comparable ||
          (tolerance.elementwise &&
           !(error <= tolerance.atol + tolerance.rtol * std::fabs(r)))) {
        ++bad;
        if (firstBad < 0)
          firstBad = i;
      }
      if (comparable && error > out.maxAbs) {
        out.maxAbs = error;
        out.worst = i;
      }
    }
    out.maxRel = maxReference > 0 ? out.maxAbs / maxReference
                 : out.maxAbs > 0 ? HUGE_VAL
                                  : 0;
    out.equal = bad == 0;
    if (!tolerance.elementwise)
      out.equal &= out.maxAbs <= tolerance.rel * maxReference;
    if (bad)
      out.worst = firstBad;
    if (!out.equal)
      out.message = llvm::formatv(
          "{0} at element {1}: {2} instead of {3}",
          bad ? llvm::formatv("{0} of {1} elements differ, first", bad, n).str()
              : std::string("largest error"),
          out.worst, floatAt(result, out.worst), floatAt(reference, out.worst));
  }

  void compareIntegers() {
    int64_t n = reference.elements(), bad = 0;
    double maxReference = 0;
    for (int64_t i = 0; i < n; ++i) {
      int64_t x = integerAt(result, i), r = integerAt(reference, i);
      maxReference = std::max(maxReference, std::fabs(double(r)));
      if (x == r)
        continue;
      if (!bad++)
        out.worst = i;
      out.maxAbs = std::max(out.maxAbs, std::fabs(double(x) - double(r)));
    }
    out.maxRel = maxReference > 0 ? out.maxAbs / maxReference : 0;
    out.equal = bad == 0;
    if (bad)
      out.message = llvm::formatv(
          "{0} of {1} elements differ, first at {2}: {3} instead of {4}", bad,
          n, out.worst, integerAt(result, out.worst),
          integerAt(reference, out.worst));
  }

  const HostTensor &result, &reference;
  const Tolerance &tolerance;
  Comparison out;
};

} // namespace

Comparison compare(const HostTensor &result, const HostTensor &reference,
                   const Tolerance &tolerance) {
  return Comparer(result, reference, tolerance).run();
}

llvm::Expected<std::optional<Tolerance>>
readToleranceFile(llvm::StringRef folder) {
  llvm::SmallString<128> inside(folder), beside;
  llvm::sys::fs::make_absolute(inside);
  llvm::sys::path::remove_dots(inside, /*remove_dot_dot=*/true);
  beside = llvm::sys::path::parent_path(inside);
  llvm::sys::path::append(inside, "tol.json");
  llvm::sys::path::append(beside, "tol.json");
  for (llvm::StringRef path : {inside.str(), beside.str()}) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (!buffer)
      continue;
    auto value = llvm::json::parse((*buffer)->getBuffer());
    const llvm::json::Object *object = value ? value->getAsObject() : nullptr;
    std::optional<double> rtol =
        object ? object->getNumber("rtol") : std::nullopt;
    std::optional<double> atol =
        object ? object->getNumber("atol") : std::nullopt;
    if (!value)
      llvm::consumeError(value.takeError());
    if (!rtol || !atol)
      return toolError(BadInput,
                       path + ": must be {\"rtol\": number, \"atol\": number}");
    Tolerance tolerance;
    tolerance.elementwise = true;
    tolerance.rtol = *rtol;
    tolerance.atol = *atol;
    return tolerance;
  }
  return std::nullopt;
}

} // namespace pto::tuner
