//===- pto-opt.cpp - mlir-opt with pto's dialect and passes
//-----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Passes.h"
#include "lowering/pipeline/Pipeline.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "schedules/engine/Engine.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  pto::lowering::registerAll(registry);
  pto::schedules::registerSchedules(registry);
  pto::lowering::registerPipelinePasses();
  pto::lowering::registerGraphPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "pto's optimiser driver\n", registry));
}
