// any/vector.mlir - Every op of the kernel in vectors, one after the other
//
// SPDX-License-Identifier: Apache-2.0
//
// For kernels that no other schedule takes as a whole. Reductions along rows and
// elementwise ops become vector loops of their own; what cannot stays scalar.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%kernel: !transform.any_op) {
    %vectors = transform.tune.knob<"vectors"> options = {source = "vectors"} -> !transform.param<i64>
    %bits = transform.tune.knob<"vector_bits"> options = {source = "vector_bits"} -> !transform.param<i64>
    %ops = transform.structured.match interface{LinalgOp} in %kernel : (!transform.any_op) -> !transform.any_op
    transform.pto.microkernel %ops tile_sizes [%vectors] vector_bits(%bits) where_possible : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.yield
  }
}
