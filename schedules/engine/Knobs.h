//===- Knobs.h - Options that depend on kernel and target -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A knob's `options` attribute is one of
//   [8, 16, 32]                       these; the first is the default
//   {avx512 = [..], avx2 = [..], neon = [..], any = [..]}   by ISA
//   {source = "rows"}                 computed here from kernel and target
// The sources:
//   vector_bits  the target's vector width, and half of it
//   rows         register tile along the result's last but one dim
//   panel        register tile along the last dim, whole vectors
//   vectors      whole vectors per step of a kernel without register tiles
//   block_rows   rows that fit half of the L1 cache; 0: all
//   threads      1 .. the limit
//   chunks       parts that each thread takes, one after the other
//   parallel_dim the result's dims that can be split among threads; the one with
//                which the slowest thread is done first
//   vector_loop  where the loop over the last dim goes: outermost (a panel of
//                weights stays in the cache, rows stream), or innermost for
//                products whose weights stay in L2 while rows and result
//                exceed it
// `rows` and `panel` default to the pair with the least estimated cycles per
// reduction step over the whole kernel, tails included.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SCHEDULES_ENGINE_KNOBS_H
#define PTO_SCHEDULES_ENGINE_KNOBS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "schedules/engine/Engine.h"

namespace pto::schedules {

/// What the sources look at.
struct KernelFacts {
  std::string kind;           ///< kernelKind.
  std::vector<int64_t> shape; ///< Of the root's result; -1 dynamic.
  std::vector<bool> batch;    ///< Whether both factors have the dim.
  int64_t elementBits = 32;   ///< Widest element.
  int64_t reduction = 1;      ///< Product of the anchor's reduction loops.
  int64_t weightBytes = 0;    ///< The anchor's second input.
  int64_t streamBytes = 0;    ///< Its first input and the root's result.
};

KernelFacts factsOf(mlir::Operation *kernel);

/// A register tile: `rows` x `vectors` accumulators.
struct RegisterTile {
  int64_t rows = 1, vectors = 1;
};

/// Vector registers that a contraction tile needs: accumulators, the panel's
/// vectors, one broadcast.
int64_t registersFor(RegisterTile tile);

/// Estimated cycles per reduction step for all tiles of an m x n result.
/// Two FMAs and two loads per cycle, FMA latency 4 (Intel, AMD and Arm server
/// cores since 2015).
double cyclesPerStep(RegisterTile tile, int64_t m, int64_t n, int64_t width);

/// The tile of least cyclesPerStep that fits the registers.
RegisterTile bestRegisterTile(int64_t m, int64_t n, int64_t width,
                              int64_t registers);

/// Resolves a knob's options. Fails if the attribute has an unknown form.
llvm::Expected<Knob> resolveKnob(llvm::StringRef name, mlir::Attribute options,
                                 const KernelFacts &facts,
                                 const targets::Target &target,
                                 unsigned threads);

} // namespace pto::schedules

#endif // PTO_SCHEDULES_ENGINE_KNOBS_H
