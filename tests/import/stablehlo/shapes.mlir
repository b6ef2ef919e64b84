module @jit_shapes attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4xf32>) -> (tensor<4x6xf32> {jax.result_info = "result[0]"}, tensor<6x6xf32> {jax.result_info = "result[1]"}, tensor<4x2x6xf32> {jax.result_info = "result[2]"}, tensor<8x6xf32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<4x2x3xf32>) -> tensor<4x6xf32>
    %2 = call @_flip(%1) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %3 = stablehlo.slice %1 [0:2, 0:6] : (tensor<4x6xf32>) -> tensor<2x6xf32>
    %4 = stablehlo.concatenate %1, %3, dim = 0 : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>
    %5 = stablehlo.negate %1 : tensor<4x6xf32>
    %6 = stablehlo.broadcast_in_dim %1, dims = [0, 2] : (tensor<4x6xf32>) -> tensor<4x1x6xf32>
    %7 = stablehlo.broadcast_in_dim %5, dims = [0, 2] : (tensor<4x6xf32>) -> tensor<4x1x6xf32>
    %8 = stablehlo.concatenate %6, %7, dim = 1 : (tensor<4x1x6xf32>, tensor<4x1x6xf32>) -> tensor<4x2x6xf32>
    %9 = stablehlo.reshape %1 : (tensor<4x6xf32>) -> tensor<1x4x1x6xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2, 3] : (tensor<1x4x1x6xf32>) -> tensor<2x4x1x6xf32>
    %11 = stablehlo.reshape %10 : (tensor<2x4x1x6xf32>) -> tensor<8x6xf32>
    return %2, %4, %8, %11 : tensor<4x6xf32>, tensor<6x6xf32>, tensor<4x2x6xf32>, tensor<8x6xf32>
  }
  func.func private @_flip(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}
