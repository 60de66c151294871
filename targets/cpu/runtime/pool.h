/*===- pool.h - A small thread pool for parallel loops -----------*- C -*-===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Fork-join with a shared counter: whoever is free takes the next iteration,
 * the caller included. A loop never waits for a sleeping worker: when the
 * caller has done all iterations itself, it returns. Idle workers spin for
 * some microseconds (a model is a chain of short loops), then sleep.
 *
 *===----------------------------------------------------------------------===*/
#ifndef PTO_TARGETS_CPU_RUNTIME_POOL_H
#define PTO_TARGETS_CPU_RUNTIME_POOL_H

#include "pto_runtime.h"

typedef struct pto_pool pto_pool;

/* A pool of `threads`, the caller's included; they start with the first loop.
 * Null if memory is short. */
pto_pool *pto_pool_create(int32_t threads);

/* Runs body(arg, i) for i in [0, n). One caller at a time. */
void pto_pool_run(pto_pool *pool, int64_t n, pto_body body, void *arg);

/* While held, workers wait for the next loop without sleeping: a model's loops
 * follow each other within microseconds, and waking takes longer than that. */
void pto_pool_hold(pto_pool *pool, int32_t held);

void pto_pool_destroy(pto_pool *pool);

#endif
