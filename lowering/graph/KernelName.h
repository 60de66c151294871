//===- KernelName.h - Names that say what a kernel does ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// conv3x3s2_56x56x64_k128_bias_relu: kind, result's shape, sum's length,
// epilogue. For people; equality is the hash's business.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_GRAPH_KERNELNAME_H
#define PTO_LOWERING_GRAPH_KERNELNAME_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>

namespace pto::lowering {

/// The readable part of the name of `kernel`, a valid C identifier.
std::string describeKernel(mlir::func::FuncOp kernel);

} // namespace pto::lowering

#endif // PTO_LOWERING_GRAPH_KERNELNAME_H
