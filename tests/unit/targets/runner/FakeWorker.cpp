//===- FakeWorker.cpp - Misbehaves on request -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Serve.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace pto::targets;
namespace json = llvm::json;

static volatile char sink;
static char *volatile escaped;

static int recurse(int depth) {
  volatile char frame[4096];
  frame[0] = char(depth);
  // Never zero, but the compiler cannot know.
  return depth >= 0 ? recurse(depth + 1) + frame[0] : 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && !std::strcmp(argv[1], "--fail"))
    return 7;
  return serve([](const json::Object &request) {
    llvm::StringRef op = request.getString("op").value_or("");
    if (op == "crash") {
      reportPhase("crashing");
      std::raise(SIGSEGV);
    } else if (op == "abort") {
      std::fprintf(stderr, "LLVM ERROR: something is off\n");
      std::abort();
    } else if (op == "overflow") {
      recurse(0);
    } else if (op == "hang") {
      reportPhase("hanging");
      while (true)
        sink = 0;
    } else if (op == "sleep") {
      ::usleep(request.getInteger("us").value_or(0));
    } else if (op == "allocate") {
      reportPhase("allocating");
      while (true) {
        char *p = new char[64 << 20];
        std::memset(p, 1, 64 << 20);
        escaped = p; // Or the allocation would be optimised away.
      }
    } else if (op == "print") {
      for (int i = 0; i < 100000; ++i)
        std::printf("{\"id\":1,\"outcome\":\"ok\"} noise %d\n", i);
    } else if (op == "interrupt") {
      std::raise(SIGINT);
    } else if (op == "exit") {
      std::exit(5);
    }
    return json::Object{{"echo", json::Object(request)},
                        {"pid", int64_t(::getpid())}};
  });
}
