// pooling/window.mlir - Pooling over channels
//
// SPDX-License-Identifier: Apache-2.0
//
// As for depthwise convolutions, without weights.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @match(%kernel: !transform.any_op {transform.readonly}) {
    transform.pto.match_kernel %kernel "pooling" : !transform.any_op
    transform.yield
  }

  transform.named_sequence @__transform_main(%kernel: !transform.any_op) {
    %rows = transform.tune.knob<"rows"> options = [4, 1, 2, 7, 8] -> !transform.param<i64>
    %vectors = transform.tune.knob<"vectors"> options = {source = "vectors"} -> !transform.param<i64>
    %bits = transform.tune.knob<"vector_bits"> options = {source = "vector_bits"} -> !transform.param<i64>
    %threads = transform.tune.knob<"threads"> options = {source = "threads"} -> !transform.param<i64>
    %chunks = transform.tune.knob<"chunks"> options = {source = "chunks"} -> !transform.param<i64>
    %dim = transform.tune.knob<"parallel_dim"> options = {source = "parallel_dim"} -> !transform.param<i64>
    %loop = transform.tune.knob<"vector_loop"> options = [-1, 0, 1] -> !transform.param<i64>
    %uh = transform.tune.knob<"unroll_rows"> options = [1, 0] -> !transform.param<i64>
    %uw = transform.tune.knob<"unroll_columns"> options = [0, 1] -> !transform.param<i64>

    %root = transform.structured.match attributes {pto.root} in %kernel : (!transform.any_op) -> !transform.any_op
    %part = transform.pto.distribute %root dim(%dim) threads(%threads) chunks(%chunks) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> !transform.any_op
    transform.pto.microkernel %part tile_sizes [%rows, %vectors] unroll [%uh, %uw] vector_loop(%loop) vector_bits(%bits) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.yield
  }
}
