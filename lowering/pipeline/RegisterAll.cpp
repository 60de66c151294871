//===- RegisterAll.cpp - Every dialect, extension and pass
//------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The one file that includes MLIR's InitAll headers: they take ten seconds to
// compile.
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Pipeline.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

void pto::lowering::registerAll(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllToLLVMIRTranslations(registry);
  // Pass registration is global; schedules name passes
  // (transform.apply_registered_pass).
  static bool once = (mlir::registerAllPasses(), true);
  (void)once;
}
