//===- Buffer.cpp ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Buffer.h"
#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

using namespace pto::targets;

static constexpr unsigned char kPattern = 0xA5;
/// An overrun by a vector or two lands here before it reaches a guard page
/// when the data ends near its page's end.
static constexpr size_t kBand = 256;

static size_t pageBytes() {
  static const size_t bytes = ::sysconf(_SC_PAGESIZE);
  return bytes;
}

GuardedBuffer::GuardedBuffer(size_t bytes, size_t elementBytes,
                             Placement placement)
    : bytes(bytes) {
  size_t page = pageBytes();
  size_t lead = placement == Placement::Odd ? elementBytes : 0;
  size_t trail = placement == Placement::Flush ? 0 : kBand;
  size_t inner = (lead + bytes + trail + page - 1) / page * page;
  inner = std::max(inner, page);
  mapped = inner + 2 * page;
  void *p = ::mmap(nullptr, mapped, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return;
  if (::mprotect(static_cast<char *>(p) + page, inner,
                 PROT_READ | PROT_WRITE)) {
    ::munmap(p, mapped);
    return;
  }
  base = static_cast<char *>(p);
  char *first = base + page, *last = first + inner;
  start = placement == Placement::Flush ? last - bytes : first + lead;
  std::memset(first, kPattern, start - first);
  std::memset(start + bytes, kPattern, last - (start + bytes));
}

GuardedBuffer::~GuardedBuffer() {
  if (base)
    ::munmap(base, mapped);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer &&o) noexcept
    : base(std::exchange(o.base, nullptr)), mapped(o.mapped), start(o.start),
      bytes(o.bytes) {}

GuardedBuffer &GuardedBuffer::operator=(GuardedBuffer &&o) noexcept {
  std::swap(base, o.base);
  std::swap(mapped, o.mapped);
  std::swap(start, o.start);
  std::swap(bytes, o.bytes);
  return *this;
}

bool GuardedBuffer::guardsIntact() const {
  auto intact = [](const char *from, const char *to) {
    return std::all_of(from, to,
                       [](char c) { return (unsigned char)c == kPattern; });
  };
  size_t page = pageBytes();
  return intact(base + page, start) &&
         intact(start + bytes, base + mapped - page);
}
