// matmul/packed.mlir - Matrix product with constant weights
//
// SPDX-License-Identifier: Apache-2.0
//
// A register tile of `rows` x `panel`; B is stored as [N/panel][K][panel] when the
// model is compiled, so that the inner loop reads it in order. Batched products
// take the same path. `vector_loop = 0` keeps a panel in the cache and streams the
// rows past it; -1 keeps the rows.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @match(%kernel: !transform.any_op {transform.readonly}) {
    transform.pto.match_kernel %kernel "matmul" weights : !transform.any_op
    transform.yield
  }

  transform.named_sequence @__transform_main(%kernel: !transform.any_op) {
    %rows = transform.tune.knob<"rows"> options = {source = "rows"} -> !transform.param<i64>
    %panel = transform.tune.knob<"panel"> options = {source = "panel"} -> !transform.param<i64>
    %bits = transform.tune.knob<"vector_bits"> options = {source = "vector_bits"} -> !transform.param<i64>
    %threads = transform.tune.knob<"threads"> options = {source = "threads"} -> !transform.param<i64>
    %chunks = transform.tune.knob<"chunks"> options = {source = "chunks"} -> !transform.param<i64>
    %dim = transform.tune.knob<"parallel_dim"> options = {source = "parallel_dim"} -> !transform.param<i64>
    %loop = transform.tune.knob<"vector_loop"> options = {source = "vector_loop"} -> !transform.param<i64>
    %prefetch = transform.tune.knob<"prefetch"> options = [1, 0] -> !transform.param<i64>
    %unroll = transform.tune.knob<"unroll"> options = [1, 2, 4] -> !transform.param<i64>

    // Weights in panels [N/panel][K][panel], packed when compiling.
    %anchor = transform.structured.match attributes {pto.anchor} in %kernel : (!transform.any_op) -> !transform.any_op
    transform.pto.pack_operand %anchor[1] tile %panel : (!transform.any_op, !transform.param<i64>) -> ()
    transform.pto.split_prepack %kernel : !transform.any_op

    %root = transform.structured.match attributes {pto.root} in %kernel : (!transform.any_op) -> !transform.any_op
    %part = transform.pto.distribute %root dim(%dim) threads(%threads) chunks(%chunks) multiple_of(%rows, %panel) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> !transform.any_op
    transform.pto.microkernel %part tile_sizes [%rows, %panel] unroll [%unroll] vector_loop(%loop) vector_bits(%bits) prefetch(%prefetch) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.yield
  }
}
