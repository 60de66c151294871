//===- Rng.h - Random numbers that are the same everywhere ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The standard library's distributions differ between libraries, and a search
// must repeat under its seed. Also a random order of huge ranges without
// storing it.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SEARCH_RNG_H
#define PTO_SEARCH_RNG_H

#include <cstdint>

namespace pto::search {

/// SplitMix64.
class Rng {
public:
  explicit Rng(uint64_t seed) : state(seed) {}

  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15); }
  /// In [0, n), n > 0. The bias of the multiplication is below n / 2^64.
  uint64_t below(uint64_t n) {
    return static_cast<unsigned __int128>(next()) * n >> 64;
  }
  /// In [0, 1).
  double uniform() { return (next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return uniform() < probability; }

  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

private:
  uint64_t state;
};

/// A random order of [0, size): a Feistel network on the next even number of
/// bits, applied again while the result is outside the range.
class Permutation {
public:
  Permutation(uint64_t size, uint64_t seed) : size(size), seed(seed) {
    while (halfBits < 31 && (uint64_t(1) << (2 * halfBits)) < size)
      ++halfBits;
  }
  /// `index` < size <= 2^62.
  uint64_t operator()(uint64_t index) const {
    do
      index = scramble(index);
    while (index >= size);
    return index;
  }

private:
  uint64_t scramble(uint64_t x) const {
    uint64_t mask = (uint64_t(1) << halfBits) - 1;
    uint64_t left = x >> halfBits, right = x & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      uint64_t f = Rng::mix(right ^ Rng::mix(seed + round)) & mask;
      uint64_t next = left ^ f;
      left = right;
      right = next;
    }
    return left << halfBits | right;
  }

  uint64_t size, seed;
  unsigned halfBits = 1;
};

} // namespace pto::search

#endif // PTO_SEARCH_RNG_H
