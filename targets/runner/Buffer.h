//===- Buffer.h - Memory that notices writes outside it ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Candidates may read and write where they must not. Each buffer lies between
// unmapped pages, so that far accesses fault, and what is left of its own pages
// holds a pattern, so that near writes are seen.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_BUFFER_H
#define PTO_TARGETS_RUNNER_BUFFER_H

#include <cstddef>
#include <cstdint>

namespace pto::targets {

/// Where in its pages a buffer starts.
enum class Placement {
  Aligned, ///< At a page: the first byte before it faults.
  Odd,     ///< One element after a page: aligned to its element only.
  Flush    ///< The first byte after it faults.
};

class GuardedBuffer {
public:
  GuardedBuffer() = default;
  GuardedBuffer(size_t bytes, size_t elementBytes, Placement placement);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer &&other) noexcept;
  GuardedBuffer &operator=(GuardedBuffer &&other) noexcept;

  /// False when there was no memory.
  explicit operator bool() const { return base != nullptr; }
  char *data() const { return start; }
  size_t size() const { return bytes; }

  /// True while nothing has been written outside of [data, data + size).
  bool guardsIntact() const;

private:
  char *base = nullptr; ///< Of the mapping, guard pages included.
  size_t mapped = 0;
  char *start = nullptr;
  size_t bytes = 0;
};

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_BUFFER_H
