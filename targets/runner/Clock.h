//===- Clock.h - Nanoseconds of a clock that nobody sets --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_CLOCK_H
#define PTO_TARGETS_RUNNER_CLOCK_H

#include <ctime>

namespace pto::targets {

inline double nowNs() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_CLOCK_H
