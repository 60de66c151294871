// rowwise/rows.mlir - Softmax, layer norm and other chains on rows
//
// SPDX-License-Identifier: Apache-2.0
//
// Rows are shared out among the threads. With `block_rows`, all steps are done
// for so many rows before the next ones, so that what passes from one step to
// the next stays in the first-level cache.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @match(%kernel: !transform.any_op {transform.readonly}) {
    transform.pto.match_kernel %kernel "rowwise" : !transform.any_op
    transform.yield
  }

  transform.named_sequence @__transform_main(%kernel: !transform.any_op) {
    %rows = transform.tune.knob<"block_rows"> options = {source = "block_rows"} -> !transform.param<i64>
    %vectors = transform.tune.knob<"vectors"> options = {source = "vectors"} -> !transform.param<i64>
    %bits = transform.tune.knob<"vector_bits"> options = {source = "vector_bits"} -> !transform.param<i64>
    %threads = transform.tune.knob<"threads"> options = {source = "threads"} -> !transform.param<i64>
    %chunks = transform.tune.knob<"chunks"> options = {source = "chunks"} -> !transform.param<i64>

    %root = transform.structured.match attributes {pto.root} in %kernel : (!transform.any_op) -> !transform.any_op
    %first = transform.param.constant 0 : i64 -> !transform.param<i64>
    %part = transform.pto.distribute %root dim(%first) threads(%threads) chunks(%chunks) multiple_of(%rows) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> !transform.any_op
    %block = transform.pto.tile_chain %part tile_sizes [%rows] : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    %ops = transform.structured.match interface{LinalgOp} in %kernel : (!transform.any_op) -> !transform.any_op
    transform.pto.microkernel %ops tile_sizes [%vectors] vector_bits(%bits) where_possible : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.yield
  }
}
