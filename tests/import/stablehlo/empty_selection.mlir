module @jit_empty_selection attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xf32>) -> (tensor<0xf32> {jax.result_info = "result[0]"}, tensor<0xi32> {jax.result_info = "result[1]"}) {
    %values, %indices = chlo.top_k(%arg0, k = 0) : tensor<3xf32> -> (tensor<0xf32>, tensor<0xi32>)
    return %values, %indices : tensor<0xf32>, tensor<0xi32>
  }
}
