//===- MemoryPlan.h - Offsets in one arena ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Intermediate values of a model live in one block of memory. Each is needed
// from the step that writes it to the last that reads it; two values may share
// bytes when these ranges do not meet. No MLIR here.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_MAIN_MEMORYPLAN_H
#define PTO_LOWERING_MAIN_MEMORYPLAN_H

#include <cstdint>
#include <vector>

namespace pto::lowering {

/// One value: its bytes, and the steps (both inclusive) that need it.
struct LiveBuffer {
  int64_t size = 0;
  int64_t first = 0;
  int64_t last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets; ///< One for each buffer, aligned.
  int64_t total = 0;            ///< Bytes of the arena.
};

/// Greedy best fit, largest buffer first: each goes into the smallest gap
/// between those placed already that are alive at the same time.
MemoryPlan planMemory(const std::vector<LiveBuffer> &buffers,
                      int64_t alignment);

/// For sizes known only at run time: gives each buffer a slot, such that
/// buffers alive at the same time have different slots, as few as possible. A
/// slot is as large as its largest buffer. `size` is not looked at.
std::vector<unsigned> assignSlots(const std::vector<LiveBuffer> &buffers);

} // namespace pto::lowering

#endif // PTO_LOWERING_MAIN_MEMORYPLAN_H
