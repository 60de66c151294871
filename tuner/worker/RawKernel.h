//===- RawKernel.h - What a kernel looks like from outside ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reads off a kernel (form "kernels" of lowering/README.md, or any @kernel in
// linalg) what a runner and the tuner must know of it.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_WORKER_RAWKERNEL_H
#define PTO_TUNER_WORKER_RAWKERNEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/runner/Signature.h"

namespace pto::tuner {

/// Arguments and their roles, operations, length of sums. Arguments without
/// pto.role are inputs, except the last ones, one per result (a kernel on
/// memrefs: the last one), which are read and written.
llvm::Expected<targets::KernelSignature> signatureOf(mlir::func::FuncOp kernel);

/// How a scheduled @kernel takes the raw kernel's arguments.
llvm::Expected<targets::CallSpec> callOf(mlir::ModuleOp scheduled);

} // namespace pto::tuner

#endif // PTO_TUNER_WORKER_RAWKERNEL_H
