//===- CompileService.h - Requests that a compile worker answers -*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Requests (JSON), all with "op" and "ir" (a module with @kernel):
//
//   reference  object -> signature; the unscheduled kernel in `object`
//   compile    object, schedule {name, text, knobs [[name, value], ...]}
//              -> object_hash, text (knobs filled in), call, compile_ms
//   schedules  files, threads -> spaces [{name, knobs: n}]: reads the user's
//              scripts and resolves their knobs
//
// `target` and `threads` are those of the command line. Every answer has
// "outcome" and "message" in the words of db/Record.h. Scripts are read here
// and nowhere else first: parsing one can crash.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_WORKER_COMPILESERVICE_H
#define PTO_TUNER_WORKER_COMPILESERVICE_H

#include "mlir/IR/DialectRegistry.h"
#include "targets/Target.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace pto::tuner {

class CompileService {
public:
  CompileService();
  llvm::json::Object handle(const llvm::json::Object &request);

private:
  llvm::Expected<const targets::Target *>
  targetOf(const llvm::json::Object &request);

  mlir::DialectRegistry registry;
  std::string targetSpec;
  std::optional<targets::Target> target;
};

} // namespace pto::tuner

#endif // PTO_TUNER_WORKER_COMPILESERVICE_H
