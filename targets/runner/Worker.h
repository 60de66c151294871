//===- Worker.h - One worker process, seen by its manager -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What runs in a worker may crash, hang, print, or allocate without end; here
// that becomes a value. A worker is its own process group, dies with its
// manager, and is replaced when it fails. WorkerPool (Pool.h) drives them;
// Serve.h is the other end.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_WORKER_H
#define PTO_TARGETS_RUNNER_WORKER_H

#include "targets/runner/Channel.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <chrono>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace pto::targets {

/// How to start a worker.
struct WorkerCommand {
  std::string program;                ///< Path of the executable.
  std::vector<std::string> arguments; ///< Without the program's name.
  int64_t memoryBytes = 0;            ///< Address space limit, 0 for none.
  /// A worker is replaced after so many requests, because compilers keep
  /// memory. 0: never.
  unsigned requestsPerLife = 0;
};

/// The path of a tool beside the running executable.
std::string siblingTool(llvm::StringRef name);

/// How a request ended, as far as the process tells. What the answer means is
/// in its body.
enum class ReplyStatus {
  Answered,    ///< The worker answered.
  TimedOut,    ///< No answer within the limit; the worker was killed.
  Crashed,     ///< The worker died.
  OutOfMemory, ///< The worker ran into its memory limit.
  Cancelled,   ///< The manager is stopping.
  Unavailable, ///< No worker could be started.
};

struct Reply {
  ReplyStatus status = ReplyStatus::Unavailable;
  /// What happened, for people; empty when answered.
  std::string message;
  llvm::json::Object body;
  double seconds = 0;
};

/// The process and its pipes. States: dead -> starting -> idle <-> busy.
class Worker {
public:
  using Clock = std::chrono::steady_clock;
  enum class State { Dead, Starting, Idle, Busy };

  Worker() = default;
  ~Worker() { kill(); }
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  /// Forks and executes; ready once the worker has said so.
  llvm::Error start(const WorkerCommand &command);
  /// Sends a request to an idle worker. A worker that got too little of a busy
  /// machine's time for `limit` is given up to kPatience times as long.
  bool request(llvm::json::Object message, std::chrono::milliseconds limit);
  /// Kills the whole process group and reaps it.
  void kill();

  /// Takes in what the worker has written. Gives the reply when the request
  /// has ended, be it by an answer, by death or by its time limit.
  std::optional<Reply> advance();

  State state() const { return current; }
  unsigned requestsServed() const { return served; }
  int channelFd() const { return channel.descriptor(); }
  int outputFd() const { return output; }
  Clock::time_point deadline() const { return limit; }
  pid_t processId() const { return pid; }

  static constexpr int kPatience = 3;

private:
  void drainOutput();
  Reply died();
  bool mayGoOn();

  State current = State::Dead;
  pid_t pid = -1;
  int output = -1; ///< Read end of the worker's stdout and stderr.
  Channel channel;
  int64_t sequence = 0;
  unsigned served = 0;
  Clock::time_point started, limit;
  std::chrono::milliseconds allowed{0};
  double cpuAtStart = 0; ///< Seconds of processor time.
  std::string phase;     ///< What the worker said that it was doing.
  std::string tail;      ///< The end of what it printed.
};

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_WORKER_H
