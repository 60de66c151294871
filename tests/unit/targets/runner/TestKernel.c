/*===- TestKernel.c - out[i] = sum_k x[i][k] * w[k], right or wrong -------===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * 37 rows, 24 columns. Arguments: x, w, out; packed: x, packed w, out.
 *
 *===----------------------------------------------------------------------===*/
#include "targets/cpu/runtime/pto_runtime.h"
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { ROWS = 37, COLUMNS = 24 };

typedef struct {
  const float *x, *w;
  float *out;
} closure;

static void row(void *arg, int64_t i) {
  closure *c = (closure *)arg;
  float sum = 0;
  for (int k = 0; k < COLUMNS; ++k)
    sum += c->x[i * COLUMNS + k] * c->w[k];
  c->out[i] = sum;
}

void kernel(void *const *args, const int64_t *dims, pto_runtime *runtime) {
  closure c = {(const float *)args[0], (const float *)args[1],
               (float *)args[2]};
  int64_t rows = ROWS;
#if defined(VARIANT_HALF)
  rows = ROWS / 2;
#elif defined(VARIANT_OVERRUN)
  c.out[ROWS] = 1;
#elif defined(VARIANT_UNDERRUN)
  c.out[-1] = 1;
#elif defined(VARIANT_INPUT)
  ((float *)args[0])[3] += 1;
#elif defined(VARIANT_SLOW)
  usleep(2000);
#elif defined(VARIANT_MODE) && defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(VARIANT_CRASH)
  *(volatile int *)16 = 1;
#elif defined(VARIANT_PACKED)
  float unpacked[COLUMNS];
  for (int k = 0; k < COLUMNS; ++k)
    unpacked[k] = c.w[COLUMNS - 1 - k];
  c.w = unpacked;
#endif
  runtime->parallel_for(runtime, rows, row, &c);
}

/* Reverses w. */
void kernel_prepack(void *const *args, const int64_t *dims,
                    pto_runtime *runtime) {
  const float *w = (const float *)args[0];
  float *packed = (float *)args[1];
  for (int k = 0; k < COLUMNS; ++k)
    packed[k] = w[COLUMNS - 1 - k];
}
