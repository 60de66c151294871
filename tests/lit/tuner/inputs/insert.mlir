// A weight is read, then partly overwritten in the result: never in place.
module attributes {pto.model = "insert"} {
  func.func private @paste(
      %x: tensor<1x4xf32> {pto.role = "input"},
      %w: tensor<3x4xf32> {pto.role = "weight"},
      %out: tensor<3x4xf32> {pto.role = "output", bufferization.writable = true})
      -> tensor<3x4xf32> attributes {pto.kernel, pto.key = "0"} {
    %c = linalg.copy ins(%w : tensor<3x4xf32>) outs(%out : tensor<3x4xf32>)
        -> tensor<3x4xf32>
    %r = tensor.insert_slice %x into %c[1, 0] [1, 4] [1, 1]
        : tensor<1x4xf32> into tensor<3x4xf32>
    return %r : tensor<3x4xf32>
  }
  func.func @main(%x: tensor<1x4xf32> {pto.name = "x"})
      -> (tensor<3x4xf32> {pto.name = "y"}, tensor<3x4xf32> {pto.name = "w"}) {
    %w = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0],
                               [9.0, 10.0, 11.0, 12.0]]> : tensor<3x4xf32>
    %e = tensor.empty() : tensor<3x4xf32>
    %y = call @paste(%x, %w, %e)
        : (tensor<1x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    return %y, %w : tensor<3x4xf32>, tensor<3x4xf32>
  }
}
