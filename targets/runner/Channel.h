//===- Channel.h - JSON lines over a file descriptor ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Managers and workers exchange one JSON object per line over a descriptor of
// their own, never over stdout: schedules and kernels may print.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_CHANNEL_H
#define PTO_TARGETS_RUNNER_CHANNEL_H

#include "llvm/Support/JSON.h"
#include <optional>
#include <string>

namespace pto::targets {

class Channel {
public:
  /// Does not own `fd`.
  explicit Channel(int fd = -1) : fd(fd) {}

  /// Writes one line; waits while the peer's buffer is full, at most
  /// `timeoutMs` (-1: for ever). False when the peer is gone or too slow.
  bool send(const llvm::json::Object &message, int timeoutMs = -1);

  /// Reads what is there without waiting. False when the peer is gone.
  bool fill();

  /// The next complete line that fill() has read. An unparsable line gives an
  /// empty object.
  std::optional<llvm::json::Object> next();

  /// Waits for the next line; none when the peer is gone.
  std::optional<llvm::json::Object> receive();

  int descriptor() const { return fd; }

private:
  int fd;
  std::string buffer;
  size_t scanned = 0; ///< buffer[0, scanned) holds no newline.
};

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_CHANNEL_H
