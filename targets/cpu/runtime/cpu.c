/*===- cpu.c - Does this CPU have what the code needs? --------------------===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *===----------------------------------------------------------------------===*/

#include "cpu.h"
#include "libc.h"
#include "pto_features.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)

typedef struct {
  const char *name;
  uint32_t leaf, subleaf, reg, bit, xcr0;
} feature;

static const feature features[] = {
#define ROW(name, leaf, subleaf, reg, bit, xcr0)                               \
  {name, leaf, subleaf, reg, bit, xcr0},
    PTO_X86_FEATURES(ROW)
#undef ROW
};

static uint32_t enabled_state(void) {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) /* OSXSAVE */
    return 0;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return a;
}

static int has_feature(const feature *f, uint32_t state) {
  uint32_t r[4];
  if (!__get_cpuid_count(f->leaf, f->subleaf, &r[0], &r[1], &r[2], &r[3]))
    return 0;
  return (r[f->reg] >> f->bit & 1) && (state & f->xcr0) == f->xcr0;
}

uint64_t pto_missing_features(uint64_t needed) {
  uint64_t missing = 0;
  uint32_t state = enabled_state();
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); ++i)
    if ((needed >> i & 1) && !has_feature(&features[i], state))
      missing |= (uint64_t)1 << i;
  return missing;
}

#else

typedef struct {
  const char *name;
  uint32_t word, bit;
} feature;

static const feature features[] = {
#define ROW(name, word, bit) {name, word, bit},
    PTO_AARCH64_FEATURES(ROW)
#undef ROW
};

uint64_t pto_missing_features(uint64_t needed) {
  unsigned long words[2] = {getauxval(LIBC_AT_HWCAP),
                            getauxval(LIBC_AT_HWCAP2)};
  uint64_t missing = 0;
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); ++i)
    if ((needed >> i & 1) && !(words[features[i].word] >> features[i].bit & 1))
      missing |= (uint64_t)1 << i;
  return missing;
}

#endif

void pto_feature_names(uint64_t mask, char *text, size_t size) {
  size_t at = 0;
  text[0] = 0;
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); ++i) {
    if (!(mask >> i & 1))
      continue;
    size_t length = strlen(features[i].name);
    if (at + length + 2 > size)
      return;
    if (at)
      text[at++] = ' ';
    memcpy(text + at, features[i].name, length + 1);
    at += length;
  }
}

enum { MASK_BYTES = 1024, MAX_CPUS = MASK_BYTES * 8 };

static int read_text(const char *path, char *text, size_t size) {
  int fd = open(path, LIBC_O_RDONLY | LIBC_O_CLOEXEC);
  if (fd < 0)
    return 0;
  ptrdiff_t n = read(fd, text, size - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  return n > 0;
}

static const char *parse_number(const char *p, int64_t *value) {
  *value = 0;
  if (*p < '0' || *p > '9')
    return (void *)0;
  while (*p >= '0' && *p <= '9')
    *value = *value * 10 + (*p++ - '0');
  return p;
}

/* Is a hyper-thread of lower number on the same core allowed, too? */
static int counted_already(const unsigned char *allowed, int cpu) {
  char path[96] = "/sys/devices/system/cpu/cpu", text[256];
  char digits[12];
  size_t n = 0, at = strlen(path);
  int rest = cpu;
  do
    digits[n++] = (char)('0' + rest % 10);
  while (rest /= 10);
  while (n)
    path[at++] = digits[--n];
  memcpy(path + at, "/topology/thread_siblings_list",
         sizeof("/topology/thread_siblings_list"));
  if (!read_text(path, text, sizeof(text)))
    return 0;
  for (const char *p = text; p && *p;) {
    int64_t first, last;
    if (!(p = parse_number(p, &first)))
      return 0;
    last = first;
    if (*p == '-' && !(p = parse_number(p + 1, &last)))
      return 0;
    for (int64_t i = first; i <= last && i < cpu; ++i)
      if (allowed[i / 8] >> (i % 8) & 1)
        return 1;
    if (*p != ',')
      break;
    ++p;
  }
  return 0;
}

int32_t pto_available_cores(void) {
  /* The kernel's masks are little-endian words: bytes work on these CPUs. */
  unsigned char allowed[MASK_BYTES];
  memset(allowed, 0, sizeof(allowed));
  if (sched_getaffinity(0, sizeof(allowed), allowed) != 0)
    return 1;
  int32_t cores = 0;
  for (int cpu = 0; cpu < MAX_CPUS; ++cpu)
    if ((allowed[cpu / 8] >> (cpu % 8) & 1) && !counted_already(allowed, cpu))
      ++cores;
  char text[64];
  int64_t quota, period;
  if (read_text("/sys/fs/cgroup/cpu.max", text, sizeof(text))) {
    const char *p = parse_number(text, &quota);
    if (p && *p == ' ' && parse_number(p + 1, &period) && period > 0) {
      int64_t limit = (quota + period - 1) / period;
      if (limit >= 1 && limit < cores)
        cores = (int32_t)limit;
    }
  }
  return cores < 1 ? 1 : cores;
}
