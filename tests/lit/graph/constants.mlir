// RUN: pto-opt --split-input-file --pto-constants %s | FileCheck %s --check-prefix=MOVE
// RUN: pto-opt --split-input-file --pto-generalize --pto-evaluate-constants --canonicalize %s | FileCheck %s --check-prefix=EVAL

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

// -----

// A concatenation is evaluated whole or not at all: what its first parts leave
// unwritten is no constant.
// EVAL-LABEL: func.func @main
// EVAL-DAG: %[[PAIR:.*]] = arith.constant dense<[1.000000e+01, 2.000000e+01, 3.000000e+01, 3.000000e+01]>
// EVAL-DAG: %[[PART:.*]] = arith.constant dense<[2.000000e+01, 4.000000e+01]>
// EVAL: tensor.insert_slice %[[PART]] into %{{.*}}[0] [2] [1]
// EVAL: tensor.insert_slice %{{.*}} into %{{.*}}[2] [2] [1]
// EVAL: return %{{.*}}, %[[PAIR]]
func.func @main(%x: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = arith.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %b = arith.constant dense<30.0> : tensor<2xf32>
  %e2 = tensor.empty() : tensor<2xf32>
  %e = tensor.empty() : tensor<4xf32>
  %d = linalg.add ins(%a, %a : tensor<2xf32>, tensor<2xf32>) outs(%e2 : tensor<2xf32>) -> tensor<2xf32>
  %0 = tensor.insert_slice %d into %e[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %1 = tensor.insert_slice %x into %0[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %2 = tensor.insert_slice %a into %e[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %3 = tensor.insert_slice %b into %2[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}
