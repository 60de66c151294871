//===- Serve.h - The worker's end of the protocol ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A worker's main calls serve() with a handler: one JSON object in, one out.
// serve() cares for the channel, the memory limit and the parent's death.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TARGETS_RUNNER_SERVE_H
#define PTO_TARGETS_RUNNER_SERVE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <system_error>

namespace pto::targets {

/// Tells the manager what is going on, so that the message about a crash or a
/// timeout can say what the worker was doing ("while running the kernel").
void reportPhase(llvm::StringRef phase);

/// The outcome of a request that the machine made fail, not what was asked to
/// be compiled or run: the manager cannot go on.
inline constexpr const char *kEnvironmentFailed = "environment";

/// Is it the machine that failed: disk, permission, open files?
bool isEnvironmental(std::error_code code);

/// Answers requests until the manager goes away; returns main's exit code.
int serve(
    llvm::function_ref<llvm::json::Object(const llvm::json::Object &)> handler);

} // namespace pto::targets

#endif // PTO_TARGETS_RUNNER_SERVE_H
