//===- PoolTest.cpp -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Pool.h"
#include "gtest/gtest.h"
#include <csignal>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace pto::targets;
namespace json = llvm::json;

static WorkerCommand fake(int64_t memory = 0) {
  WorkerCommand command;
  command.program = TEST_BIN "fake-worker";
  command.memoryBytes = memory;
  return command;
}

static Job job(llvm::StringRef op, int ms = 10000) {
  Job j;
  j.request = json::Object{{"op", op}};
  j.limit = std::chrono::milliseconds(ms);
  return j;
}

static bool contains(const std::string &text, llvm::StringRef part) {
  return llvm::StringRef(text).contains(part);
}

TEST(Pool, answers) {
  WorkerPool pool(fake(), 1);
  Reply r = pool.run(job("echo"));
  ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
  EXPECT_EQ("echo", *r.body.getObject("echo")->getString("op"));
  // The same process answers again.
  Reply again = pool.run(job("echo"));
  EXPECT_EQ(r.body.getInteger("pid"), again.body.getInteger("pid"));
}

TEST(Pool, crashIsAValueAndTheNextRequestWorks) {
  WorkerPool pool(fake(), 1);
  Reply r = pool.run(job("crash"));
  EXPECT_EQ(ReplyStatus::Crashed, r.status);
  EXPECT_TRUE(contains(r.message, "signal 11")) << r.message;
  EXPECT_TRUE(contains(r.message, "while crashing")) << r.message;
  EXPECT_EQ(ReplyStatus::Answered, pool.run(job("echo")).status);
  r = pool.run(job("abort"));
  EXPECT_EQ(ReplyStatus::Crashed, r.status);
  EXPECT_TRUE(contains(r.message, "something is off")) << r.message;
  r = pool.run(job("overflow"));
  EXPECT_EQ(ReplyStatus::Crashed, r.status);
  r = pool.run(job("exit"));
  EXPECT_EQ(ReplyStatus::Crashed, r.status);
  EXPECT_TRUE(contains(r.message, "code 5")) << r.message;
  EXPECT_EQ(ReplyStatus::Answered, pool.run(job("echo")).status);
}

TEST(Pool, hangEndsAtItsLimit) {
  WorkerPool pool(fake(), 1);
  pool.run(job("echo")); // The start is not part of the limit.
  Reply r = pool.run(job("hang", 200));
  EXPECT_EQ(ReplyStatus::TimedOut, r.status);
  EXPECT_TRUE(contains(r.message, "no answer within 0.")) << r.message;
  EXPECT_TRUE(contains(r.message, "s while hanging")) << r.message;
  EXPECT_LT(r.seconds, 5);
  EXPECT_EQ(ReplyStatus::Answered, pool.run(job("echo")).status);
}

// A worker that sleeps uses no time of the machine, but still has an end.
TEST(Pool, sleepEndsToo) {
  WorkerPool pool(fake(), 1);
  pool.run(job("echo"));
  Job sleepy = job("sleep", 100);
  sleepy.request["us"] = 60'000'000;
  Reply r = pool.run(std::move(sleepy));
  EXPECT_EQ(ReplyStatus::TimedOut, r.status);
  EXPECT_GE(r.seconds, 0.29);
  EXPECT_LT(r.seconds, 10);
}

#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) &&     \
    !__has_feature(thread_sanitizer)
TEST(Pool, allocationSpree) {
  WorkerPool pool(fake(int64_t(1) << 30), 1);
  Reply r = pool.run(job("allocate"));
  EXPECT_EQ(ReplyStatus::OutOfMemory, r.status) << r.message;
  EXPECT_TRUE(contains(r.message, "while allocating")) << r.message;
  EXPECT_EQ(ReplyStatus::Answered, pool.run(job("echo")).status);
}
#endif

TEST(Pool, whatWorkersPrintIsNoAnswer) {
  WorkerPool pool(fake(), 1);
  Reply r = pool.run(job("print"));
  ASSERT_EQ(ReplyStatus::Answered, r.status) << r.message;
  EXPECT_TRUE(r.body.getObject("echo"));
}

TEST(Pool, ignoresInterrupt) {
  WorkerPool pool(fake(), 1);
  EXPECT_EQ(ReplyStatus::Answered, pool.run(job("interrupt")).status);
}

TEST(Pool, manyJobsOnFewWorkers) {
  WorkerPool pool(fake(), 2);
  std::vector<Job> jobs;
  const char *ops[] = {"echo", "crash", "echo", "sleep", "exit"};
  for (int i = 0; i < 20; ++i)
    jobs.push_back(job(ops[i % 5]));
  std::set<size_t> seen;
  std::set<int64_t> pids;
  int answered = 0, crashed = 0;
  pool.run(std::move(jobs), [&](size_t i, Reply r) {
    EXPECT_TRUE(seen.insert(i).second);
    if (r.status == ReplyStatus::Answered) {
      ++answered;
      pids.insert(*r.body.getInteger("pid"));
      EXPECT_EQ(ops[i % 5], r.body.getObject("echo")->getString("op")->str());
    } else {
      ++crashed;
      EXPECT_EQ(ReplyStatus::Crashed, r.status);
    }
  });
  EXPECT_EQ(20u, seen.size());
  EXPECT_EQ(12, answered);
  EXPECT_EQ(8, crashed);
  EXPECT_GE(pids.size(), 2u);
}

TEST(Pool, workersAreReplaced) {
  WorkerCommand command = fake();
  command.requestsPerLife = 2;
  WorkerPool pool(command, 1);
  auto pid = [&] { return *pool.run(job("echo")).body.getInteger("pid"); };
  int64_t a = pid(), b = pid(), c = pid();
  EXPECT_EQ(a, b);
  EXPECT_NE(b, c);
}

TEST(Pool, cannotStart) {
  WorkerCommand command = fake();
  command.arguments = {"--fail"};
  WorkerPool failing(command, 1);
  Reply r = failing.run(job("echo"));
  EXPECT_EQ(ReplyStatus::Unavailable, r.status);
  EXPECT_TRUE(contains(r.message, "code 7")) << r.message;
  command.program = "/nonexistent/worker";
  WorkerPool missing(command, 2);
  r = missing.run(job("echo"));
  EXPECT_EQ(ReplyStatus::Unavailable, r.status);
  EXPECT_TRUE(contains(r.message, "No such file")) << r.message;
}

TEST(Pool, stopCancelsEverything) {
  bool stop = false;
  WorkerPool pool(fake(), 2, [&] { return stop; });
  std::vector<Job> jobs;
  jobs.push_back(job("echo"));
  for (int i = 0; i < 4; ++i)
    jobs.push_back(job("hang", 60000));
  int cancelled = 0;
  pool.run(std::move(jobs), [&](size_t, Reply r) {
    stop = true;
    cancelled += r.status == ReplyStatus::Cancelled;
  });
  EXPECT_EQ(4, cancelled);
}

// A manager that is killed without a chance to clean up leaves no worker.
TEST(Pool, workersDieWithTheirManager) {
  int pipes[2];
  ASSERT_EQ(0, ::pipe(pipes));
  pid_t manager = ::fork();
  if (manager == 0) {
    WorkerPool pool(fake(), 1);
    Reply r = pool.run(job("echo"));
    int64_t pid = r.body.getInteger("pid").value_or(0);
    (void)!::write(pipes[1], &pid, sizeof pid);
    pool.run(job("hang", 60000));
    ::_exit(0);
  }
  int64_t worker = 0;
  ASSERT_EQ(ssize_t(sizeof worker), ::read(pipes[0], &worker, sizeof worker));
  ASSERT_GT(worker, 0);
  ::kill(manager, SIGKILL);
  ::waitpid(manager, nullptr, 0);
  // Whoever inherits orphans may not reap them: a zombie is dead enough.
  auto alive = [&] {
    std::string path = "/proc/" + std::to_string(worker) + "/stat";
    FILE *f = std::fopen(path.c_str(), "r");
    if (!f)
      return false;
    char state = 'Z';
    int n = std::fscanf(f, "%*d %*s %c", &state);
    std::fclose(f);
    return n == 1 && state != 'Z';
  };
  for (int i = 0; i < 500 && alive(); ++i)
    ::usleep(10000);
  EXPECT_FALSE(alive());
  ::close(pipes[0]);
  ::close(pipes[1]);
}
