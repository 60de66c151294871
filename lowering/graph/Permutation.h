//===- Permutation.h - Stored order of a tensor's dims ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A layout is a permutation: dim i of the tensor in memory is dim perm[i] of
// the tensor that the model speaks of. Empty means identity.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_GRAPH_PERMUTATION_H
#define PTO_LOWERING_GRAPH_PERMUTATION_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

namespace pto::lowering {

using Permutation = llvm::SmallVector<int64_t, 6>;

bool isIdentity(llvm::ArrayRef<int64_t> perm);
Permutation inverse(llvm::ArrayRef<int64_t> perm);

/// result[i] = values[perm[i]]; an empty `perm` changes nothing.
template <typename T>
llvm::SmallVector<T> permuted(llvm::ArrayRef<T> values,
                              llvm::ArrayRef<int64_t> perm) {
  llvm::SmallVector<T> result(values);
  for (size_t i = 0; i < perm.size(); ++i)
    result[i] = values[perm[i]];
  return result;
}

mlir::RankedTensorType permuted(mlir::RankedTensorType type,
                                llvm::ArrayRef<int64_t> perm);

/// The map that reads the stored tensor where `map` reads the logical one.
mlir::AffineMap permuteResults(mlir::AffineMap map,
                               llvm::ArrayRef<int64_t> perm);

/// A transpose of `value` as linalg.generic: dim i of the result is dim
/// perm[i] of the operand. One that only moves unit dims is a reshape.
mlir::Value transposeValue(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value value, llvm::ArrayRef<int64_t> perm);

/// Reshapes `value` to `type` with collapse_shape and expand_shape, keeping
/// the order of elements. Dims of `type` may be dynamic one per group of dims.
/// Null if no such pair of reshapes exists.
mlir::Value reshapeTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                      mlir::RankedTensorType type);

} // namespace pto::lowering

#endif // PTO_LOWERING_GRAPH_PERMUTATION_H
