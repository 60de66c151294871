// RUN: pto-opt --pto-verify-kernels --split-input-file --verify-diagnostics %s

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @+1 {{is left in @main after kernels were formed}}
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{is left in @main after kernels were formed}}
  %z = linalg.log ins(%y : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

// expected-error @+2 {{kernel @k: argument 0 has no pto.role}}
// expected-error @+1 {{kernel @k: needs one pto.anchor and one pto.root}}
func.func private @k(%x: tensor<4xf32>, %y: tensor<4xf32> {pto.role = "output"}) -> tensor<4xf32> attributes {pto.kernel} {
  return %y : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{the module has no function @main with one block}}
module {
}
