// https://github.com/openxla/xla/issues/25487: the whole array is sorted for its largest numbers.
module @reactant_partialsort attributes {mhlo.num_partitions = 1 : i64, mhlo.num_replicas = 1 : i64} {
  func.func @main(%arg0: tensor<1000xf32>) -> tensor<10xi64> {
    %c = stablehlo.constant dense<1> : tensor<10xi32>
    %0 = stablehlo.negate %arg0 : tensor<1000xf32>
    %values, %indices = chlo.top_k(%0, k = 10) : tensor<1000xf32> -> (tensor<10xf32>, tensor<10xi32>)
    %1 = stablehlo.add %indices, %c : tensor<10xi32>
    %2 = stablehlo.convert %1 : (tensor<10xi32>) -> tensor<10xi64>
    %3 = stablehlo.reverse %2, dims = [0] : tensor<10xi64>
    return %3 : tensor<10xi64>
  }
}
