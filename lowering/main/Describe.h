//===- Describe.h - The tables that an artifact carries ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Emits pto_model (targets/cpu/runtime/pto_artifact.h) as globals, the exported
// table, and the model's own C functions.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_MAIN_DESCRIBE_H
#define PTO_LOWERING_MAIN_DESCRIBE_H

#include "lowering/main/Main.h"

namespace pto::lowering {

/// Adds the tables and functions to `program.module` and fills in
/// `program.exports`.
void describe(Program &program, const targets::Target &target,
              const MainOptions &options);

} // namespace pto::lowering

#endif // PTO_LOWERING_MAIN_DESCRIBE_H
