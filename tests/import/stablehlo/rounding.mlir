module @jit_rounding attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x3xf32>) -> (tensor<4x3xf32> {jax.result_info = "result[0]"}, tensor<4x3xf32> {jax.result_info = "result[1]"}, tensor<4x3xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.floor %arg0 : tensor<4x3xf32>
    %1 = stablehlo.ceil %arg0 : tensor<4x3xf32>
    %2 = stablehlo.add %0, %1 : tensor<4x3xf32>
    %3 = call @round(%arg0) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %4 = stablehlo.multiply %3, %arg0 : tensor<4x3xf32>
    %5 = stablehlo.add %2, %4 : tensor<4x3xf32>
    %cst = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %6 = call @clip(%arg0, %cst, %cst_0) : (tensor<4x3xf32>, tensor<f32>, tensor<f32>) -> tensor<4x3xf32>
    %7 = stablehlo.sign %arg0 : tensor<4x3xf32>
    %8 = stablehlo.multiply %7, %arg0 : tensor<4x3xf32>
    return %5, %6, %8 : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
  }
  func.func private @round(%arg0: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
  func.func private @clip(%arg0: tensor<4x3xf32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<4x3xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<4x3xf32>
    %3 = stablehlo.convert %arg2 : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<4x3xf32>
    return %5 : tensor<4x3xf32>
  }
}
