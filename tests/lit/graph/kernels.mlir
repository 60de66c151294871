// RUN: pto-opt --pto-build-kernels %s | FileCheck %s
// RUN: pto-opt --pto-build-kernels-O0 %s | FileCheck %s --check-prefix=O0

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#ch = affine_map<(d0, d1, d2, d3) -> (d1)>

// Two 1x1 convolutions of one shape are one matmul kernel, called twice, with
// its bias and clip inside; the transposes around them cancel.
// CHECK: func.func private @[[K:matmul_64x2_k2_bias_clip_[0-9a-f]+]](
// CHECK-SAME: tensor<64x2xf32> {pto.role = "input"}
// CHECK-SAME: tensor<2x2xf32> {pto.role = "weight"}
// CHECK-SAME: tensor<2xf32> {pto.role = "weight"}
// CHECK-SAME: tensor<64x2xf32> {bufferization.writable = true, pto.role = "output"}
// CHECK-SAME: attributes {pto.kernel, pto.key = "{{[0-9a-f]+}}"}
// CHECK: linalg.fill
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]{{.*}} attrs = {pto.anchor}
// CHECK: linalg.generic {{.*}} attrs = {pto.root}
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: arith.minimumf
// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg
// CHECK: call @[[K]]({{.*}}) {pto.region = 0 : i64}
// CHECK-NOT: linalg
// CHECK: call @[[K]]({{.*}}) {pto.region = 1 : i64}
// CHECK-NOT: linalg
// CHECK: return

// Without optimisation each op is a kernel.
// O0: func.func private @[[CONV:conv1x1_2x8x8_k2_[0-9a-f]+]](
// O0: func.func private @[[CLIP:bias_clip_2x8x8_[0-9a-f]+]](
// O0-LABEL: func.func @main
// O0: call @[[CONV]]
// O0: call @[[CLIP]]
// O0: call @[[CONV]]
// O0: call @[[CLIP]]
func.func @main(%nhwc: tensor<1x8x8x2xf32>) -> tensor<1x8x8x2xf32> {
  %et = tensor.empty() : tensor<1x2x8x8xf32>
  %x = linalg.transpose ins(%nhwc : tensor<1x8x8x2xf32>) outs(%et : tensor<1x2x8x8xf32>) permutation = [0, 3, 1, 2]
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %w = arith.constant dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>
  %b = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<1x2x8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %c0 = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x2x8x8xf32>, tensor<2x2x1x1xf32>) outs(%f : tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %r0 = linalg.generic {indexing_maps = [#id, #ch, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c0, %b : tensor<1x2x8x8xf32>, tensor<2xf32>) outs(%e : tensor<1x2x8x8xf32>) {
  ^bb0(%v: f32, %y: f32, %o: f32):
    %0 = arith.addf %v, %y : f32
    %1 = arith.maximumf %0, %zero : f32
    %2 = arith.minimumf %1, %six : f32
    linalg.yield %2 : f32
  } -> tensor<1x2x8x8xf32>
  %c1 = linalg.conv_2d_nchw_fchw ins(%r0, %w : tensor<1x2x8x8xf32>, tensor<2x2x1x1xf32>) outs(%f : tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %r1 = linalg.generic {indexing_maps = [#id, #ch, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c1, %b : tensor<1x2x8x8xf32>, tensor<2xf32>) outs(%e : tensor<1x2x8x8xf32>) {
  ^bb0(%v: f32, %y: f32, %o: f32):
    %0 = arith.addf %v, %y : f32
    %1 = arith.maximumf %0, %zero : f32
    %2 = arith.minimumf %1, %six : f32
    linalg.yield %2 : f32
  } -> tensor<1x2x8x8xf32>
  %eu = tensor.empty() : tensor<1x8x8x2xf32>
  %u = linalg.transpose ins(%r1 : tensor<1x2x8x8xf32>) outs(%eu : tensor<1x8x8x2xf32>) permutation = [0, 2, 3, 1]
  return %u : tensor<1x8x8x2xf32>
}

