// https://github.com/openxla/xla/issues/47366: a sort whose comparator reduces an array.
module @permuted {
  func.func @main(%arg0: tensor<16xf32>, %arg1: tensor<16xi32>) -> (tensor<16xf32>, tensor<16xi32>) {
    %0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
      %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %x = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<2xf32>
      %y = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<2xf32>
      %sx = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
      %sy = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
      %lt = stablehlo.compare LT, %sx, %sy, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    }) : (tensor<16xf32>, tensor<16xi32>) -> (tensor<16xf32>, tensor<16xi32>)
    return %0#0, %0#1 : tensor<16xf32>, tensor<16xi32>
  }
}
