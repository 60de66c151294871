//===- Nearest.h - How far two kernels are apart ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A neighbour's winner is a good first guess. Distance is over the `features`
// that the lowering stores with a kernel: a flat JSON object of numbers (sizes,
// strides), strings (dtype, layout) and arrays of numbers.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_DB_NEAREST_H
#define PTO_DB_NEAREST_H

#include "llvm/ADT/StringRef.h"

namespace pto::db {

/// Numbers differ by |log2((a + 1) / (b + 1))|, summed: 64 against 128 is about
/// one. A different string, a missing feature or another length of an array
/// counts as four doublings. Texts that are no object are infinitely far.
double featureDistance(llvm::StringRef a, llvm::StringRef b);

} // namespace pto::db

#endif // PTO_DB_NEAREST_H
