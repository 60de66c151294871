//===- AlignShapes.h - Ops take the shape of their producers ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A reshape between an op and an elementwise user keeps the two apart, for a
// kernel's ops walk the same loops. Elementwise ops and plain reductions are
// rewritten, in program order, to the shape that their latest operand had
// before it was reshaped; so a whole chain takes the shape of the contraction
// in front of it, and what is left of the reshapes lies between kernels.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_GRAPH_ALIGNSHAPES_H
#define PTO_LOWERING_GRAPH_ALIGNSHAPES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace pto::lowering {

/// Only ops of static shape are touched.
void alignShapes(mlir::func::FuncOp main);

} // namespace pto::lowering

#endif // PTO_LOWERING_GRAPH_ALIGNSHAPES_H
