// matmul/repacked.mlir - Matrix product, B packed at run time
//
// SPDX-License-Identifier: Apache-2.0
//
// As matmul/packed, for a B that is computed: it is copied into panels first,
// which pays once there are rows enough to use each panel many times.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @match(%kernel: !transform.any_op {transform.readonly}) {
    transform.pto.match_kernel %kernel "matmul" {min_rows = 32} : !transform.any_op
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

    // Weights in panels [N/panel][K][panel].
    %anchor = transform.structured.match attributes {pto.anchor} in %kernel : (!transform.any_op) -> !transform.any_op
    transform.pto.pack_operand %anchor[1] tile %panel : (!transform.any_op, !transform.param<i64>) -> ()
    %packs = transform.structured.match attributes {pto.pack} in %kernel : (!transform.any_op) -> !transform.any_op
    %panels = transform.param.constant 0 : i64 -> !transform.param<i64>
    %shares = transform.pto.distribute %packs dim(%panels) threads(%threads) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> !transform.any_op
    transform.pto.microkernel %shares tile_sizes [%panel] vector_bits(%bits) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    %root = transform.structured.match attributes {pto.root} in %kernel : (!transform.any_op) -> !transform.any_op
    %part = transform.pto.distribute %root dim(%dim) threads(%threads) chunks(%chunks) multiple_of(%rows, %panel) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> !transform.any_op
    transform.pto.microkernel %part tile_sizes [%rows, %panel] unroll [%unroll] vector_loop(%loop) vector_bits(%bits) prefetch(%prefetch) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.yield
  }
}
