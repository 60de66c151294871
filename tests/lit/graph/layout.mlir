// RUN: pto-opt --pto-generalize --pto-layout --canonicalize --split-input-file %s | FileCheck %s

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// The first convolution reads the model's input as it is; everything after it
// has channels last. Loops: n, h, w, oc, kh, kw, ic; weights as walked.
// CHECK-DAG: #[[IN:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d6, d1 + d4, d2 + d5)>
// CHECK-DAG: #[[W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
// CHECK-DAG: #[[NHWC:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
// CHECK-LABEL: func.func @main
// CHECK: tensor.pad {{.*}} low[0, 0, 1, 1]
// CHECK: linalg.generic {indexing_maps = [#[[IN]], #[[W]], #{{.*}}]
// CHECK-SAME: outs(%{{.*}} : tensor<1x8x8x16xf32>)
// CHECK: arith.maximumf
// CHECK: tensor.pad {{.*}} low[0, 1, 1, 0]
// CHECK: linalg.generic {indexing_maps = [#[[NHWC]], #[[W]], #{{.*}}]
// A model's output has the model's layout.
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<1x8x8x32xf32>) outs(%{{.*}} : tensor<1x32x8x8xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: linalg.yield %in
func.func @main(%x: tensor<1x3x8x8xf32>) -> tensor<1x32x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %w0 = arith.constant dense_resource<a> : tensor<16x3x3x3xf32>
  %w1 = arith.constant dense_resource<b> : tensor<32x16x3x3xf32>
  %p0 = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x3x8x8xf32> to tensor<1x3x10x10xf32>
  %e0 = tensor.empty() : tensor<1x16x8x8xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %c0 = linalg.conv_2d_nchw_fchw ins(%p0, %w0 : tensor<1x3x10x10xf32>, tensor<16x3x3x3xf32>) outs(%f0 : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %r0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c0 : tensor<1x16x8x8xf32>) outs(%e0 : tensor<1x16x8x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.maximumf %v, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<1x16x8x8xf32>
  %p1 = tensor.pad %r0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x16x8x8xf32> to tensor<1x16x10x10xf32>
  %e1 = tensor.empty() : tensor<1x32x8x8xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  %c1 = linalg.conv_2d_nchw_fchw ins(%p1, %w1 : tensor<1x16x10x10xf32>, tensor<32x16x3x3xf32>) outs(%f1 : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  return %c1 : tensor<1x32x8x8xf32>
}

// -----

// Transposes in front of a convolution cancel: the input is stored as wanted.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<1x8x8x16xf32>
// CHECK-NOT: tensor<1x16x8x8xf32>
// CHECK: "reduction"{{.*}} ins(%[[X]], %{{.*}} : tensor<1x8x8x16xf32>, tensor<3x3x16xf32>)
// CHECK-NOT: tensor<1x16x6x6xf32>
// CHECK: return %{{.*}} : tensor<1x6x6x16xf32>
func.func @main(%x: tensor<1x8x8x16xf32>) -> tensor<1x6x6x16xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<a> : tensor<16x3x3xf32>
  %et = tensor.empty() : tensor<1x16x8x8xf32>
  %t = linalg.transpose ins(%x : tensor<1x8x8x16xf32>) outs(%et : tensor<1x16x8x8xf32>) permutation = [0, 3, 1, 2]
  %e = tensor.empty() : tensor<1x16x6x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x16x6x6xf32>) -> tensor<1x16x6x6xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw ins(%t, %w : tensor<1x16x8x8xf32>, tensor<16x3x3xf32>) outs(%f : tensor<1x16x6x6xf32>) -> tensor<1x16x6x6xf32>
  %eu = tensor.empty() : tensor<1x6x6x16xf32>
  %u = linalg.transpose ins(%c : tensor<1x16x6x6xf32>) outs(%eu : tensor<1x6x6x16xf32>) permutation = [0, 2, 3, 1]
  return %u : tensor<1x6x6x16xf32>
}

// -----

#in = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#out = affine_map<(d0, d1, d2, d3) -> (d0, d1)>

// Without convolutions nothing moves, and a transpose that someone needs stays.
// CHECK-LABEL: func.func @main
// CHECK: ins(%{{.*}} : tensor<2x3x4x5xf32>) outs(%{{.*}} : tensor<2x3xf32>)
// CHECK: ins(%{{.*}} : tensor<2x3xf32>) outs(%{{.*}} : tensor<3x2xf32>)
func.func @main(%x: tensor<2x3x4x5xf32>) -> tensor<3x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %s = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x : tensor<2x3x4x5xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.addf %v, %o : f32
    linalg.yield %0 : f32
  } -> tensor<2x3xf32>
  %et = tensor.empty() : tensor<3x2xf32>
  %t = linalg.transpose ins(%s : tensor<2x3xf32>) outs(%et : tensor<3x2xf32>) permutation = [1, 0]
  return %t : tensor<3x2xf32>
}
