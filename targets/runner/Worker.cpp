//===- Worker.cpp ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Worker.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace pto::targets;
namespace json = llvm::json;

/// The descriptor that a worker finds its channel on (Serve.cpp).
static constexpr int kChannelFd = 3;
/// How much of a worker's output is kept for the message about its death.
static constexpr size_t kTailBytes = 2048;
/// A worker links the compiler's shared libraries: loading them from a cold
/// disk takes seconds, never this long.
static constexpr std::chrono::seconds kStartLimit{60};

std::string pto::targets::siblingTool(llvm::StringRef name) {
  char self[4096];
  ssize_t n = ::readlink("/proc/self/exe", self, sizeof self);
  llvm::StringRef path(self, n > 0 ? n : 0);
  return (llvm::sys::path::parent_path(path) + "/" + name).str();
}

static void limitResource(__rlimit_resource resource, rlim_t value) {
  rlimit r;
  if (::getrlimit(resource, &r))
    return;
  if (r.rlim_max != RLIM_INFINITY && value > r.rlim_max)
    value = r.rlim_max;
  r.rlim_cur = r.rlim_max = value;
  ::setrlimit(resource, &r);
}

/// Between fork and exec: only calls that are safe there.
[[noreturn]] static void enterChild(const WorkerCommand &command,
                                    char *const *argv, pid_t parent,
                                    int channel, int output) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before prctl took effect.
  if (::getppid() != parent)
    ::_exit(127);
  ::signal(SIGINT, SIG_IGN);
  limitResource(RLIMIT_CORE, 0);
  // Stacks as threads get them by default, whatever the user's shell says: a
  // schedule that needs more would fail in production.
  limitResource(RLIMIT_STACK, 8 << 20);
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) &&     \
    !__has_feature(thread_sanitizer)
  if (command.memoryBytes > 0)
    limitResource(RLIMIT_AS, command.memoryBytes);
#endif
  int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, 0);
  ::dup2(output, 1);
  ::dup2(output, 2);
  if (channel == kChannelFd)
    ::fcntl(channel, F_SETFD, 0);
  else
    ::dup2(channel, kChannelFd);
  ::execv(argv[0], argv);
  const char *why = std::strerror(errno);
  (void)!::write(2, why, std::strlen(why));
  ::_exit(127);
}

llvm::Error Worker::start(const WorkerCommand &command) {
  kill();
  int sockets[2], pipes[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
    return llvm::createStringError(
        llvm::errnoAsErrorCode(), "cannot make a channel for %s: %s",
        command.program.c_str(), std::strerror(errno));
  if (::pipe2(pipes, O_CLOEXEC)) {
    int error = errno;
    ::close(sockets[0]);
    ::close(sockets[1]);
    return llvm::createStringError(
        std::error_code(error, std::generic_category()),
        "cannot make a pipe for %s: %s", command.program.c_str(),
        std::strerror(error));
  }
  std::vector<char *> argv{const_cast<char *>(command.program.c_str())};
  for (const std::string &a : command.arguments)
    argv.push_back(const_cast<char *>(a.c_str()));
  argv.push_back(nullptr);

  pid_t parent = ::getpid();
  pid = ::fork();
  if (pid == 0)
    enterChild(command, argv.data(), parent, sockets[1], pipes[1]);
  ::close(sockets[1]);
  ::close(pipes[1]);
  if (pid < 0) {
    ::close(sockets[0]);
    ::close(pipes[0]);
    return llvm::createStringError(
        llvm::errnoAsErrorCode(), "cannot start %s: %s",
        command.program.c_str(), std::strerror(errno));
  }
  // Both sides set it: whoever comes first, kill(-pid) is right from here on.
  ::setpgid(pid, pid);
  output = pipes[0];
  ::fcntl(output, F_SETFL, O_NONBLOCK);
  channel = Channel(sockets[0]);
  current = State::Starting;
  served = 0;
  allowed = kStartLimit;
  cpuAtStart = 0;
  started = Clock::now();
  limit = started + kStartLimit;
  tail.clear();
  phase = "starting";
  return llvm::Error::success();
}

/// Seconds of processor time that all threads of a process have used.
static double cpuSeconds(pid_t pid) {
  char path[64], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", int(pid));
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  llvm::StringRef stat(text, n > 0 ? n : 0);
  // After the command's name, which may hold anything: field 3 is the first.
  llvm::SmallVector<llvm::StringRef> fields;
  stat.rsplit(')').second.trim().split(fields, ' ');
  unsigned long user = 0, system = 0;
  if (fields.size() < 13 || fields[11].getAsInteger(10, user) ||
      fields[12].getAsInteger(10, system))
    return 0;
  return double(user + system) / ::sysconf(_SC_CLK_TCK);
}

/// A deadline has passed: did the worker have the time?
bool Worker::mayGoOn() {
  auto now = Clock::now();
  if (now - started >= kPatience * allowed)
    return false;
  double used = cpuSeconds(pid) - cpuAtStart;
  double share = 0.7 * allowed.count() / 1000;
  if (used >= share)
    return false;
  limit = now + std::chrono::milliseconds(
                    std::max<int64_t>(50, int64_t((share - used) * 1000)));
  limit = std::min(limit, started + kPatience * allowed);
  return true;
}

bool Worker::request(json::Object message, std::chrono::milliseconds time) {
  ++served;
  message["id"] = ++sequence;
  phase.clear();
  tail.clear();
  current = State::Busy;
  allowed = time;
  started = Clock::now();
  limit = started + time;
  cpuAtStart = cpuSeconds(pid);
  return channel.send(message, int(time.count()));
}

void Worker::kill() {
  if (pid > 0) {
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR)
      ;
  }
  pid = -1;
  if (output >= 0)
    ::close(output);
  output = -1;
  if (channel.descriptor() >= 0)
    ::close(channel.descriptor());
  channel = Channel();
  current = State::Dead;
}

void Worker::drainOutput() {
  char chunk[4096];
  // Bounded, so that a worker that prints without end cannot hold its manager.
  for (int i = 0; i < 256; ++i) {
    ssize_t n = ::read(output, chunk, sizeof chunk);
    if (n <= 0)
      return;
    tail.append(chunk, n);
    if (tail.size() > kTailBytes)
      tail.erase(0, tail.size() - kTailBytes);
  }
}

/// The last lines of output that say something, for a message.
static std::string lastWords(llvm::StringRef tail) {
  llvm::SmallVector<llvm::StringRef> lines;
  tail.trim().split(lines, '\n');
  // LLVM's crash handler prints an advert, then a stack: not for users.
  std::string words;
  for (llvm::StringRef line : lines) {
    if (line.starts_with("PLEASE submit") || line.starts_with("Stack dump"))
      break;
    if (line.trim().empty())
      continue;
    words += (words.empty() ? "" : "; ") + line.trim().str();
  }
  if (words.size() > 500)
    words = "..." + words.substr(words.size() - 500);
  return json::fixUTF8(words);
}

Reply Worker::died() {
  drainOutput();
  int status = 0;
  pid_t reaped = 0;
  // The channel closed: the process is dying, but it may take a moment.
  for (int i = 0; i < 500 && reaped == 0; ++i) {
    reaped = ::waitpid(pid, &status, WNOHANG);
    if (reaped == 0)
      ::poll(nullptr, 0, 2);
  }
  Reply reply;
  reply.status = ReplyStatus::Crashed;
  if (reaped == pid) {
    ::kill(-pid, SIGKILL); // What it may have left behind.
    pid = -1;
    if (WIFSIGNALED(status))
      reply.message = std::string("killed by signal ") +
                      std::to_string(WTERMSIG(status)) + " (" +
                      ::strsignal(WTERMSIG(status)) + ")";
    else
      reply.message = "exited with code " + std::to_string(WEXITSTATUS(status));
  } else {
    reply.message = "closed its channel";
  }
  if (!phase.empty())
    reply.message += " while " + phase;
  std::string words = lastWords(tail);
  if (!words.empty())
    reply.message += ": " + words;
  return reply;
}

std::optional<Reply> Worker::advance() {
  if (current == State::Dead)
    return std::nullopt;
  drainOutput();
  bool alive = channel.fill();
  State before = current;
  std::optional<Reply> reply;
  while (auto message = channel.next()) {
    if (auto text = message->getString("phase")) {
      phase = text->str();
      continue;
    }
    if (message->getBoolean("ready")) {
      if (current == State::Starting)
        before = current = State::Idle;
      continue;
    }
    if (current == State::Busy && message->empty()) {
      reply.emplace();
      reply->status = ReplyStatus::Crashed;
      reply->message = "sent what is no JSON";
      kill();
      break;
    }
    if (current != State::Busy || message->getInteger("id") != sequence)
      continue;
    reply.emplace();
    reply->status = ReplyStatus::Answered;
    if (message->getBoolean("out_of_memory")) {
      reply->status = ReplyStatus::OutOfMemory;
      reply->message = "ran out of memory";
      if (!phase.empty())
        reply->message += " while " + phase;
    }
    reply->body = std::move(*message);
    current = State::Idle;
    break;
  }
  if (!alive || (reply && reply->status == ReplyStatus::OutOfMemory)) {
    if (!reply && before != State::Idle)
      reply = died();
    kill();
  } else if (!reply && before != State::Idle && Clock::now() >= limit &&
             !mayGoOn()) {
    reply.emplace();
    reply->status = ReplyStatus::TimedOut;
    char text[64];
    std::snprintf(
        text, sizeof text, "no answer within %.1f s",
        std::chrono::duration<double>(Clock::now() - started).count());
    reply->message = text;
    if (!phase.empty())
      reply->message += " while " + phase;
    kill();
  }
  if (reply && before == State::Starting)
    reply->status = ReplyStatus::Unavailable;
  if (reply)
    reply->seconds =
        std::chrono::duration<double>(Clock::now() - started).count();
  return reply;
}
