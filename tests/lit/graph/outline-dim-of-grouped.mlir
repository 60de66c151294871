// The size of a value that moves into a kernel is asked for, in the group and
// behind it: it comes from what the value's size is computed from.

// RUN: pto-opt %s --pto-outline | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT:     linalg.generic
// CHECK:         %[[N:.*]] = tensor.dim %arg0, %{{.*}} : tensor<?x10xf32>
// CHECK-NOT:     linalg.generic
// CHECK:         return
#row = affine_map<(d0, d1) -> (d0, d1)>
#sum = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<?x10xf32>) -> (tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x10xf32>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x10xf32>) outs(%init : tensor<?xf32>) attrs = {pto.group = 0 : i64} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %m = tensor.dim %sum, %c0 : tensor<?xf32>
  %place = tensor.empty(%m) : tensor<?xf32>
  %root = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%sum : tensor<?xf32>) outs(%place : tensor<?xf32>) attrs = {pto.group = 0 : i64} {
  ^bb0(%in: f32, %out: f32):
    %s = math.exp %in : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %root, %m : tensor<?xf32>, index
}
