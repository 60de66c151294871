//===- LayoutAssignment.h - Which tensor is stored in which order -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// Chooses a Permutation for each value of @main. Convolutions ask for channels
// last; the wish spreads through elementwise ops, pooling, padding, slices and
// reshapes. The model's arguments stay as they are. Layout.cpp rewrites the
// function accordingly; whatever this file says, the rewrite is correct, for
// it inserts a transpose where two sides disagree.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_GRAPH_LAYOUTASSIGNMENT_H
#define PTO_LOWERING_GRAPH_LAYOUTASSIGNMENT_H

#include "lowering/graph/Permutation.h"
#include "lowering/graph/Structure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace pto::lowering {

class LayoutAssignment {
public:
  explicit LayoutAssignment(mlir::func::FuncOp main);

  /// The stored order of `value`; empty is the identity.
  Permutation of(mlir::Value value) const;
  /// Constants have no layout of their own: each user gets the order it likes.
  bool isConstant(mlir::Value value) { return constants.isConstant(value); }

private:
  void seed(mlir::linalg::GenericOp convolution);
  /// Stores what leads from a contraction to `transpose`, which moves dims by
  /// `perm`, in the transposed order, if each step can be.
  void storeTransposed(mlir::linalg::GenericOp transpose, Permutation perm);
  bool assign(mlir::Value value, Permutation perm);
  void spread();
  void spreadThrough(mlir::Operation *op, mlir::Value from);

  llvm::DenseMap<mlir::Value, Permutation> layouts;
  llvm::SmallVector<mlir::Value> worklist;
  ConstantValues constants;
};

/// The stored order of a reshape's result (or source) such that the reshape
/// costs nothing, when `from` is the order of the other side. `groups[i]` are
/// the dims of the larger side, of shape `large`, that make dim i of the
/// smaller one.
std::optional<Permutation>
layoutThroughReshape(llvm::ArrayRef<llvm::SmallVector<int64_t, 2>> groups,
                     llvm::ArrayRef<int64_t> large,
                     llvm::ArrayRef<int64_t> from, bool fromLarge);

} // namespace pto::lowering

#endif // PTO_LOWERING_GRAPH_LAYOUTASSIGNMENT_H
