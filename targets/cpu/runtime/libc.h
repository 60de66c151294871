/*===- libc.h - The part of libc that artifacts use --------------*- C -*-===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Declared by hand, so that the runtime compiles for every target with no
 * sysroot, and so that this list is the whole dependency of an artifact:
 * LibcSymbols.def beside this folder has it, too, and Link.cpp resolves nothing
 * else (besides libm's functions).
 *
 *===----------------------------------------------------------------------===*/
#ifndef PTO_TARGETS_CPU_RUNTIME_LIBC_H
#define PTO_TARGETS_CPU_RUNTIME_LIBC_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

void *aligned_alloc(size_t alignment, size_t size);
void *calloc(size_t count, size_t size);
void free(void *p);
void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memset(void *p, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int vsnprintf(char *restrict to, size_t n, const char *restrict format,
              va_list args);

int open(const char *path, int flags, ...);
int close(int fd);
int64_t lseek(int fd, int64_t offset, int whence);
ptrdiff_t read(int fd, void *to, size_t n);
void *mmap(void *at, size_t n, int prot, int flags, int fd, int64_t offset);
int munmap(void *p, size_t n);
int madvise(void *p, size_t n, int advice);
long syscall(long number, ...);
int sched_yield(void);
int sched_getaffinity(int pid, size_t size, void *mask);
unsigned long getauxval(unsigned long type);

typedef struct libc_timespec {
  int64_t tv_sec;
  int64_t tv_nsec;
} libc_timespec;
int clock_gettime(int clock, libc_timespec *time);

typedef struct libc_dl_info {
  const char *dli_fname;
  void *dli_fbase;
  const char *dli_sname;
  void *dli_saddr;
} libc_dl_info;
int dladdr(const void *address, libc_dl_info *info);

typedef unsigned long libc_pthread;
int pthread_create(libc_pthread *thread, const void *attributes,
                   void *(*start)(void *), void *arg);
int pthread_join(libc_pthread thread, void **result);
typedef struct libc_sigset {
  unsigned long bits[16];
} libc_sigset;
int pthread_sigmask(int how, const libc_sigset *set, libc_sigset *old);

/* Linux, the same on x86-64 and AArch64. */
enum {
  LIBC_O_RDONLY = 0,
  LIBC_SEEK_END = 2,
  LIBC_O_CLOEXEC = 02000000,
  LIBC_PROT_READ = 1,
  LIBC_MAP_SHARED = 1,
  LIBC_MADV_HUGEPAGE = 14,
  LIBC_CLOCK_MONOTONIC = 1,
  LIBC_FUTEX_WAIT_PRIVATE = 128,
  LIBC_FUTEX_WAKE_PRIVATE = 129,
  LIBC_SIG_SETMASK = 2,
  LIBC_AT_HWCAP = 16,
  LIBC_AT_HWCAP2 = 26
};
#define LIBC_MAP_FAILED ((void *)-1)

#if defined(__x86_64__)
enum { LIBC_SYS_FUTEX = 202 };
#elif defined(__aarch64__)
enum { LIBC_SYS_FUTEX = 98 };
#else
#error "the runtime does not know this architecture"
#endif

#endif
