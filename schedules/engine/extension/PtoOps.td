//===- PtoOps.td - transform.pto.* ops ---------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What upstream's transform dialect lacks for pto's schedules. All of them work
// on kernels in tensor form (lowering/README.md).
//
//===----------------------------------------------------------------------===//
#ifndef PTO_OPS
#define PTO_OPS

include "mlir/Dialect/Transform/IR/TransformDialect.td"
include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.td"
include "mlir/Dialect/Transform/IR/TransformTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpBase.td"

class PtoOp<string name, list<Trait> traits = []>
    : Op<Transform_Dialect, "pto." # name, traits # [
          DeclareOpInterfaceMethods<TransformOpInterface>,
          DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
          ReportTrackingListenerFailuresOpTrait]>;

def MicroKernelOp : PtoOp<"microkernel", [AttrSizedOperandSegments]> {
  let summary = "Turn a linalg op and its fused producers into register tiles";
  let description = [{
    Marks `target`, together with the contraction or reduction whose only user it
    is and that one's accumulator fill, to become loops over register tiles in
    native vectors once the kernel is on buffers. `tile_sizes` gives the tile along the last dims of the
    target's result (0: the whole dim; dims before them: 1); the last dim is
    vectorised. `unroll` says how many iterations of the last reduction loops
    are unrolled (0: all). `vector_loop` places the loop over the last dim among
    the tile loops (0: outermost; -1, the default: innermost). `vector_bits` is
    the native vector width. `prefetch` (0 or 1): while a panel of a packed
    operand is in use, fetch the next one.

    Sizes that a tile does not divide get a static tail of their own; a vector
    that is not full is masked. Sizes that are only known at run time get a
    tail of single steps, masked along the last dim. An op that is part of a
    micro-kernel already is left alone. Several targets are taken last to first,
    so that consumers fuse their producers. With `where_possible`, targets that
    do not satisfy the preconditions stay as they are.

    #### Return modes

    Modifies `target`. A definite failure if a param is no integer. A silenceable
    failure, with the IR unchanged, if a precondition does not hold: not one
    result on tensors, a body with ops that are not elementwise, a result map
    that is no permutation, more than 2048 vector operations in a tile.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
      Variadic<TransformAnyParamTypeOrAnyHandle>:$dynamic_sizes,
      DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">:$static_sizes,
      Variadic<TransformAnyParamTypeOrAnyHandle>:$dynamic_unroll,
      DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">:$static_unroll,
      Optional<TransformParamTypeInterface>:$vector_loop,
      Optional<TransformParamTypeInterface>:$vector_bits,
      Optional<TransformParamTypeInterface>:$prefetch,
      UnitAttr:$where_possible);
  let results = (outs);
  let assemblyFormat = [{
    $target `tile_sizes` custom<DynamicIndexList>($dynamic_sizes, $static_sizes)
    (`unroll` custom<DynamicIndexList>($dynamic_unroll, $static_unroll)^)?
    (`vector_loop` `(` $vector_loop^ `)`)? (`vector_bits` `(` $vector_bits^ `)`)?
    (`prefetch` `(` $prefetch^ `)`)? (`where_possible` $where_possible^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def PackOperandOp : PtoOp<"pack_operand"> {
  let summary = "Store an operand in panels along one loop";
  let description = [{
    Rewrites input `operand` of the linalg.generic `target` to the layout
    [N/tile][rest...][tile], N being the extent of `loop` (default: the loop of
    the result's last dim); the last panel is padded with zeros. The packing itself is a copy before the op, marked
    `pto.pack` (a linalg.pack if the last panel is ragged); on a weight,
    `transform.pto.split_prepack` moves it to compile time. A `tile` of
    0 or 1 changes nothing.

    #### Return modes

    Modifies `target`, handles stay valid. Silenceable failure if the operand is
    not indexed by plain loops, `loop` does not index it, or its size is dynamic.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
      TransformAnyParamTypeOrAnyHandle:$tile,
      I64Attr:$operand, OptionalAttr<I64Attr>:$loop);
  let results = (outs);
  let assemblyFormat = [{
    $target `[` $operand `]` (`loop` $loop^)? `tile` $tile
    attr-dict `:` functional-type(operands, results)
  }];
}

def SplitPrepackOp : PtoOp<"split_prepack"> {
  let summary = "Move what depends on weights alone into @kernel_prepack";
  let description = [{
    Each func.func in `target` whose arguments carry `pto.role = "weight"` is
    split: ops that depend on weights and constants alone go to a second
    function, run once when a model is compiled; the kernel takes its results as
    arguments instead (`pto.prepack = j`). A kernel without such ops is left
    alone.

    #### Return modes

    Modifies `target`, handles to ops that stay remain valid. Silenceable failure
    if a packed weight would have a dynamic shape.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target);
  let results = (outs);
  let assemblyFormat = "$target attr-dict `:` type($target)";
}

def DistributeOp : PtoOp<"distribute", [AttrSizedOperandSegments]> {
  let summary = "Split a chain among threads along one dim of its result";
  let description = [{
    Tiles `target`, with the linalg ops that it alone consumes, into at most
    `threads` chunks along dim `dim` of its result (negative: from the end), as
    one scf.forall. Chunks are multiples of the panels in which operands
    are packed along the dim, or else of `multiple_of`, so that neither panels
    nor register tiles are cut; dims that number independent products are cut
    anywhere. Of two values there, the second is for the last dim, the first for
    all others. With `chunks`, there are about so many for each thread: threads
    take one after the other, so that one that is interrupted does not keep the
    others waiting; fewer if that shares the work out more evenly. A size known
    at run time is divided then. With one thread, or when the dim has only one
    chunk, the target itself is returned.

    #### Return modes

    Consumes `target`; returns the op to go on with. Definite failure if a param
    is no integer or tiling fails; silenceable if the dim does not exist.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
      TransformParamTypeInterface:$dim, TransformParamTypeInterface:$threads,
      Optional<TransformParamTypeInterface>:$chunks,
      Variadic<TransformParamTypeInterface>:$multiple_of);
  let results = (outs TransformHandleTypeInterface:$tiled);
  let assemblyFormat = [{
    $target `dim` `(` $dim `)` `threads` `(` $threads `)`
    (`chunks` `(` $chunks^ `)`)? (`multiple_of` `(` $multiple_of^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def MatchKernelOp : PtoOp<"match_kernel"> {
  let summary = "Match kernels by what their anchor computes";
  let description = [{
    Succeeds if the kernel (a func.func, or the module around it) has exactly
    one op marked `pto.anchor` and that is of `kind`: "matmul" (also batched),
    "conv" (any rank, stride, dilation, group), "depthwise_conv", "pooling",
    "reduction", "elementwise", "transpose". The kind is found from the
    structure of the op, not from its name. With `weights`, the anchor's second
    input must also come from a weight of the kernel alone; with `rank`, the
    anchor's result has that rank, with `min_rows` at least so many rows (its
    last but one dim).

    #### Return modes

    Reads only. Silenceable failure on a mismatch.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$kind,
      UnitAttr:$weights, OptionalAttr<I64Attr>:$rank,
      OptionalAttr<I64Attr>:$min_rows);
  let results = (outs);
  let assemblyFormat = "$target $kind (`weights` $weights^)? attr-dict `:` type($target)";
}

def TileChainOp : PtoOp<"tile_chain"> {
  let summary = "Tile an op and pull the linalg ops that only it uses along";
  let description = [{
    Tiles `target` by `tile_sizes` (one entry per loop, 0: not tiled), fuses the
    linalg producers that it alone consumes (the contraction, its fill), and
    leaves pads and packs outside. With `parallel` the loops are one scf.forall.
    `interchange` orders sequential loops. If all sizes are 0, the target itself
    is returned.

    #### Return modes

    Consumes `target`; returns the tiled op. Definite failure if tiling fails or
    a reduction loop would run in parallel.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
      Variadic<TransformAnyParamTypeOrAnyHandle>:$dynamic_sizes,
      DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">:$static_sizes,
      DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">:$interchange,
      UnitAttr:$parallel);
  let results = (outs TransformHandleTypeInterface:$tiled);
  let assemblyFormat = [{
    $target `tile_sizes` custom<DynamicIndexList>($dynamic_sizes, $static_sizes)
    (`interchange` `=` $interchange^)? (`parallel` $parallel^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

#endif // PTO_OPS
