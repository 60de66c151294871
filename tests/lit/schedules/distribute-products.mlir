// Register tiles of rows do not limit how independent products are shared out:
// two threads take three of them each.

// RUN: pto-opt %s --pto-apply-schedule=threads=2 | FileCheck %s

// CHECK: scf.forall {{.*}} {{in \(6\)|= \(0\) to \(6\) step \(3\)}}
#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @kernel(%x: tensor<6x128x64xf32> {pto.role = "input"}, %y: tensor<6x64x96xf32> {pto.role = "input"}, %out: tensor<6x128x96xf32> {pto.role = "output", bufferization.writable = true}) -> tensor<6x128x96xf32> {
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%out : tensor<6x128x96xf32>) -> tensor<6x128x96xf32>
  %r = linalg.generic {pto.anchor, pto.root, indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<6x128x64xf32>, tensor<6x64x96xf32>) outs(%f : tensor<6x128x96xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32):
    %m = arith.mulf %p, %q fastmath<contract> : f32
    %t = arith.addf %s, %m fastmath<contract> : f32
    linalg.yield %t : f32
  } -> tensor<6x128x96xf32>
  return %r : tensor<6x128x96xf32>
}
