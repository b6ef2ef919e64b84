module @jit_function_reduction attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5xf32>) -> (tensor<3xf32> {jax.result_info = "result[0]"}, tensor<5xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) across dimensions = [1] : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
     reducer(%arg1: tensor<f32>, %arg2: tensor<f32>)  {
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      %cst_0 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %3 = stablehlo.multiply %cst_0, %arg1 : tensor<f32>
      %4 = stablehlo.multiply %3, %arg2 : tensor<f32>
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %5 = stablehlo.multiply %4, %cst_1 : tensor<f32>
      %6 = stablehlo.subtract %2, %5 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }
    %1 = call @_ptp(%arg0) : (tensor<3x5xf32>) -> tensor<5xf32>
    return %0, %1 : tensor<3xf32>, tensor<5xf32>
  }
  func.func private @_ptp(%arg0: tensor<3x5xf32>) -> tensor<5xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [0] : (tensor<3x5xf32>, tensor<f32>) -> tensor<5xf32>
    %cst_0 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.minimum across dimensions = [0] : (tensor<3x5xf32>, tensor<f32>) -> tensor<5xf32>
    %2 = stablehlo.subtract %0, %1 : tensor<5xf32>
    return %2 : tensor<5xf32>
  }
}
