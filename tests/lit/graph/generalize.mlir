// RUN: pto-opt --pto-generalize %s | FileCheck %s

// A contraction's multiply and add may form an FMA; a fill keeps its name.
// CHECK-LABEL: func.func @main
// CHECK: linalg.fill
// CHECK: linalg.generic
// CHECK: arith.mulf {{.*}} fastmath<contract>
// CHECK: arith.addf {{.*}} fastmath<contract>
// CHECK-NOT: linalg.matmul
// An elementwise op keeps its rounding.
// CHECK: arith.addf %{{[a-z_0-9]+}}, %{{[a-z_0-9]+}} : f32
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>, %c: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %m = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x16xf32>) outs(%f : tensor<4x16xf32>) -> tensor<4x16xf32>
  %s = linalg.add ins(%m, %c : tensor<4x16xf32>, tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %s : tensor<4x16xf32>
}
