// any/plain.mlir - The fallback: the kernel as it is
//
// SPDX-License-Identifier: Apache-2.0
//
// Takes every kernel and changes nothing; the pipeline makes scalar loops, which
// LLVM vectorises where it can.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%kernel: !transform.any_op {transform.readonly}) {
    transform.yield
  }
}
