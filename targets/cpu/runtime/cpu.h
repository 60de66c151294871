/*===- cpu.h - Does this CPU have what the code needs? -----------*- C -*-===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *===----------------------------------------------------------------------===*/
#ifndef PTO_TARGETS_CPU_RUNTIME_CPU_H
#define PTO_TARGETS_CPU_RUNTIME_CPU_H

#include <stddef.h>
#include <stdint.h>

/* The features of `needed` (a mask over pto_features.h) that this CPU, or its
 * operating system, does not offer. */
uint64_t pto_missing_features(uint64_t needed);

/* Writes the names of `features` into text, separated by spaces. */
void pto_feature_names(uint64_t features, char *text, size_t size);

/* Physical cores that this process may use: affinity and cgroup quota count. */
int32_t pto_available_cores(void);

#endif
