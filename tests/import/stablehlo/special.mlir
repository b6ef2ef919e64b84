module @jit_special attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x5xf32>) -> (tensor<2x5xf32> {jax.result_info = "result[0]"}, tensor<2x5xf32> {jax.result_info = "result[1]"}, tensor<2x5xf32> {jax.result_info = "result[2]"}, tensor<2x5xf32> {jax.result_info = "result[3]"}, tensor<2x5xf32> {jax.result_info = "result[4]"}, tensor<2x5xf32> {jax.result_info = "result[5]"}, tensor<2x5xf32> {jax.result_info = "result[6]"}) {
    %0 = chlo.erf %arg0 : tensor<2x5xf32> -> tensor<2x5xf32>
    %1 = chlo.erfc %arg0 : tensor<2x5xf32> -> tensor<2x5xf32>
    %cst = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x5xf32>
    %3 = stablehlo.divide %arg0, %2 : tensor<2x5xf32>
    %4 = chlo.erf_inv %3 : tensor<2x5xf32> -> tensor<2x5xf32>
    %5 = chlo.lgamma %arg0 : tensor<2x5xf32> -> tensor<2x5xf32>
    %6 = stablehlo.negate %arg0 : tensor<2x5xf32>
    %7 = stablehlo.exponential %6 : tensor<2x5xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x5xf32>
    %9 = stablehlo.add %8, %7 : tensor<2x5xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x5xf32>
    %11 = stablehlo.divide %10, %9 : tensor<2x5xf32>
    %12 = stablehlo.log_plus_one %arg0 : tensor<2x5xf32>
    %13 = stablehlo.cbrt %arg0 : tensor<2x5xf32>
    return %0, %1, %4, %5, %11, %12, %13 : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  }
}
