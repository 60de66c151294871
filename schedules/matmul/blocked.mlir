// matmul/blocked.mlir - Matrix product, both operands packed, blocked for caches
//
// SPDX-License-Identifier: Apache-2.0
//
// For products whose operands exceed the L2 cache, or whose rows lie at a power
// of two from each other (their lines then share cache sets). A is stored as
// [M/rows][K][rows], B as [N/panel][K][panel], at run time unless it is a
// weight; a block of `tile_m` x `tile_n` of the result stays in L2 while
// `tile_k` steps of the reduction stream past it (Goto & van de Geijn, 2008);
// 0 leaves a loop whole.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @match(%kernel: !transform.any_op {transform.readonly}) {
    transform.pto.match_kernel %kernel "matmul" {rank = 2} : !transform.any_op
    transform.yield
  }

  transform.named_sequence @__transform_main(%kernel: !transform.any_op) {
    %rows = transform.tune.knob<"rows"> options = {avx512 = [8, 12, 14], avx2 = [4, 6], neon = [8, 4], any = [4]} -> !transform.param<i64>
    %panel = transform.tune.knob<"panel"> options = {source = "panel"} -> !transform.param<i64>
    %bits = transform.tune.knob<"vector_bits"> options = {source = "vector_bits"} -> !transform.param<i64>
    %threads = transform.tune.knob<"threads"> options = {source = "threads"} -> !transform.param<i64>
    %dim = transform.tune.knob<"parallel_dim"> options = {source = "parallel_dim"} -> !transform.param<i64>
    %mc = transform.tune.knob<"tile_m"> options = [0, 128, 64, 256, 512] -> !transform.param<i64>
    %nc = transform.tune.knob<"tile_n"> options = [0, 512, 256, 1024, 2048] -> !transform.param<i64>
    %kc = transform.tune.knob<"tile_k"> options = [0, 256, 128, 384, 512, 1024] -> !transform.param<i64>
    %unroll = transform.tune.knob<"unroll"> options = [4, 2, 1] -> !transform.param<i64>

    // Both operands in the order in which the inner loop reads them.
    %anchor = transform.structured.match attributes {pto.anchor} in %kernel : (!transform.any_op) -> !transform.any_op
    transform.pto.pack_operand %anchor[0] loop 0 tile %rows : (!transform.any_op, !transform.param<i64>) -> ()
    transform.pto.pack_operand %anchor[1] tile %panel : (!transform.any_op, !transform.param<i64>) -> ()
    transform.pto.split_prepack %kernel : !transform.any_op
    %packs = transform.structured.match attributes {pto.pack} in %kernel : (!transform.any_op) -> !transform.any_op

    %root = transform.structured.match attributes {pto.root} in %kernel : (!transform.any_op) -> !transform.any_op
    %part = transform.pto.distribute %root dim(%dim) threads(%threads) multiple_of(%mc) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> !transform.any_op
    %block = transform.pto.tile_chain %part tile_sizes [%mc, %nc] interchange = [1, 0] : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> !transform.any_op
    %inner = transform.structured.match attributes {pto.anchor} in %kernel : (!transform.any_op) -> !transform.any_op
    %step = transform.pto.tile_chain %inner tile_sizes [0, 0, %kc] : (!transform.any_op, !transform.param<i64>) -> !transform.any_op

    %zero = transform.param.constant 0 : i64 -> !transform.param<i64>
    transform.pto.microkernel %step tile_sizes [%rows, %panel] unroll [%unroll] vector_loop(%zero) vector_bits(%bits) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    %rest = transform.structured.match interface{LinalgOp} in %kernel : (!transform.any_op) -> !transform.any_op
    transform.pto.microkernel %rest tile_sizes [%panel] vector_bits(%bits) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.yield
  }
}
