// https://github.com/openxla/stablehlo/issues/3011: a convolution with its features before the batch.
module @conv {
  func.func @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<3x3x2xf32>) -> tensor<2x2x4xf32> {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [0, f, b]x[0, i, o]->[0, f, b], window = {stride = [1], pad = [[1, 1]], rhs_dilate = [1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x4xf32>, tensor<3x3x2xf32>) -> tensor<2x2x4xf32>
    return %0 : tensor<2x2x4xf32>
  }
}
