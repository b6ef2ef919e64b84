module @jit_bit_casts attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xui32>) -> (tensor<3x4x4xui8> {jax.result_info = "result[0]"}, tensor<3x4xui32> {jax.result_info = "result[1]"}, tensor<3x4xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<3x4xui32>) -> tensor<3x4x4xui8>
    %1 = stablehlo.bitcast_convert %0 : (tensor<3x4x4xui8>) -> tensor<3x4xui32>
    %2 = stablehlo.bitcast_convert %arg0 : (tensor<3x4xui32>) -> tensor<3x4xf32>
    return %0, %1, %2 : tensor<3x4x4xui8>, tensor<3x4xui32>, tensor<3x4xf32>
  }
}
