// RUN: pto-opt --pto-generalize --pto-split-products --canonicalize --split-input-file %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>

// Queries and keys in one product: the slices are of weights and bias.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[W:.*]] = arith.constant dense_resource<w>
// CHECK-DAG: %[[B:.*]] = arith.constant dense_resource<b>
// CHECK: tensor.extract_slice %[[W]][0, 0] [8, 32] [1, 1]
// CHECK: linalg.generic {{.*}}"reduction"{{.*}} ins(%arg0, %{{.*}} : tensor<4x8xf32>, tensor<8x32xf32>)
// CHECK: tensor.extract_slice %[[B]][0] [32] [1]
// CHECK: tensor.extract_slice %[[W]][0, 32] [8, 32] [1, 1]
// CHECK: linalg.generic {{.*}}"reduction"{{.*}} ins(%arg0, %{{.*}} : tensor<4x8xf32>, tensor<8x32xf32>)
// CHECK: tensor.extract_slice %[[B]][32] [32] [1]
// CHECK-NOT: tensor<4x64xf32>
func.func @main(%x: tensor<4x8xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<8x64xf32>
  %b = arith.constant dense_resource<b> : tensor<64xf32>
  %e = tensor.empty() : tensor<4x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  %m = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x64xf32>) outs(%f : tensor<4x64xf32>) -> tensor<4x64xf32>
  %s = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %b : tensor<4x64xf32>, tensor<64xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.addf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<4x64xf32>
  %h = tensor.expand_shape %s [[0], [1, 2, 3]] output_shape [4, 2, 2, 16] : tensor<4x64xf32> into tensor<4x2x2x16xf32>
  %e4 = tensor.empty() : tensor<2x2x4x16xf32>
  %t = linalg.transpose ins(%h : tensor<4x2x2x16xf32>) outs(%e4 : tensor<2x2x4x16xf32>) permutation = [1, 2, 0, 3]
  %q = tensor.extract_slice %t[0, 0, 0, 0] [1, 2, 4, 16] [1, 1, 1, 1] : tensor<2x2x4x16xf32> to tensor<2x4x16xf32>
  %k = tensor.extract_slice %t[1, 0, 0, 0] [1, 2, 4, 16] [1, 1, 1, 1] : tensor<2x2x4x16xf32> to tensor<2x4x16xf32>
  return %q, %k : tensor<2x4x16xf32>, tensor<2x4x16xf32>
}

// -----

// Rows are not columns of the weights, and what else reads the product needs
// it whole.
// CHECK-LABEL: func.func @main
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<64x32xf32>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<64x32xf32>)
// CHECK-NOT: linalg.generic
func.func @main(%x: tensor<64x8xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<64x16xf32>, tensor<64x16xf32>, tensor<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<8x32xf32>
  %v = arith.constant dense_resource<v> : tensor<8x32xf32>
  %e = tensor.empty() : tensor<64x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %m = linalg.matmul ins(%x, %w : tensor<64x8xf32>, tensor<8x32xf32>) outs(%f : tensor<64x32xf32>) -> tensor<64x32xf32>
  %a = tensor.extract_slice %m[0, 0] [32, 32] [1, 1] : tensor<64x32xf32> to tensor<32x32xf32>
  %b = tensor.extract_slice %m[32, 0] [32, 32] [1, 1] : tensor<64x32xf32> to tensor<32x32xf32>
  %n = linalg.matmul ins(%x, %v : tensor<64x8xf32>, tensor<8x32xf32>) outs(%f : tensor<64x32xf32>) -> tensor<64x32xf32>
  %c = tensor.extract_slice %n[0, 0] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %d = tensor.extract_slice %n[0, 16] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  return %a, %b, %c, %d, %n : tensor<32x32xf32>, tensor<32x32xf32>, tensor<64x16xf32>, tensor<64x16xf32>, tensor<64x32xf32>
}
