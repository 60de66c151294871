//===- Compare.h - Are these numbers right? ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The rules of pto-run --check. Floats: the largest |error| is at most `rel`
// times the largest |reference|, or, with `elementwise`, |error| <= atol + rtol
// * |reference| for each. NaN equals NaN, infinities are equal by sign,
// integers and booleans are exact.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_COMPARE_H
#define PTO_TUNER_COMPARE_H

#include "tuner/TensorFile.h"

namespace pto::tuner {

struct Tolerance {
  double rel = 1e-4;
  bool elementwise = false;
  double rtol = 0, atol = 0;
};

struct Comparison {
  bool equal = false;
  double maxAbs = 0;   ///< Largest |error|.
  double maxRel = 0;   ///< maxAbs over the largest |reference|.
  int64_t worst = -1;  ///< Where the first violation, or the largest error, is.
  std::string message; ///< Without equality: what differs.
};

/// dtype and shape must agree, too.
Comparison compare(const HostTensor &result, const HostTensor &reference,
                   const Tolerance &tolerance);

/// Reads {rtol, atol} from tol.json in `folder` or its parent, if there is one.
llvm::Expected<std::optional<Tolerance>>
readToleranceFile(llvm::StringRef folder);

} // namespace pto::tuner

#endif // PTO_TUNER_COMPARE_H
