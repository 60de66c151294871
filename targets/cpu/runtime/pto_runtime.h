/*===- pto_runtime.h - What generated kernels ask of their caller --*- C -*-===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A kernel is `void NAME(void *const *args, const int64_t *dims,
 * pto_runtime *runtime)` (lowering/README.md). It reaches the outside through
 * this struct alone. Generated code knows the offset of `parallel_for` (0):
 * keep it first.
 *
 *===----------------------------------------------------------------------===*/
#ifndef PTO_TARGETS_CPU_RUNTIME_PTO_RUNTIME_H
#define PTO_TARGETS_CPU_RUNTIME_PTO_RUNTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One iteration of a parallel loop. */
typedef void (*pto_body)(void *arg, int64_t i);

typedef struct pto_runtime pto_runtime;
struct pto_runtime {
  /* Calls body(arg, i) once for each i in [0, n), in any order, perhaps at
   * once, and returns when all have returned. Never called from a body. */
  void (*parallel_for)(pto_runtime *runtime, int64_t n, pto_body body,
                       void *arg); /* offset 0 */
  /* Zero before a run. A kernel that meets data it cannot work with (an index
   * out of bounds) stores one of pto_fault here, from any thread, does not
   * touch memory out of bounds, and goes on; its caller reports it. */
  volatile int32_t fault; /* offset 8 */
};

enum pto_fault { PTO_FAULT_NONE = 0, PTO_FAULT_INDEX_OUT_OF_BOUNDS = 1 };

#ifdef __cplusplus
}
#endif
#endif
