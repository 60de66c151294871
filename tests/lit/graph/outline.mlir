// RUN: pto-opt --pto-no-fuse --pto-outline --pto-name-kernels --split-input-file %s | FileCheck %s

// Padding and concatenation write to their output; a sum that starts from a
// value copies it there first.
// CHECK: func.func private @pad_6_{{[0-9a-f]+}}(%[[X:.*]]: tensor<4xf32> {pto.role = "input"}, %[[O:.*]]: tensor<6xf32> {bufferization.writable = true, pto.role = "output"})
// CHECK: linalg.fill {{.*}} outs(%[[O]]
// CHECK: tensor.insert_slice %[[X]] into {{.*}} {pto.anchor, pto.root}
// CHECK: func.func private @{{.*}}(%[[A:.*]]: tensor<6xf32> {{.*}}, %[[B:.*]]: tensor<4xf32> {{.*}}, %[[O:.*]]: tensor<10xf32>
// CHECK: %[[S:.*]] = tensor.insert_slice %[[A]] into %[[O]][0] [6] [1]
// CHECK: tensor.insert_slice %[[B]] into %[[S]][6] [4] [1]
// CHECK: func.func private @sum_1_k10_{{[0-9a-f]+}}(%{{.*}}: tensor<10xf32> {{.*}}, %[[I:.*]]: tensor<1xf32> {pto.role = "input"}, %[[O:.*]]: tensor<1xf32>
// CHECK: %[[C:.*]] = linalg.generic {{.*}} ins(%[[I]] {{.*}} outs(%[[O]]
// CHECK: linalg.generic {{.*}} outs(%[[C]] {{.*}} attrs = {pto.anchor, pto.root}
func.func @main(%x: tensor<4xf32>, %init: tensor<1xf32>) -> tensor<1xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<6xf32>
  %c = tensor.concat dim(0) %p, %x : (tensor<6xf32>, tensor<4xf32>) -> tensor<10xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<10xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.addf %o, %v : f32
    linalg.yield %0 : f32
  } -> tensor<1xf32>
  return %s : tensor<1xf32>
}
