module @jit_trigonometry attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6xf32>) -> (tensor<6xf32> {jax.result_info = "result[0]"}, tensor<6xf32> {jax.result_info = "result[1]"}, tensor<6xf32> {jax.result_info = "result[2]"}, tensor<6xf32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.sine %arg0 : tensor<6xf32>
    %1 = stablehlo.cosine %arg0 : tensor<6xf32>
    %2 = stablehlo.tan %arg0 : tensor<6xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<6xf32>
    %4 = stablehlo.add %0, %3 : tensor<6xf32>
    %5 = chlo.asin %arg0 : tensor<6xf32> -> tensor<6xf32>
    %6 = chlo.acos %arg0 : tensor<6xf32> -> tensor<6xf32>
    %7 = stablehlo.add %5, %6 : tensor<6xf32>
    %8 = chlo.atan %arg0 : tensor<6xf32> -> tensor<6xf32>
    %9 = stablehlo.add %7, %8 : tensor<6xf32>
    %10 = chlo.sinh %arg0 : tensor<6xf32> -> tensor<6xf32>
    %11 = chlo.cosh %arg0 : tensor<6xf32> -> tensor<6xf32>
    %12 = stablehlo.add %10, %11 : tensor<6xf32>
    %13 = stablehlo.tanh %arg0 : tensor<6xf32>
    %14 = stablehlo.add %12, %13 : tensor<6xf32>
    %15 = chlo.asinh %arg0 : tensor<6xf32> -> tensor<6xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %17 = stablehlo.add %16, %arg0 : tensor<6xf32>
    %18 = call @arccosh(%17) : (tensor<6xf32>) -> tensor<6xf32>
    %19 = stablehlo.add %15, %18 : tensor<6xf32>
    %20 = chlo.atanh %arg0 : tensor<6xf32> -> tensor<6xf32>
    %21 = stablehlo.add %19, %20 : tensor<6xf32>
    return %4, %9, %14, %21 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  }
  func.func private @arccosh(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.acosh %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
