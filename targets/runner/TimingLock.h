//===- TimingLock.h - One measurement at a time on a machine ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Two tuners on one machine would measure each other. Whoever measures holds a
// lock file exclusively, whoever compiles holds it shared. The kernel drops it
// when its holder dies, however it dies.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_TIMINGLOCK_H
#define PTO_TARGETS_RUNNER_TIMINGLOCK_H

#include <functional>
#include <string>

namespace pto::targets {

class TimingLock {
public:
  enum class Mode { Compile, Measure };

  /// Opens $XDG_RUNTIME_DIR/pto-timing.lock, or /tmp/pto-timing-UID.lock. If it
  /// cannot be opened, everything goes on without a lock.
  TimingLock();
  explicit TimingLock(const std::string &path);
  ~TimingLock();
  TimingLock(const TimingLock &) = delete;
  TimingLock &operator=(const TimingLock &) = delete;

  /// Waits until `stop` is true at most. False when stopped.
  bool acquire(Mode mode, const std::function<bool()> &stop = nullptr);
  void release();
  /// False: no lock file could be opened.
  bool works() const { return fd >= 0; }

private:
  int fd = -1;
};

/// Holds a lock for a scope.
class TimingScope {
public:
  TimingScope(TimingLock &lock, TimingLock::Mode mode,
              const std::function<bool()> &stop = nullptr)
      : lock(lock), held(lock.acquire(mode, stop)) {}
  ~TimingScope() { lock.release(); }
  explicit operator bool() const { return held; }

private:
  TimingLock &lock;
  bool held;
};

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_TIMINGLOCK_H
