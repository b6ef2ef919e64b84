module @jit_precision attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>) -> (tensor<3x4xf32> {jax.result_info = "result[0]"}, tensor<3x4xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.reduce_precision %arg0, format = e8m7 : tensor<3x4xf32>
    %1 = stablehlo.multiply %0, %arg0 : tensor<3x4xf32>
    %2 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<3x4xf32>
    return %1, %2 : tensor<3x4xf32>, tensor<3x4xf32>
  }
}
