//===- Pool.cpp -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Pool.h"
#include <algorithm>
#include <poll.h>

using namespace pto::targets;

/// How often `stop` is looked at when no signal interrupts the wait.
static constexpr int kTickMs = 100;

WorkerPool::WorkerPool(WorkerCommand command, unsigned count,
                       std::function<bool()> stop)
    : command(std::move(command)), stop(std::move(stop)) {
  for (unsigned i = 0; i < std::max(1u, count); ++i)
    workers.push_back(std::make_unique<Worker>());
}

void WorkerPool::warmUp(unsigned count) {
  for (unsigned i = 0; i < std::min<size_t>(count, workers.size()); ++i)
    if (workers[i]->state() == Worker::State::Dead)
      llvm::consumeError(workers[i]->start(command)); // run() reports it.
}

void WorkerPool::killAll() {
  for (auto &worker : workers)
    worker->kill();
}

Reply WorkerPool::run(Job job) {
  Reply result;
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  run(std::move(jobs), [&](size_t, Reply reply) { result = std::move(reply); });
  return result;
}

/// Waits until a worker has written something or the next deadline is due.
static void waitForNews(llvm::ArrayRef<Worker *> active) {
  std::vector<pollfd> fds;
  auto now = Worker::Clock::now();
  int wait = kTickMs;
  for (Worker *worker : active) {
    fds.push_back({worker->channelFd(), POLLIN, 0});
    fds.push_back({worker->outputFd(), POLLIN, 0});
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        worker->deadline() - now);
    wait = std::clamp<int>(int(left.count()) + 1, 0, wait);
  }
  ::poll(fds.data(), fds.size(), wait);
  // A worker that closed its output but lives would make poll spin.
  for (size_t i = 1; i < fds.size(); i += 2)
    if ((fds[i].revents & POLLHUP) && !fds[i - 1].revents) {
      ::poll(nullptr, 0, 5);
      break;
    }
}

void WorkerPool::run(std::vector<Job> jobs,
                     llvm::function_ref<void(size_t, Reply)> done) {
  constexpr size_t kNone = ~size_t(0);
  std::vector<size_t> assigned(workers.size(), kNone);
  size_t next = 0, finished = 0;
  auto finish = [&](size_t w, Reply reply) {
    size_t job = assigned[w];
    assigned[w] = kNone;
    ++finished;
    done(job, std::move(reply));
  };

  while (finished < jobs.size()) {
    if (stop && stop()) {
      for (size_t w = 0; w < workers.size(); ++w)
        if (assigned[w] != kNone) {
          workers[w]->kill();
          finish(w, {ReplyStatus::Cancelled, "stopped", {}, 0});
        }
      for (; next < jobs.size(); ++next, ++finished)
        done(next, {ReplyStatus::Cancelled, "stopped", {}, 0});
      return;
    }
    std::vector<Worker *> active;
    for (size_t w = 0; w < workers.size(); ++w) {
      Worker &worker = *workers[w];
      bool wanted = assigned[w] == kNone && next < jobs.size();
      if (wanted && worker.state() == Worker::State::Idle &&
          command.requestsPerLife &&
          worker.requestsServed() >= command.requestsPerLife)
        worker.kill();
      if (wanted && worker.state() == Worker::State::Dead)
        if (llvm::Error error = worker.start(command)) {
          assigned[w] = next++;
          finish(w,
                 {ReplyStatus::Unavailable, toString(std::move(error)), {}, 0});
          continue;
        }
      if (wanted && worker.state() == Worker::State::Idle) {
        assigned[w] = next++;
        // A failed send shows as a closed channel below.
        worker.request(std::move(jobs[assigned[w]].request),
                       jobs[assigned[w]].limit);
      }
      if (worker.state() != Worker::State::Dead &&
          worker.state() != Worker::State::Idle)
        active.push_back(&worker);
    }
    if (active.empty())
      continue;
    waitForNews(active);
    for (size_t w = 0; w < workers.size(); ++w) {
      bool starting = workers[w]->state() == Worker::State::Starting;
      std::optional<Reply> reply = workers[w]->advance();
      if (!reply)
        continue;
      // One job is charged with a failed start, or a missing program would
      // make this loop spin for ever.
      if (starting && assigned[w] == kNone) {
        if (next == jobs.size())
          continue;
        assigned[w] = next++;
        reply->message =
            "cannot start " + command.program + ": " + reply->message;
      }
      finish(w, std::move(*reply));
    }
  }
}
