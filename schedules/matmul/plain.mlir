// matmul/plain.mlir - Matrix product as it lies in memory
//
// SPDX-License-Identifier: Apache-2.0
//
// No packing: for products of two activations, and small ones.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @match(%kernel: !transform.any_op {transform.readonly}) {
    transform.pto.match_kernel %kernel "matmul" : !transform.any_op
    transform.yield
  }

  transform.named_sequence @__transform_main(%kernel: !transform.any_op) {
    %rows = transform.tune.knob<"rows"> options = {source = "rows"} -> !transform.param<i64>
    %panel = transform.tune.knob<"panel"> options = {source = "panel"} -> !transform.param<i64>
    %bits = transform.tune.knob<"vector_bits"> options = {source = "vector_bits"} -> !transform.param<i64>
    %threads = transform.tune.knob<"threads"> options = {source = "threads"} -> !transform.param<i64>
    %chunks = transform.tune.knob<"chunks"> options = {source = "chunks"} -> !transform.param<i64>
    %dim = transform.tune.knob<"parallel_dim"> options = {source = "parallel_dim"} -> !transform.param<i64>
    %loop = transform.tune.knob<"vector_loop"> options = [0, -1, 1] -> !transform.param<i64>
    %unroll = transform.tune.knob<"unroll"> options = [1, 2, 4] -> !transform.param<i64>

    %root = transform.structured.match attributes {pto.root} in %kernel : (!transform.any_op) -> !transform.any_op
    %part = transform.pto.distribute %root dim(%dim) threads(%threads) chunks(%chunks) multiple_of(%rows, %panel) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> !transform.any_op
    transform.pto.microkernel %part tile_sizes [%rows, %panel] unroll [%unroll] vector_loop(%loop) vector_bits(%bits) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.yield
  }
}
