// RUN: pto-opt --pto-sink-reshapes --split-input-file %s | FileCheck %s

#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#col = affine_map<(d0, d1, d2) -> (d2)>
#rows = affine_map<(d0, d1, d2) -> (d0, d1)>
#mm0 = affine_map<(d0, d1, d2) -> (d0, d2)>
#mm1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#mm2 = affine_map<(d0, d1, d2) -> (d0, d1)>

// Bias, residual sum and the sum over rows take the matmul's shape; the
// residual is reshaped, not the product.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[R:[a-z0-9]+]]: tensor<2x4x16xf32>
// CHECK: %[[M:.*]] = linalg.generic {{.*}}"reduction"
// CHECK: linalg.generic {{.*}} ins(%[[M]], %{{.*}} : tensor<8x16xf32>, tensor<16xf32>)
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[R]]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[C]] : tensor<8x16xf32>, tensor<8x16xf32>)
// CHECK: linalg.generic {{.*}}["parallel", "reduction"]} ins(%{{.*}} : tensor<8x16xf32>) outs(%{{.*}} : tensor<8xf32>)
// CHECK: tensor.expand_shape %{{.*}} : tensor<8xf32> into tensor<2x4xf32>
func.func @main(%r: tensor<2x4x16xf32>, %a: tensor<8x8xf32>, %b: tensor<8x16xf32>, %bias: tensor<16xf32>) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %m = linalg.generic {indexing_maps = [#mm0, #mm1, #mm2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<8x8xf32>, tensor<8x16xf32>) outs(%f : tensor<8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x16xf32>
  %m3 = tensor.expand_shape %m [[0, 1], [2]] output_shape [2, 4, 16] : tensor<8x16xf32> into tensor<2x4x16xf32>
  %e3 = tensor.empty() : tensor<2x4x16xf32>
  %s = linalg.generic {indexing_maps = [#id3, #col, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%m3, %bias : tensor<2x4x16xf32>, tensor<16xf32>) outs(%e3 : tensor<2x4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x16xf32>
  %t = linalg.generic {indexing_maps = [#id3, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %r : tensor<2x4x16xf32>, tensor<2x4x16xf32>) outs(%e3 : tensor<2x4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x16xf32>
  %e2 = tensor.empty() : tensor<2x4xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x4xf32>) -> tensor<2x4xf32>
  %u = linalg.generic {indexing_maps = [#id3, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%t : tensor<2x4x16xf32>) outs(%f2 : tensor<2x4xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.addf %o, %x : f32
    linalg.yield %0 : f32
  } -> tensor<2x4xf32>
  return %u : tensor<2x4xf32>
}

// -----

#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#mid = affine_map<(d0, d1, d2) -> (d1)>

// An operand that walks one loop of two that would become one keeps the shape
// as it is.
// CHECK-LABEL: func.func @main
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<2x4x16xf32>, tensor<4xf32>)
func.func @main(%a: tensor<8x16xf32>, %p: tensor<4xf32>) -> tensor<2x4x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %m = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = math.exp %x : f32
    linalg.yield %0 : f32
  } -> tensor<8x16xf32>
  %m3 = tensor.expand_shape %m [[0, 1], [2]] output_shape [2, 4, 16] : tensor<8x16xf32> into tensor<2x4x16xf32>
  %e3 = tensor.empty() : tensor<2x4x16xf32>
  %s = linalg.generic {indexing_maps = [#id3, #mid, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%m3, %p : tensor<2x4x16xf32>, tensor<4xf32>) outs(%e3 : tensor<2x4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x16xf32>
  return %s : tensor<2x4x16xf32>
}
