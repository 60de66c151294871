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
#include "tuner/FileChecks.h"
#include "tuner/ToolError.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  pto::lowering::registerAll(registry);
  pto::schedules::registerSchedules(registry);
  pto::lowering::registerPipelinePasses();
  pto::lowering::registerGraphPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "pto's optimiser driver\n", registry);
  using namespace pto::tuner;
  if (input != "-")
    if (llvm::Error error = checkReadable(input))
      return reportError("pto-opt", std::move(error));
  if (llvm::Error error = checkWritable(output))
    return reportError("pto-opt", std::move(error));
  handleLimits("pto-opt");
  if (failed(mlir::MlirOptMain(argc, argv, input, output, registry)))
    return BadInput;
  return finishOutput("pto-opt", Done);
}
