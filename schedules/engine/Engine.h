//===- Engine.h - Schedules, their spaces, and applying them ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Start here. A schedule is a .mlir module with a named sequence @match (does
// it fit this kernel?) and @__transform_main (the schedule); knobs are
// transform.tune.knob / transform.tune.alternatives. The engine finds the
// schedules that match a kernel, resolves each knob's options for the kernel
// and the target (Knobs.h), fills values in, and applies the result.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SCHEDULES_ENGINE_ENGINE_H
#define PTO_SCHEDULES_ENGINE_ENGINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "targets/Target.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace pto::schedules {

/// A choice that a schedule leaves open. Options are attributes in MLIR's
/// syntax without their type: "32", "[3, 0, 1]", "true".
struct Knob {
  std::string name;
  std::vector<std::string> options;
  size_t defaultIndex = 0; ///< Into options.
};

/// A value for each knob of a schedule, by name.
using KnobValues = std::vector<std::pair<std::string, std::string>>;

/// The candidates that one schedule gives for one kernel on one target.
struct Space {
  std::string schedule; ///< "matmul/packed", or the user's file.
  std::string text;     ///< The schedule's source.
  std::vector<Knob> knobs;
  /// Empty if the values (an index into each knob's options) make sense
  /// together, else why not.
  std::function<std::string(llvm::ArrayRef<size_t>)> refuse;

  KnobValues valuesAt(llvm::ArrayRef<size_t> point) const;
  KnobValues defaults() const;
};

/// A module holding a copy of `kernel`, renamed @kernel: what schedules take.
/// The target's facts are on it as a DLTI device "CPU" (vector_bits,
/// vector_registers, l1_bytes, l2_bytes, l3_bytes, line_bytes, cores), for
/// transform.dlti.query.
mlir::OwningOpRef<mlir::ModuleOp> isolateKernel(mlir::func::FuncOp kernel,
                                                const targets::Target &target);

/// Spaces of all built-in schedules that match the kernel in `kernelModule`,
/// the most specific first, then those of the user's files (a file without
/// @match is taken as it is). Every kernel has at least one: "any/plain" (the
/// only one of ours for a kernel with an empty tensor).
/// `threads` is the limit for a candidate. A user's file that cannot be read
/// or parsed is an error with file and line.
llvm::Expected<std::vector<Space>>
findSpaces(mlir::ModuleOp kernelModule, const targets::Target &target,
           unsigned threads, llvm::ArrayRef<std::string> userFiles = {});

/// `text` with the knobs' values filled in: a script that runs by itself.
/// Fails if a value is not among a knob's options or a knob stays open; the
/// message names the knob. `name` (a path) occurs in messages.
llvm::Expected<std::string> fillKnobs(mlir::MLIRContext *context,
                                      llvm::StringRef text,
                                      const KnobValues &values,
                                      llvm::StringRef name = "schedule.mlir");

/// The values of the knobs in `text`, a schedule without open ones.
llvm::Expected<KnobValues> knobsIn(mlir::MLIRContext *context,
                                   llvm::StringRef text);

/// What became of an attempt to apply a schedule.
struct Applied {
  /// "ok", "illegal", "transform-failed", "too-large" (db/Record.h).
  std::string outcome = "ok";
  std::string message;
};

/// Applies `text`, a schedule without open knobs, to `kernelModule` in place. A
/// kernel with an empty tensor stays as it is.
/// On failure the module is in an undefined, but valid-to-destroy state.
Applied applySchedule(mlir::ModuleOp kernelModule, llvm::StringRef text,
                      llvm::StringRef name = "schedule.mlir");

/// The first matching built-in schedule that applies with its defaults; gives
/// the scheduled module and the filled-in text (empty for the last resort, no
/// schedule at all).
struct Scheduled {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string schedule, text;
  KnobValues knobs;
};
llvm::Expected<Scheduled> scheduleByDefault(mlir::ModuleOp kernelModule,
                                            const targets::Target &target,
                                            unsigned threads);

/// Names and sources of the built-in schedules, in matching order.
llvm::ArrayRef<std::pair<llvm::StringRef, llvm::StringRef>> builtinSchedules();

/// Registers transform.pto.* and `--pto-apply-schedule`.
void registerSchedules(mlir::DialectRegistry &registry);

} // namespace pto::schedules

#endif // PTO_SCHEDULES_ENGINE_ENGINE_H
