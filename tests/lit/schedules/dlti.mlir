// A schedule can ask for the target's facts.
// RUN: rm -rf %t && mkdir %t
// RUN: pto-compile %s --db=none --threads=1 -o %t/x.so --save-temps=%t/temps
// RUN: cat %t/temps/03-*.kernel.mlir | FileCheck %s
// CHECK: dlti.target_system_spec
// CHECK-SAME: "vector_bits" = {{(128|256|512)}} : i64
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
