// RUN: pto-opt --pto-generalize --pto-fold-batch-norm --split-input-file %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>

// ((x + bias) - mean) * scale, in two ops: the weights are scaled by `scale`,
// and what is left is one add per column.
// CHECK-LABEL: func.func @main
// The pair (a, b) of x*a + b:
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]
// CHECK: arith.subf
// CHECK: arith.mulf
// The weights:
// CHECK: %[[W:.*]] = linalg.generic
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK: %[[C:.*]] = linalg.generic {{.*}}"reduction"{{.*}} ins(%{{.*}}, %[[W]] :
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[C]], %{{.*}} : tensor<4x16xf32>, tensor<16xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
// CHECK: return %[[R]]
func.func @main(%a: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<2.0> : tensor<8x16xf32>
  %bias = arith.constant dense<3.0> : tensor<16xf32>
  %mean = arith.constant dense<4.0> : tensor<16xf32>
  %scale = arith.constant dense<5.0> : tensor<16xf32>
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %m = linalg.matmul ins(%a, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%f : tensor<4x16xf32>) -> tensor<4x16xf32>
  %b = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %bias : tensor<4x16xf32>, tensor<16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<4x16xf32>
  %n = linalg.generic {indexing_maps = [#id, #col, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%b, %mean, %scale : tensor<4x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %o: f32):
    %0 = arith.subf %x, %y : f32
    %1 = arith.mulf %0, %z : f32
    linalg.yield %1 : f32
  } -> tensor<4x16xf32>
  return %n : tensor<4x16xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A factor per row is no factor of the weights; and a sum that someone else
// reads must keep its value.
// CHECK-LABEL: func.func @main
// CHECK: "reduction"
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<4x16xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
func.func @main(%a: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<2.0> : tensor<8x16xf32>
  %scale = arith.constant dense<5.0> : tensor<4xf32>
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %m = linalg.matmul ins(%a, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%f : tensor<4x16xf32>) -> tensor<4x16xf32>
  %n = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %scale : tensor<4x16xf32>, tensor<4xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<4x16xf32>
  return %n : tensor<4x16xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]] = linalg.generic {{.*}}"reduction"
// CHECK: %[[N:.*]] = linalg.generic
// CHECK: arith.mulf
// CHECK: return %[[C]], %[[N]]
func.func @main(%a: tensor<4x8xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<2.0> : tensor<8x16xf32>
  %scale = arith.constant dense<5.0> : tensor<16xf32>
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %m = linalg.matmul ins(%a, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%f : tensor<4x16xf32>) -> tensor<4x16xf32>
  %n = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %scale : tensor<4x16xf32>, tensor<16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<4x16xf32>
  return %m, %n : tensor<4x16xf32>, tensor<4x16xf32>
}
