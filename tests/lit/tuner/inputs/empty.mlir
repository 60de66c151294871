// No rows, and sums over nothing.
#x = affine_map<(i, j) -> (i, j)>
#s = affine_map<(i, j) -> (i)>
module attributes {pto.model = "empty"} {
  func.func @main(%x: tensor<0x3xf32> {pto.name = "x"},
                  %w: tensor<3x4xf32> {pto.name = "w"},
                  %z: tensor<5x0xf32> {pto.name = "z"})
      -> (tensor<0x4xf32> {pto.name = "y"}, tensor<5xf32> {pto.name = "s"}) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %e = tensor.empty() : tensor<0x4xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<0x4xf32>) -> tensor<0x4xf32>
    %y = linalg.matmul ins(%x, %w : tensor<0x3xf32>, tensor<3x4xf32>)
        outs(%f : tensor<0x4xf32>) -> tensor<0x4xf32>
    %es = tensor.empty() : tensor<5xf32>
    %fs = linalg.fill ins(%one : f32) outs(%es : tensor<5xf32>) -> tensor<5xf32>
    %s = linalg.generic {indexing_maps = [#x, #s],
                         iterator_types = ["parallel", "reduction"]}
        ins(%z : tensor<5x0xf32>) outs(%fs : tensor<5xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.addf %a, %o : f32
      linalg.yield %r : f32
    } -> tensor<5xf32>
    return %y, %s : tensor<0x4xf32>, tensor<5xf32>
  }
}
