// y = relu(x W), k passed through, c constant: what a caller can meet.
module attributes {pto.model = "small net"} {
  func.func @main(%x: tensor<2x3xf32> {pto.name = "x"},
                  %k: tensor<4xi32> {pto.name = "k"})
      -> (tensor<2x4xf32> {pto.name = "y"}, tensor<4xi32> {pto.name = "k_out"},
          tensor<2xf32> {pto.name = "c"}) {
    %w = arith.constant dense<[[1.0, 0.0, 0.0, 1.0],
                               [0.0, 1.0, 0.0, 1.0],
                               [0.0, 0.0, -1.0, 1.0]]> : tensor<3x4xf32>
    %c = arith.constant dense<[2.5, -2.5]> : tensor<2xf32>
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<2x4xf32>
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x4xf32>)
        -> tensor<2x4xf32>
    %m = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x4xf32>)
        outs(%fill : tensor<2x4xf32>) -> tensor<2x4xf32>
    %y = linalg.generic {
        indexing_maps = [affine_map<(i, j) -> (i, j)>,
                         affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%m : tensor<2x4xf32>) outs(%empty : tensor<2x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.maximumf %a, %zero : f32
      linalg.yield %r : f32
    } -> tensor<2x4xf32>
    return %y, %k, %c : tensor<2x4xf32>, tensor<4xi32>, tensor<2xf32>
  }
}
