// https://github.com/openxla/xla/issues/47363: windows of integers behind a barrier.
module {
  func.func @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.negate %arg0 : tensor<3xf32>
    %1 = stablehlo.optimization_barrier %0 : tensor<3xf32>
    %2 = stablehlo.reverse %1, dims = [0] : tensor<3xf32>
    %3 = stablehlo.convert %2 : (tensor<3xf32>) -> tensor<3xi8>
    %4 = stablehlo.reshape %3 : (tensor<3xi8>) -> tensor<1x3xi8>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<1x3xi8>) -> tensor<30x3xi8>
    %c = stablehlo.constant dense<0> : tensor<i8>
    %6 = "stablehlo.reduce_window"(%5, %c) <{padding = dense<[[29, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 30, 1>}> ({
    ^bb0(%arg1: tensor<i8>, %arg2: tensor<i8>):
      %10 = stablehlo.add %arg1, %arg2 : tensor<i8>
      stablehlo.return %10 : tensor<i8>
    }) : (tensor<30x3xi8>, tensor<i8>) -> tensor<30x3xi8>
    %7 = stablehlo.slice %6 [29:30, 0:3] : (tensor<30x3xi8>) -> tensor<1x3xi8>
    %8 = stablehlo.reshape %7 : (tensor<1x3xi8>) -> tensor<3xi8>
    %9 = stablehlo.convert %8 : (tensor<3xi8>) -> tensor<3xf32>
    return %9 : tensor<3xf32>
  }
}
