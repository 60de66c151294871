//===- RowWise.h - Softmax and normalisations as one kernel -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A row region is a set of ops that work on each row of a tensor by itself:
// reductions of its trailing dims, elementwise ops on the rows' results, and
// elementwise ops on the whole, which read the rows' results broadcast. It
// shows one value, of the whole shape. Nothing is known of softmax or layer
// norm: any such ops are found, however a model spells them.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_GRAPH_ROWWISE_H
#define PTO_LOWERING_GRAPH_ROWWISE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

namespace pto::lowering {

/// Marks the ops of a row region.
constexpr const char *kRowOp = "pto.row";

/// A reduction of the trailing dims of its operand: parallel loops first, and
/// the result is indexed by all of them in order.
bool isRowReduction(mlir::Operation *op);

using OpSet = llvm::SetVector<mlir::Operation *>;

/// The region whose first reduction is `first`; empty if it has no elementwise
/// op on the whole shape. `isFree` says what may be taken, `countExposed` how
/// many values of a set are used outside of it.
OpSet findRowRegion(mlir::linalg::GenericOp first,
                    llvm::function_ref<bool(mlir::Operation *)> isFree,
                    llvm::function_ref<unsigned(const OpSet &)> countExposed);

/// Rewrites a region so that few values of the whole shape are stored: cheap
/// ones are computed again where they are used, chains merge, divisions by a
/// row's result become products. Returns what may still merge into reductions.
llvm::SmallVector<mlir::linalg::GenericOp>
simplifyRowRegion(mlir::IRRewriter &rewriter, OpSet region);

} // namespace pto::lowering

#endif // PTO_LOWERING_GRAPH_ROWWISE_H
