//===- MemoryPlan.cpp - Offsets in one arena ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/main/MemoryPlan.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>
#include <numeric>

namespace pto::lowering {
namespace {

bool meet(const LiveBuffer &a, const LiveBuffer &b) {
  return a.first <= b.last && b.first <= a.last;
}

/// The placed buffers that `buffer` must not overlap, by offset.
std::vector<size_t> neighbours(const std::vector<LiveBuffer> &buffers,
                               const std::vector<size_t> &placed,
                               const MemoryPlan &plan,
                               const LiveBuffer &buffer) {
  std::vector<size_t> found;
  for (size_t i : placed)
    if (meet(buffers[i], buffer))
      found.push_back(i);
  std::sort(found.begin(), found.end(), [&](size_t a, size_t b) {
    return plan.offsets[a] < plan.offsets[b];
  });
  return found;
}

} // namespace

MemoryPlan planMemory(const std::vector<LiveBuffer> &buffers,
                      int64_t alignment) {
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].size != buffers[b].size
               ? buffers[a].size > buffers[b].size
               : a < b;
  });
  auto aligned = [&](int64_t size) {
    return static_cast<int64_t>(llvm::alignTo(size, alignment));
  };

  std::vector<size_t> placed;
  for (size_t i : order) {
    int64_t size = aligned(buffers[i].size);
    int64_t end = 0, best = -1;
    int64_t bestGap = std::numeric_limits<int64_t>::max();
    for (size_t j : neighbours(buffers, placed, plan, buffers[i])) {
      int64_t gap = plan.offsets[j] - end;
      if (gap >= size && gap < bestGap) {
        best = end;
        bestGap = gap;
      }
      end = std::max(end, plan.offsets[j] + aligned(buffers[j].size));
    }
    plan.offsets[i] = best >= 0 ? best : end;
    plan.total = std::max(plan.total, plan.offsets[i] + size);
    if (size)
      placed.push_back(i);
  }
  return plan;
}

std::vector<unsigned> assignSlots(const std::vector<LiveBuffer> &buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].first != buffers[b].first
               ? buffers[a].first < buffers[b].first
               : a < b;
  });
  std::vector<unsigned> slots(buffers.size());
  std::vector<int64_t> busyUntil;
  for (size_t i : order) {
    unsigned slot = 0;
    while (slot < busyUntil.size() && busyUntil[slot] >= buffers[i].first)
      ++slot;
    if (slot == busyUntil.size())
      busyUntil.push_back(0);
    busyUntil[slot] = buffers[i].last;
    slots[i] = slot;
  }
  return slots;
}

} // namespace pto::lowering
