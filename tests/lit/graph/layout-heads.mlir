// RUN: pto-opt --pto-generalize --pto-layout --canonicalize %s | FileCheck %s

// Products per head are stored as the transpose behind them is read: [rows,
// heads, columns]. The transpose in front of them is an indexing map, for its
// source cannot be stored in its order.
// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, d3)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d1, d2)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func.func @main
// CHECK: linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[C]]]
// CHECK-SAME: outs(%{{.*}} : tensor<128x8x64xf32>)
// CHECK-NOT: linalg.generic
// CHECK: tensor.collapse_shape %{{.*}} : tensor<128x8x64xf32> into tensor<128x512xf32>
func.func @main(%p: tensor<8x128x128xf32>, %v: tensor<128x512xf32>) -> tensor<128x512xf32> {
  %zero = arith.constant 0.0 : f32
  %v3 = tensor.expand_shape %v [[0], [1, 2]] output_shape [128, 8, 64] : tensor<128x512xf32> into tensor<128x8x64xf32>
  %e = tensor.empty() : tensor<8x128x64xf32>
  %vt = linalg.transpose ins(%v3 : tensor<128x8x64xf32>) outs(%e : tensor<8x128x64xf32>) permutation = [1, 0, 2]
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x128x64xf32>) -> tensor<8x128x64xf32>
  %m = linalg.batch_matmul ins(%p, %vt : tensor<8x128x128xf32>, tensor<8x128x64xf32>) outs(%f : tensor<8x128x64xf32>) -> tensor<8x128x64xf32>
  %m4 = tensor.expand_shape %m [[0, 1], [2], [3]] output_shape [1, 8, 128, 64] : tensor<8x128x64xf32> into tensor<1x8x128x64xf32>
  %e4 = tensor.empty() : tensor<1x128x8x64xf32>
  %t = linalg.transpose ins(%m4 : tensor<1x8x128x64xf32>) outs(%e4 : tensor<1x128x8x64xf32>) permutation = [0, 2, 1, 3]
  %c = tensor.collapse_shape %t [[0, 1], [2, 3]] : tensor<1x128x8x64xf32> into tensor<128x512xf32>
  return %c : tensor<128x512xf32>
}
