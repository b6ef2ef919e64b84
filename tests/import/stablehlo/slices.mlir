module @jit_slices attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x6xf32>) -> (tensor<3x3xf32> {jax.result_info = "result[0]"}, tensor<6xf32> {jax.result_info = "result[1]"}, tensor<5x6xf32> {jax.result_info = "result[2]"}, tensor<3x3xf32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.slice %arg0 [1:4, 0:6:2] : (tensor<5x6xf32>) -> tensor<3x3xf32>
    %1 = stablehlo.slice %arg0 [4:5, 0:6] : (tensor<5x6xf32>) -> tensor<1x6xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x6xf32>) -> tensor<6xf32>
    %3 = stablehlo.reverse %arg0, dims = [1] : tensor<5x6xf32>
    %c = stablehlo.constant dense<3> : tensor<i32>
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %4 = stablehlo.dynamic_slice %arg0, %c, %c_0, sizes = [3, 3] : (tensor<5x6xf32>, tensor<i32>, tensor<i32>) -> tensor<3x3xf32>
    return %0, %2, %3, %4 : tensor<3x3xf32>, tensor<6xf32>, tensor<5x6xf32>, tensor<3x3xf32>
  }
}
