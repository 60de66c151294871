/*===- pool.c - A small thread pool for parallel loops --------------------===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The one invariant: `ticket` holds (round, next iteration) in one word. The
 * fields of a loop are written only while the round is odd (closed), and an
 * iteration is taken by a compare-and-swap on the whole word. So a worker that
 * read the fields of a loop that has ended in the meantime cannot take an
 * iteration: its compare fails.
 *
 *===----------------------------------------------------------------------===*/

#include "pool.h"
#include "libc.h"
#include <stdatomic.h>
#include <stdbool.h>

enum {
  /* About 30 us at 3 GHz and 40 cycles a pause; futex wake-up costs about as
   * much. */
  SPINS = 2000,
  /* While a run goes on: a few milliseconds, longer than any kernel that one
   * thread should do alone. */
  SPINS_HELD = 200000,
  CACHE_LINE = 64
};

/* More iterations than fit the ticket run as several loops. */
static const int64_t MAX_ITERATIONS = (int64_t)1 << 30;

struct pto_pool {
  /* Round in the upper half, odd: closed; next iteration in the lower. */
  _Alignas(CACHE_LINE) _Atomic uint64_t ticket;
  _Atomic(pto_body) body;
  _Atomic(void *) arg;
  _Atomic int64_t count;

  /* Iterations not finished yet. */
  _Alignas(CACHE_LINE) _Atomic int64_t pending;
  _Atomic int32_t callerSleeps;

  /* Sleepers wait for `wake` to change. */
  _Alignas(CACHE_LINE) _Atomic int32_t wake;
  _Atomic int32_t sleepers;
  _Atomic int32_t stop;
  _Atomic int32_t held;

  int32_t threads;
  int32_t started; /* workers that exist */
  bool tried;      /* to start them */
  libc_pthread *workers;
};

static inline void pause_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

static void futex_wait(_Atomic int32_t *word, int32_t expected) {
  syscall(LIBC_SYS_FUTEX, word, LIBC_FUTEX_WAIT_PRIVATE, expected, (void *)0,
          (void *)0, 0);
}

static void futex_wake(_Atomic int32_t *word, int32_t count) {
  syscall(LIBC_SYS_FUTEX, word, LIBC_FUTEX_WAKE_PRIVATE, count, (void *)0,
          (void *)0, 0);
}

/* Takes iterations of the open loop until none is left. */
static void take_iterations(pto_pool *pool) {
  int64_t done = 0;
  uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
  for (;;) {
    if ((ticket >> 32) & 1)
      break;
    /* Acquire pairs with the release below: whoever reads a field of the next
     * loop also sees that this one is closed, and its compare fails. */
    pto_body body = atomic_load_explicit(&pool->body, memory_order_acquire);
    void *arg = atomic_load_explicit(&pool->arg, memory_order_acquire);
    int64_t count = atomic_load_explicit(&pool->count, memory_order_acquire);
    int64_t index = (int64_t)(ticket & 0xffffffffu);
    if (index >= count)
      break;
    if (!atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket,
                                               ticket + 1, memory_order_acq_rel,
                                               memory_order_acquire))
      continue;
    body(arg, index);
    ++done;
    ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
  }
  /* The loop cannot end, nor another begin, before `done` is handed in; so all
   * of it belongs to one loop. */
  if (done && atomic_fetch_sub_explicit(&pool->pending, done,
                                        memory_order_seq_cst) == done)
    if (atomic_exchange(&pool->callerSleeps, 0))
      futex_wake(&pool->callerSleeps, 1);
}

static bool has_work(pto_pool *pool) {
  uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_seq_cst);
  return !((ticket >> 32) & 1) &&
         (int64_t)(ticket & 0xffffffffu) <
             atomic_load_explicit(&pool->count, memory_order_relaxed);
}

static void *worker_main(void *arg) {
  pto_pool *pool = arg;
  /* Signals are the application's affair: its own threads take them. */
  libc_sigset all;
  memset(&all, 0xff, sizeof(all));
  pthread_sigmask(LIBC_SIG_SETMASK, &all, (void *)0);
  while (!atomic_load_explicit(&pool->stop, memory_order_acquire)) {
    take_iterations(pool);
    for (int spin = 0; !has_work(pool); ++spin) {
      if (atomic_load_explicit(&pool->stop, memory_order_relaxed))
        return (void *)0;
      bool held = atomic_load_explicit(&pool->held, memory_order_relaxed);
      if (spin >= (held ? SPINS_HELD : SPINS))
        break;
      pause_cpu();
    }
    if (has_work(pool))
      continue;
    int32_t wake = atomic_load(&pool->wake);
    atomic_fetch_add(&pool->sleepers, 1);
    /* A loop opened before `sleepers` rose is seen here; one opened after it
     * changes `wake`. */
    if (!has_work(pool) && !atomic_load(&pool->stop))
      futex_wait(&pool->wake, wake);
    atomic_fetch_sub(&pool->sleepers, 1);
  }
  return (void *)0;
}

static void start_workers(pto_pool *pool) {
  pool->tried = true;
  while (pool->started < pool->threads - 1) {
    /* Where the system refuses a thread, fewer do the same work. */
    if (pthread_create(&pool->workers[pool->started], (void *)0, worker_main,
                       pool) != 0)
      break;
    ++pool->started;
  }
}

static void run_open_loop(pto_pool *pool, int64_t n, pto_body body, void *arg) {
  uint64_t round = atomic_load_explicit(&pool->ticket, memory_order_relaxed) >>
                   32; /* odd: closed by us, or from the start */
  atomic_store_explicit(&pool->body, body, memory_order_release);
  atomic_store_explicit(&pool->arg, arg, memory_order_release);
  atomic_store_explicit(&pool->count, n, memory_order_release);
  atomic_store_explicit(&pool->pending, n, memory_order_relaxed);
  atomic_store_explicit(&pool->ticket, (uint64_t)(uint32_t)(round + 1) << 32,
                        memory_order_seq_cst);
  int32_t sleepers = atomic_load(&pool->sleepers);
  if (sleepers > 0) {
    atomic_fetch_add(&pool->wake, 1);
    futex_wake(&pool->wake, n - 1 < sleepers ? (int32_t)(n - 1) : sleepers);
  }
  take_iterations(pool);

  for (int spin = 0;
       atomic_load_explicit(&pool->pending, memory_order_acquire) != 0;) {
    if (++spin < SPINS) {
      pause_cpu();
      continue;
    }
    /* A worker was descheduled in mid-iteration: leave it the core. */
    atomic_store(&pool->callerSleeps, 1);
    if (atomic_load(&pool->pending) != 0)
      futex_wait(&pool->callerSleeps, 1);
    atomic_store(&pool->callerSleeps, 0);
  }
  atomic_store_explicit(&pool->ticket, (uint64_t)(uint32_t)(round + 2) << 32,
                        memory_order_release);
}

void pto_pool_run(pto_pool *pool, int64_t n, pto_body body, void *arg) {
  if (n == 1 || pool->threads == 1) {
    for (int64_t i = 0; i < n; ++i)
      body(arg, i);
    return;
  }
  if (n <= 0)
    return;
  if (!pool->tried)
    start_workers(pool);
  if (n > MAX_ITERATIONS) {
    /* Rare enough that the tail is done by the caller alone. */
    for (int64_t i = MAX_ITERATIONS; i < n; ++i)
      body(arg, i);
    n = MAX_ITERATIONS;
  }
  run_open_loop(pool, n, body, arg);
}

void pto_pool_hold(pto_pool *pool, int32_t held) {
  if (!pool) /* one thread, or the caller's own loops */
    return;
  atomic_store_explicit(&pool->held, held, memory_order_relaxed);
}

pto_pool *pto_pool_create(int32_t threads) {
  pto_pool *pool = aligned_alloc(CACHE_LINE, sizeof(pto_pool));
  if (!pool)
    return pool;
  memset(pool, 0, sizeof(*pool));
  atomic_store(&pool->ticket, (uint64_t)1 << 32);
  pool->threads = threads < 1 ? 1 : threads;
  if (pool->threads > 1) {
    pool->workers = calloc((size_t)pool->threads - 1, sizeof(libc_pthread));
    if (!pool->workers) {
      free(pool);
      return (void *)0;
    }
  }
  return pool;
}

void pto_pool_destroy(pto_pool *pool) {
  if (!pool)
    return;
  atomic_store(&pool->stop, 1);
  atomic_fetch_add(&pool->wake, 1);
  futex_wake(&pool->wake, pool->threads);
  for (int32_t i = 0; i < pool->started; ++i)
    pthread_join(pool->workers[i], (void *)0);
  free(pool->workers);
  free(pool);
}
