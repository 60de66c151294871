//===- MergeElementwise.h - Several elementwise ops as one ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_GRAPH_MERGEELEMENTWISE_H
#define PTO_LOWERING_GRAPH_MERGEELEMENTWISE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace pto::lowering {

/// Replaces `ops` by one linalg.generic in the place of the last one. They are
/// elementwise, in order, with identity output maps of one shape; they read
/// each other through identity maps, and only the last one's result is used
/// elsewhere. Operands of one value become scalars in the body.
mlir::linalg::GenericOp
mergeElementwise(mlir::RewriterBase &rewriter,
                 llvm::ArrayRef<mlir::linalg::GenericOp> ops);

} // namespace pto::lowering

#endif // PTO_LOWERING_GRAPH_MERGEELEMENTWISE_H
