module @jit_collapsed_gather attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1x5xf32>, %arg1: tensor<2x1xi32>) -> (tensor<2xf32> {jax.result_info = "result"}) {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<1x5xf32>, tensor<2x1xi32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
