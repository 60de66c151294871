// Sizes known only at run time: the arena and the outputs follow them.
#id = affine_map<(i, j) -> (i, j)>
module attributes {pto.model = "dynamic"} {
  func.func private @double(
      %x: tensor<?x4xf32> {pto.role = "input"},
      %out: tensor<?x4xf32> {pto.role = "output", bufferization.writable = true})
      -> tensor<?x4xf32> attributes {pto.kernel, pto.key = "1"} {
    %r = linalg.generic {indexing_maps = [#id, #id],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<?x4xf32>) outs(%out : tensor<?x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %a, %a : f32
      linalg.yield %s : f32
    } -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
  func.func @main(%x: tensor<?x4xf32> {pto.name = "x", pto.dims = ["n", ""]},
                  %z: tensor<?xf32> {pto.name = "z", pto.dims = ["n"]})
      -> (tensor<?xf32> {pto.name = "y"}, tensor<?x4xf32> {pto.name = "x2"}) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %n = tensor.dim %x, %c0 : tensor<?x4xf32>
    %e = tensor.empty(%n) : tensor<?x4xf32>
    %a = call @double(%x, %e) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %b = call @double(%a, %e) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %c = call @double(%b, %e) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %d = call @double(%c, %e) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %y = tensor.collapse_shape %d [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
    return %y, %a : tensor<?xf32>, tensor<?x4xf32>
  }
}
