"""A small matrix product in the kernels form, for tests of schedules."""

KERNEL = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @kernel(%a: tensor<24x32xf32> {pto.role = "input"},
                  %b: tensor<32x48xf32> {pto.role = "input"},
                  %o: tensor<24x48xf32> {pto.role = "output", bufferization.writable = true}) -> tensor<24x48xf32> {
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<24x48xf32>) -> tensor<24x48xf32>
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<24x32xf32>, tensor<32x48xf32>) outs(%f : tensor<24x48xf32>) attrs = {pto.anchor, pto.root} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %m = arith.mulf %x, %y fastmath<contract> : f32
    %t = arith.addf %s, %m fastmath<contract> : f32
    linalg.yield %t : f32
  } -> tensor<24x48xf32>
  return %r : tensor<24x48xf32>
}
"""
