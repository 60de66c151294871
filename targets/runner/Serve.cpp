//===- Serve.cpp ----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Serve.h"
#include "targets/runner/Channel.h"
#include "llvm/Support/ErrorHandling.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

using namespace pto::targets;
namespace json = llvm::json;

/// Where Worker.cpp puts the channel.
static constexpr int kChannelFd = 3;

static Channel *theChannel = nullptr;
static volatile int64_t currentRequest = 0;

void pto::targets::reportPhase(llvm::StringRef phase) {
  if (theChannel)
    theChannel->send(json::Object{{"phase", phase}});
}

bool pto::targets::isEnvironmental(std::error_code code) {
  for (int error :
       {ENOSPC, EDQUOT, EFBIG, EROFS, EACCES, EPERM, EIO, EMFILE, ENFILE})
    if (code == std::error_condition(error, std::generic_category()))
      return true;
  return false;
}

/// There may be no memory left: fixed storage only. The process ends, since
/// what ran out of memory cannot be unwound without exceptions.
[[noreturn]] static void outOfMemory() {
  char line[96];
  int n =
      std::snprintf(line, sizeof line, "{\"id\":%lld,\"out_of_memory\":true}\n",
                    (long long)currentRequest);
  (void)!::send(kChannelFd, line, n, MSG_NOSIGNAL);
  ::_exit(86);
}

int pto::targets::serve(
    llvm::function_ref<json::Object(const json::Object &)> handler) {
  if (::fcntl(kChannelFd, F_GETFD) < 0) {
    std::fprintf(stderr, "this program is started by pto-tune; it has no use "
                         "by itself\n");
    return 2;
  }
  ::fcntl(kChannelFd, F_SETFD, FD_CLOEXEC);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  std::set_new_handler([] { outOfMemory(); });
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { outOfMemory(); });

  Channel channel(kChannelFd);
  theChannel = &channel;
  if (!channel.send(json::Object{{"ready", true}}))
    return 0;
  while (auto request = channel.receive()) {
    currentRequest = request->getInteger("id").value_or(0);
    json::Object answer = handler(*request);
    answer["id"] = int64_t(currentRequest);
    std::fflush(nullptr);
    if (!channel.send(answer))
      break;
  }
  theChannel = nullptr;
  return 0;
}
