//===- KernelFeatures.h - What makes kernels alike --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_WORKER_KERNELFEATURES_H
#define PTO_TUNER_WORKER_KERNELFEATURES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/runner/Signature.h"
#include <string>

namespace pto::tuner {

/// A kernel's place among others in the database (db/Record.h, Kernel).
struct KernelFeatures {
  std::string op;       ///< schedules::kernelKind.
  std::string features; ///< JSON: sizes, reduction length, operations.
};

KernelFeatures featuresOf(mlir::func::FuncOp kernel,
                          const targets::KernelSignature &signature);

} // namespace pto::tuner

#endif // PTO_TUNER_WORKER_KERNELFEATURES_H
