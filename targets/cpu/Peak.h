//===- Peak.h - What this machine can do at most ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Measured, never looked up: the roof that reports express times against. The
// instruction set is the widest that this CPU has.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_CPU_PEAK_H
#define PTO_TARGETS_CPU_PEAK_H

namespace pto::targets {

/// GFLOP/s of f32 fused multiply-adds (two operations each) on registers, with
/// `threads` threads. Takes about 0.2 s. The best of many short slices: other
/// load on the machine lowers single slices, not the roof.
double measureFmaPeak(unsigned threads);

/// GB/s of reading memory beyond the caches, with `threads` threads.
double measureReadBandwidth(unsigned threads);

/// "avx512", "avx2", "neon" or "generic".
const char *fmaIsa();

} // namespace pto::targets

#endif // PTO_TARGETS_CPU_PEAK_H
