//===- Peak.h - What this machine can do at most ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Measured, never looked up: the roof that reports express times against.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_CPU_PEAK_H
#define PTO_TARGETS_CPU_PEAK_H

namespace pto::targets {

/// The widest instruction set of this CPU: "avx512", "avx2", "neon" or
/// "generic".
const char *fmaIsa();

/// GFLOP/s of f32 fused multiply-adds (two operations each) on registers, with
/// `threads` threads and the instructions of `isa`, a name as above (one that
/// this CPU has; else its widest). Takes about 0.2 s. The best of many short
/// slices: other load on the machine lowers single slices, not the roof.
double measureFmaPeak(unsigned threads, const char *isa = fmaIsa());

/// GB/s of reading memory beyond the caches, with `threads` threads.
double measureReadBandwidth(unsigned threads);

} // namespace pto::targets

#endif // PTO_TARGETS_CPU_PEAK_H
