//===- Structure.h - What an op is, judged by its structure -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Grouped, 1-D and 3-D convolutions have no named linalg op, so the graph
// stage never asks for names: it classifies linalg.generic by iterators,
// indexing maps and body.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_GRAPH_STRUCTURE_H
#define PTO_LOWERING_GRAPH_STRUCTURE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace pto::lowering {

enum class OpKind {
  Elementwise, ///< All loops parallel; each element of the result once.
  Contraction, ///< Multiply and add of two operands; maps without windows.
  Convolution, ///< The same with a window and channels that are summed.
  Depthwise,   ///< The same with a window, each channel by itself.
  Window,      ///< Reduction over a window (pooling).
  Reduction,   ///< Any other linalg.generic with reduction loops.
  Other,       ///< Not a linalg.generic.
};

OpKind opKind(mlir::Operation *op);

/// True for a linalg.generic with parallel loops only whose output maps are
/// permutations, whose body has no side effects.
bool isElementwise(mlir::Operation *op);

/// True if the body is `yield add(out, mul(in0, in1))`, with casts allowed on
/// the factors.
bool isMultiplyAdd(mlir::linalg::GenericOp op);

/// The operands by position of its loops: those of the reduction that index
/// the window, and so on. Window loops are the reduction loops that share a
/// result expression with a parallel loop.
struct LoopRoles {
  llvm::SmallVector<unsigned> image;   ///< Parallel, walked with a window.
  llvm::SmallVector<unsigned> window;  ///< Reduction, over the window.
  llvm::SmallVector<unsigned> batch;   ///< Parallel, in lhs and output only.
  llvm::SmallVector<unsigned> channel; ///< Parallel, in lhs, rhs and output.
  llvm::SmallVector<unsigned> out;     ///< Parallel, in rhs and output only.
  llvm::SmallVector<unsigned> in;      ///< Reduction, in lhs and rhs.
};

/// The loops of a multiply-add with two inputs and one output.
std::optional<LoopRoles> loopRoles(mlir::linalg::GenericOp op);

/// What depends on constants alone. Cached: valid as long as the ops it was
/// asked about do not change.
class ConstantValues {
public:
  /// True if `value` is computed from arith.constant by ops without side
  /// effects. tensor.empty and fills count.
  bool isConstant(mlir::Value value);

private:
  llvm::DenseMap<mlir::Value, bool> known;
};

/// The one element of a splat or single-element constant tensor, seen through
/// reshapes and fills; null otherwise.
mlir::TypedAttr splatValue(mlir::Value value);

/// The only public function of the model; null with an error if there is none.
mlir::Operation *findMain(mlir::Operation *module);

} // namespace pto::lowering

#endif // PTO_LOWERING_GRAPH_STRUCTURE_H
