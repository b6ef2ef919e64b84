module @jit_complex_numbers attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> (tensor<2x3xf32> {jax.result_info = "result[0]"}, tensor<2x3xf32> {jax.result_info = "result[1]"}, tensor<2x3xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.convert %arg1 : (tensor<2x3xf32>) -> tensor<2x3xcomplex<f32>>
    %cst = stablehlo.constant dense<(0.000000e+00,1.000000e+00)> : tensor<complex<f32>>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<2x3xcomplex<f32>>
    %2 = stablehlo.multiply %1, %0 : tensor<2x3xcomplex<f32>>
    %3 = stablehlo.convert %arg0 : (tensor<2x3xf32>) -> tensor<2x3xcomplex<f32>>
    %4 = stablehlo.add %3, %2 : tensor<2x3xcomplex<f32>>
    %5 = stablehlo.exponential %4 : tensor<2x3xcomplex<f32>>
    %6 = stablehlo.real %4 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %7 = stablehlo.imag %4 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %8 = stablehlo.negate %7 : tensor<2x3xf32>
    %9 = stablehlo.complex %6, %8 : tensor<2x3xcomplex<f32>>
    %10 = stablehlo.multiply %5, %9 : tensor<2x3xcomplex<f32>>
    %11 = stablehlo.abs %10 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %12 = stablehlo.multiply %4, %4 : tensor<2x3xcomplex<f32>>
    %13 = stablehlo.real %12 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %14 = call @angle(%4) : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    return %11, %13, %14 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
  func.func private @angle(%arg0: tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32> {
    %0 = stablehlo.real %arg0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %1 = stablehlo.imag %arg0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %2 = stablehlo.atan2 %1, %0 : tensor<2x3xf32>
    return %2 : tensor<2x3xf32>
  }
}
