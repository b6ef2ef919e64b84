module @jit_window_gather attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5x6xf32>, %arg1: tensor<4x2xi32>) -> (tensor<4x2x3xf32> {jax.result_info = "result[0]"}, tensor<3x4xf32> {jax.result_info = "result[1]"}) {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 2, 3>}> : (tensor<3x5x6xf32>, tensor<4x2xi32>) -> tensor<4x2x3xf32>
    %1 = stablehlo.slice %arg1 [0:3, 0:1] : (tensor<4x2xi32>) -> tensor<3x1xi32>
    %2 = "stablehlo.gather"(%arg0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<3x5x6xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
    return %0, %2 : tensor<4x2x3xf32>, tensor<3x4xf32>
  }
}
