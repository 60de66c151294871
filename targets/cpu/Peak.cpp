//===- Peak.cpp -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/cpu/Peak.h"
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

using namespace pto::targets;

/// Independent accumulators: FMA latency (4 to 5 cycles) times two units needs
/// 10; with 12 all ISAs have registers enough.
static constexpr int kAccumulators = 12;

static double seconds() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

// Each slice runs `rounds` times kAccumulators FMAs and returns the number of
// floating-point operations of one round. The barrier keeps the compiler from
// seeing through the loop.
using Slice = double (*)(int64_t rounds);

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double sliceAvx512(int64_t rounds) {
  __m512 acc[kAccumulators];
  __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (__m512 &x : acc)
    x = _mm512_set1_ps(1.0f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma clang loop unroll(full)
    for (int i = 0; i < kAccumulators; ++i)
      acc[i] = _mm512_fmadd_ps(acc[i], a, b);
    asm volatile("" : "+v"(a), "+v"(b));
  }
  for (__m512 &x : acc)
    asm volatile("" ::"v"(x));
  return kAccumulators * 16 * 2;
}

__attribute__((target("avx2,fma"))) static double sliceAvx2(int64_t rounds) {
  __m256 acc[kAccumulators];
  __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (__m256 &x : acc)
    x = _mm256_set1_ps(1.0f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma clang loop unroll(full)
    for (int i = 0; i < kAccumulators; ++i)
      acc[i] = _mm256_fmadd_ps(acc[i], a, b);
    asm volatile("" : "+x"(a), "+x"(b));
  }
  for (__m256 &x : acc)
    asm volatile("" ::"x"(x));
  return kAccumulators * 8 * 2;
}
#elif defined(__aarch64__)
static double sliceNeon(int64_t rounds) {
  float32x4_t acc[kAccumulators];
  float32x4_t a = vdupq_n_f32(0.999f), b = vdupq_n_f32(0.001f);
  for (float32x4_t &x : acc)
    x = vdupq_n_f32(1.0f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma clang loop unroll(full)
    for (int i = 0; i < kAccumulators; ++i)
      acc[i] = vfmaq_f32(b, acc[i], a);
    asm volatile("" : "+w"(a), "+w"(b));
  }
  for (float32x4_t &x : acc)
    asm volatile("" ::"w"(x));
  return kAccumulators * 4 * 2;
}
#endif

static double sliceGeneric(int64_t rounds) {
  float acc[kAccumulators];
  std::fill(acc, acc + kAccumulators, 1.0f);
  float a = 0.999f, b = 0.001f;
  for (int64_t r = 0; r < rounds; ++r) {
    for (float &x : acc)
      x = x * a + b;
    asm volatile("" : "+m"(a), "+m"(b));
  }
  for (float &x : acc)
    asm volatile("" ::"m"(x));
  return kAccumulators * 2;
}

namespace {

struct Isa {
  const char *name;
  Slice slice;
  bool present;
};

} // namespace

/// The widest first; the last is always there.
static std::vector<Isa> isas() {
  std::vector<Isa> all;
#if defined(__x86_64__)
  __builtin_cpu_init();
  all.push_back(
      {"avx512", sliceAvx512, bool(__builtin_cpu_supports("avx512f"))});
  all.push_back(
      {"avx2", sliceAvx2,
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")});
#elif defined(__aarch64__)
  all.push_back({"neon", sliceNeon, true});
#endif
  all.push_back({"generic", sliceGeneric, true});
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const Isa &isa) { return !isa.present; }),
            all.end());
  return all;
}

const char *pto::targets::fmaIsa() { return isas().front().name; }

static Slice sliceFor(const char *name) {
  std::vector<Isa> all = isas();
  for (const Isa &isa : all)
    if (std::strcmp(isa.name, name) == 0)
      return isa.slice;
  return all.front().slice;
}

/// Runs `body(thread)` on all threads in step, `slices` times; gives the
/// shortest wall time of a slice.
template <typename Body>
static double bestSliceSeconds(unsigned threads, int slices, Body body) {
  std::atomic<unsigned> arrived{0};
  double best = 1e30;
  auto barrier = [&](unsigned &round) {
    unsigned target = ++round * threads;
    arrived.fetch_add(1, std::memory_order_acq_rel);
    while (arrived.load(std::memory_order_acquire) < target)
      std::this_thread::yield();
  };
  auto run = [&](unsigned thread) {
    unsigned round = 0;
    for (int s = 0; s < slices; ++s) {
      barrier(round);
      double start = seconds();
      body(thread);
      barrier(round);
      if (thread == 0)
        best = std::min(best, seconds() - start);
    }
  };
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t)
    others.emplace_back(run, t);
  run(0);
  for (std::thread &t : others)
    t.join();
  return best;
}

double pto::targets::measureFmaPeak(unsigned threads, const char *isa) {
  Slice slice = sliceFor(isa);
  // A slice of about a millisecond: short enough to fall between interruptions.
  int64_t rounds = 1000;
  double flops = slice(rounds), once = 0;
  while (once < 1e-3) {
    rounds *= 2;
    double start = seconds();
    flops = slice(rounds);
    once = seconds() - start;
  }
  double best =
      bestSliceSeconds(threads, 150, [&](unsigned) { slice(rounds); });
  return flops * double(rounds) * threads / best / 1e9;
}

double pto::targets::measureReadBandwidth(unsigned threads) {
  constexpr size_t kBytes = 256 << 20;
  size_t words = kBytes / sizeof(uint64_t);
  std::unique_ptr<uint64_t[]> memory(new uint64_t[words]);
  std::memset(memory.get(), 1, kBytes);
  size_t share = words / threads / 8 * 8;
  std::atomic<uint64_t> sink{0};
  double best = bestSliceSeconds(threads, 4, [&](unsigned thread) {
    const uint64_t *p = memory.get() + thread * share;
    uint64_t sum[8] = {};
    for (size_t i = 0; i < share; i += 8)
      for (int k = 0; k < 8; ++k)
        sum[k] += p[i + k];
    uint64_t total = 0;
    for (uint64_t s : sum)
      total += s;
    sink.fetch_add(total, std::memory_order_relaxed);
  });
  return double(share * threads * sizeof(uint64_t)) / best / 1e9;
}
