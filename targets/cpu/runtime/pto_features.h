/*===- pto_features.h - CPU features that generated code may use -*- C -*-===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One table for three users: the fingerprint of a target, the mask of needed
 * features that the compiler writes into an artifact, and the artifact's check
 * in create(). Rows are appended only, for a row's position is its bit in the
 * mask. Features that LLVM never emits on its own for numeric code (key
 * locker, cache hints, ...) are left out: an artifact must not be refused for
 * lack of one.
 *
 *===----------------------------------------------------------------------===*/
#ifndef PTO_TARGETS_CPU_RUNTIME_PTO_FEATURES_H
#define PTO_TARGETS_CPU_RUNTIME_PTO_FEATURES_H

/* X(LLVM's name, CPUID leaf, subleaf, register (0 eax .. 3 edx), bit,
 *   XCR0 bits that the OS must have enabled) */
#define PTO_X86_FEATURES(X)                                                    \
  X("sse3", 1, 0, 2, 0, 0x0)                                                   \
  X("ssse3", 1, 0, 2, 9, 0x0)                                                  \
  X("sse4.1", 1, 0, 2, 19, 0x0)                                                \
  X("sse4.2", 1, 0, 2, 20, 0x0)                                                \
  X("popcnt", 1, 0, 2, 23, 0x0)                                                \
  X("movbe", 1, 0, 2, 22, 0x0)                                                 \
  X("avx", 1, 0, 2, 28, 0x6)                                                   \
  X("f16c", 1, 0, 2, 29, 0x6)                                                  \
  X("fma", 1, 0, 2, 12, 0x6)                                                   \
  X("avx2", 7, 0, 1, 5, 0x6)                                                   \
  X("bmi", 7, 0, 1, 3, 0x0)                                                    \
  X("bmi2", 7, 0, 1, 8, 0x0)                                                   \
  X("lzcnt", 0x80000001, 0, 2, 5, 0x0)                                         \
  X("adx", 7, 0, 1, 19, 0x0)                                                   \
  X("gfni", 7, 0, 2, 8, 0x0)                                                   \
  X("avx512f", 7, 0, 1, 16, 0xe6)                                              \
  X("avx512dq", 7, 0, 1, 17, 0xe6)                                             \
  X("avx512ifma", 7, 0, 1, 21, 0xe6)                                           \
  X("avx512cd", 7, 0, 1, 28, 0xe6)                                             \
  X("avx512bw", 7, 0, 1, 30, 0xe6)                                             \
  X("avx512vl", 7, 0, 1, 31, 0xe6)                                             \
  X("avx512vbmi", 7, 0, 2, 1, 0xe6)                                            \
  X("avx512vbmi2", 7, 0, 2, 6, 0xe6)                                           \
  X("avx512vnni", 7, 0, 2, 11, 0xe6)                                           \
  X("avx512bitalg", 7, 0, 2, 12, 0xe6)                                         \
  X("avx512vpopcntdq", 7, 0, 2, 14, 0xe6)                                      \
  X("avx512fp16", 7, 0, 3, 23, 0xe6)                                           \
  X("avx512bf16", 7, 1, 0, 5, 0xe6)                                            \
  X("avxvnni", 7, 1, 0, 4, 0x6)                                                \
  X("avxifma", 7, 1, 0, 23, 0x6)                                               \
  X("avxvnniint8", 7, 1, 3, 4, 0x6)                                            \
  X("avxneconvert", 7, 1, 3, 5, 0x6)                                           \
  X("avxvnniint16", 7, 1, 3, 10, 0x6)                                          \
  X("fma4", 0x80000001, 0, 2, 16, 0x6)                                         \
  X("xop", 0x80000001, 0, 2, 11, 0x6)                                          \
  X("tbm", 0x80000001, 0, 2, 21, 0x0)                                          \
  X("sse4a", 0x80000001, 0, 2, 6, 0x0)

/* X(LLVM's name, word: 0 AT_HWCAP, 1 AT_HWCAP2; bit in it) */
#define PTO_AARCH64_FEATURES(X)                                                \
  X("neon", 0, 1)                                                              \
  X("lse", 0, 8)                                                               \
  X("fullfp16", 0, 10)                                                         \
  X("rdm", 0, 12)                                                              \
  X("dotprod", 0, 20)                                                          \
  X("fp16fml", 0, 23)                                                          \
  X("sve", 0, 22)                                                              \
  X("sve2", 1, 1)                                                              \
  X("i8mm", 1, 13)                                                             \
  X("bf16", 1, 14)

#endif
