// RUN: pto-opt --pto-constants %s | FileCheck %s --check-prefix=MOVE
// RUN: pto-opt --pto-generalize --pto-evaluate-constants --canonicalize %s | FileCheck %s --check-prefix=EVAL

// MOVE: func.func private @constants() -> tensor<2x2xf32>
// MOVE: linalg.transpose
// MOVE-LABEL: func.func @main
// MOVE-NOT: linalg.transpose
// MOVE: call @constants()
// MOVE: linalg.add

// 10*w transposed, w = [[1, 2], [3, 4]]. A fill is not worth storing.
// EVAL-NOT: @constants
// EVAL-LABEL: func.func @main
// EVAL: arith.constant dense<{{\[\[}}1.000000e+01, 3.000000e+01], [2.000000e+01, 4.000000e+01]]>
// EVAL: linalg.fill
func.func @main(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %ten = arith.constant 10.0 : f32
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x2xf32>
  %tens = linalg.fill ins(%ten : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %m = linalg.mul ins(%w, %tens : tensor<2x2xf32>, tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %t = linalg.transpose ins(%m : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) permutation = [1, 0]
  %s = linalg.add ins(%x, %t : tensor<2x2xf32>, tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %s, %tens : tensor<2x2xf32>, tensor<2x2xf32>
}
