// RUN: pto-opt --pto-fuse --pto-outline --pto-localise-sizes %s | FileCheck %s
// RUN: pto-opt --pto-fuse --pto-outline --pto-localise-sizes --pto-collapse %s | FileCheck %s --check-prefix=COLLAPSED

// The accumulator's rows are sized by the output, so that the model's input,
// which only gave its shape, is no argument of the kernel.
// CHECK: func.func private @kernel_0(%{{.*}}: tensor<?x?x8xf32> {pto.role = "input"}, %{{.*}}: tensor<8x16xf32> {{.*}}, %[[OUT:[a-z0-9]+]]: tensor<?x?x16xf32>
// CHECK-NOT: arith.muli
// CHECK-DAG: %[[D0:.*]] = tensor.dim %[[OUT]], %c0
// CHECK-DAG: %[[D1:.*]] = tensor.dim %[[OUT]], %c1
// CHECK: tensor.empty(%[[D0]], %[[D1]]) : tensor<?x?x16xf32>
// CHECK: call @kernel_0(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}})

// Batch and rows are one dim: the product is a plain matmul.
// COLLAPSED: func.func private @kernel_0(%{{.*}}: tensor<?x8xf32> {{.*}}, %{{.*}}: tensor<8x16xf32> {{.*}}, %[[OUT:[a-z0-9]+]]: tensor<?x16xf32>
// COLLAPSED: %[[D:.*]] = tensor.dim %[[OUT]], %c0
// COLLAPSED: tensor.empty(%[[D]]) : tensor<?x16xf32>
// COLLAPSED: iterator_types = ["parallel", "parallel", "reduction"]
#x = affine_map<(b, m, n, k) -> (b, m, k)>
#w = affine_map<(b, m, n, k) -> (k, n)>
#o = affine_map<(b, m, n, k) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
func.func @main(%shape: tensor<?x?xi64>, %x: tensor<?x?x8xf32>) -> tensor<?x?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<8x16xf32>
  %b = tensor.dim %shape, %c0 : tensor<?x?xi64>
  %m = tensor.dim %shape, %c1 : tensor<?x?xi64>
  %e = tensor.empty(%b, %m) : tensor<?x?x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x?x8xf32>, tensor<8x16xf32>) outs(%f : tensor<?x?x16xf32>) {
  ^bb0(%i: f32, %j: f32, %a: f32):
    %0 = arith.mulf %i, %j : f32
    %1 = arith.addf %a, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?x?x16xf32>
  %e2 = tensor.empty(%b, %m) : tensor<?x?x16xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%p : tensor<?x?x16xf32>) outs(%e2 : tensor<?x?x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = arith.maximumf %i, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<?x?x16xf32>
  return %r : tensor<?x?x16xf32>
}
