//===- Channel.cpp --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Channel.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <chrono>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace pto::targets;
namespace json = llvm::json;

bool Channel::send(const json::Object &message, int timeoutMs) {
  std::string line;
  llvm::raw_string_ostream os(line);
  os << json::Value(json::Object(message));
  os << '\n';
  auto start = std::chrono::steady_clock::now();
  size_t sent = 0;
  while (sent < line.size()) {
    // MSG_NOSIGNAL: a dead peer is an answer, not a SIGPIPE.
    ssize_t n = ::send(fd, line.data() + sent, line.size() - sent,
                       MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      sent += n;
      continue;
    }
    if (n < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
      return false;
    int left = -1;
    if (timeoutMs >= 0) {
      auto used = std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::steady_clock::now() - start);
      left = timeoutMs - int(used.count());
      if (left <= 0)
        return false;
    }
    pollfd p = {fd, POLLOUT, 0};
    ::poll(&p, 1, left);
    if (p.revents & (POLLERR | POLLHUP))
      return false;
  }
  return true;
}

bool Channel::fill() {
  char chunk[1 << 16];
  while (true) {
    ssize_t n = ::recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (n > 0) {
      buffer.append(chunk, n);
      continue;
    }
    if (n == 0)
      return false;
    if (errno == EINTR)
      continue;
    return errno == EAGAIN || errno == EWOULDBLOCK;
  }
}

std::optional<json::Object> Channel::next() {
  size_t end = buffer.find('\n', scanned);
  if (end == std::string::npos) {
    scanned = buffer.size();
    return std::nullopt;
  }
  llvm::Expected<json::Value> value =
      json::parse(llvm::StringRef(buffer).take_front(end));
  json::Object result;
  if (!value)
    llvm::consumeError(value.takeError());
  else if (json::Object *object = value->getAsObject())
    result = std::move(*object);
  buffer.erase(0, end + 1);
  scanned = 0;
  return result;
}

std::optional<json::Object> Channel::receive() {
  while (true) {
    if (auto message = next())
      return message;
    pollfd p = {fd, POLLIN, 0};
    if (::poll(&p, 1, -1) < 0 && errno != EINTR)
      return std::nullopt;
    if (!fill() && buffer.find('\n') == std::string::npos)
      return std::nullopt;
  }
}
