//===- TimingLock.cpp -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/TimingLock.h"
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

using namespace pto::targets;

static std::string defaultPath() {
  if (const char *dir = std::getenv("XDG_RUNTIME_DIR"))
    if (*dir && ::access(dir, W_OK) == 0)
      return std::string(dir) + "/pto-timing.lock";
  return "/tmp/pto-timing-" + std::to_string(::getuid()) + ".lock";
}

TimingLock::TimingLock() : TimingLock(defaultPath()) {}

TimingLock::TimingLock(const std::string &path)
    // O_NOFOLLOW: /tmp is everybody's.
    : fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                0600)) {}

TimingLock::~TimingLock() {
  if (fd >= 0)
    ::close(fd);
}

bool TimingLock::acquire(Mode mode, const std::function<bool()> &stop) {
  if (fd < 0)
    return !stop || !stop();
  int operation = mode == Mode::Measure ? LOCK_EX : LOCK_SH;
  while (true) {
    if (stop && stop())
      return false;
    if (::flock(fd, operation | LOCK_NB) == 0)
      return true;
    if (errno != EWOULDBLOCK && errno != EINTR)
      return true; // A file system without locks.
    ::poll(nullptr, 0, 5);
  }
}

void TimingLock::release() {
  if (fd >= 0)
    ::flock(fd, LOCK_UN);
}
