module @jit_complex_logsumexps attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x5xf32>, %arg1: tensor<2x5xf32>) -> (tensor<2x5xf32> {jax.result_info = "result[0]"}, tensor<2x5xf32> {jax.result_info = "result[1]"}, tensor<2x5xf32> {jax.result_info = "result[2]"}, tensor<2x5xf32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.complex %arg0, %arg1 : tensor<2x5xcomplex<f32>>
    %1 = call @cumlogsumexp(%0) : (tensor<2x5xcomplex<f32>>) -> tensor<2x5xcomplex<f32>>
    %2 = stablehlo.complex %arg0, %arg1 : tensor<2x5xcomplex<f32>>
    %3 = call @cumlogsumexp_0(%2) : (tensor<2x5xcomplex<f32>>) -> tensor<2x5xcomplex<f32>>
    %4 = stablehlo.real %1 : (tensor<2x5xcomplex<f32>>) -> tensor<2x5xf32>
    %5 = stablehlo.imag %1 : (tensor<2x5xcomplex<f32>>) -> tensor<2x5xf32>
    %6 = stablehlo.real %3 : (tensor<2x5xcomplex<f32>>) -> tensor<2x5xf32>
    %7 = stablehlo.imag %3 : (tensor<2x5xcomplex<f32>>) -> tensor<2x5xf32>
    return %4, %5, %6, %7 : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  }
  func.func private @cumlogsumexp(%arg0: tensor<2x5xcomplex<f32>>) -> tensor<2x5xcomplex<f32>> {
    %cst = stablehlo.constant dense<(0xFF800000,0.000000e+00)> : tensor<complex<f32>>
    %0 = "stablehlo.reduce_window"(%arg0, %cst) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [4, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 5>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<complex<f32>>, %arg2: tensor<complex<f32>>):
      %1 = stablehlo.real %arg1 : (tensor<complex<f32>>) -> tensor<f32>
      %2 = stablehlo.real %arg2 : (tensor<complex<f32>>) -> tensor<f32>
      %3 = stablehlo.compare EQ, %1, %2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.compare GT, %1, %2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = stablehlo.imag %arg1 : (tensor<complex<f32>>) -> tensor<f32>
      %6 = stablehlo.imag %arg2 : (tensor<complex<f32>>) -> tensor<f32>
      %7 = stablehlo.compare GT, %5, %6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %8 = stablehlo.select %3, %7, %4 : tensor<i1>, tensor<i1>
      %9 = stablehlo.select %8, %arg1, %arg2 : tensor<i1>, tensor<complex<f32>>
      %10 = stablehlo.add %arg1, %arg2 : tensor<complex<f32>>
      %cst_0 = stablehlo.constant dense<(2.000000e+00,0.000000e+00)> : tensor<complex<f32>>
      %11 = stablehlo.multiply %9, %cst_0 : tensor<complex<f32>>
      %12 = stablehlo.subtract %10, %11 : tensor<complex<f32>>
      %13 = stablehlo.exponential %12 : tensor<complex<f32>>
      %14 = stablehlo.log_plus_one %13 : tensor<complex<f32>>
      %15 = stablehlo.add %9, %14 : tensor<complex<f32>>
      %16 = stablehlo.real %15 : (tensor<complex<f32>>) -> tensor<f32>
      %17 = stablehlo.imag %15 : (tensor<complex<f32>>) -> tensor<f32>
      %cst_1 = stablehlo.constant dense<3.14159274> : tensor<f32>
      %18 = stablehlo.add %17, %cst_1 : tensor<f32>
      %cst_2 = stablehlo.constant dense<6.28318548> : tensor<f32>
      %19 = stablehlo.remainder %18, %cst_2 : tensor<f32>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %20 = stablehlo.compare LT, %19, %cst_3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<6.28318548> : tensor<f32>
      %21 = stablehlo.add %19, %cst_4 : tensor<f32>
      %22 = stablehlo.select %20, %21, %19 : tensor<i1>, tensor<f32>
      %cst_5 = stablehlo.constant dense<3.14159274> : tensor<f32>
      %23 = stablehlo.subtract %22, %cst_5 : tensor<f32>
      %24 = stablehlo.complex %16, %23 : tensor<complex<f32>>
      stablehlo.return %24 : tensor<complex<f32>>
    }) : (tensor<2x5xcomplex<f32>>, tensor<complex<f32>>) -> tensor<2x5xcomplex<f32>>
    return %0 : tensor<2x5xcomplex<f32>>
  }
  func.func private @cumlogsumexp_0(%arg0: tensor<2x5xcomplex<f32>>) -> tensor<2x5xcomplex<f32>> {
    %cst = stablehlo.constant dense<(0xFF800000,0.000000e+00)> : tensor<complex<f32>>
    %0 = "stablehlo.reduce_window"(%arg0, %cst) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 4]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 5>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<complex<f32>>, %arg2: tensor<complex<f32>>):
      %1 = stablehlo.real %arg1 : (tensor<complex<f32>>) -> tensor<f32>
      %2 = stablehlo.real %arg2 : (tensor<complex<f32>>) -> tensor<f32>
      %3 = stablehlo.compare EQ, %1, %2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.compare GT, %1, %2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = stablehlo.imag %arg1 : (tensor<complex<f32>>) -> tensor<f32>
      %6 = stablehlo.imag %arg2 : (tensor<complex<f32>>) -> tensor<f32>
      %7 = stablehlo.compare GT, %5, %6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %8 = stablehlo.select %3, %7, %4 : tensor<i1>, tensor<i1>
      %9 = stablehlo.select %8, %arg1, %arg2 : tensor<i1>, tensor<complex<f32>>
      %10 = stablehlo.add %arg1, %arg2 : tensor<complex<f32>>
      %cst_0 = stablehlo.constant dense<(2.000000e+00,0.000000e+00)> : tensor<complex<f32>>
      %11 = stablehlo.multiply %9, %cst_0 : tensor<complex<f32>>
      %12 = stablehlo.subtract %10, %11 : tensor<complex<f32>>
      %13 = stablehlo.exponential %12 : tensor<complex<f32>>
      %14 = stablehlo.log_plus_one %13 : tensor<complex<f32>>
      %15 = stablehlo.add %9, %14 : tensor<complex<f32>>
      %16 = stablehlo.real %15 : (tensor<complex<f32>>) -> tensor<f32>
      %17 = stablehlo.imag %15 : (tensor<complex<f32>>) -> tensor<f32>
      %cst_1 = stablehlo.constant dense<3.14159274> : tensor<f32>
      %18 = stablehlo.add %17, %cst_1 : tensor<f32>
      %cst_2 = stablehlo.constant dense<6.28318548> : tensor<f32>
      %19 = stablehlo.remainder %18, %cst_2 : tensor<f32>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %20 = stablehlo.compare LT, %19, %cst_3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<6.28318548> : tensor<f32>
      %21 = stablehlo.add %19, %cst_4 : tensor<f32>
      %22 = stablehlo.select %20, %21, %19 : tensor<i1>, tensor<f32>
      %cst_5 = stablehlo.constant dense<3.14159274> : tensor<f32>
      %23 = stablehlo.subtract %22, %cst_5 : tensor<f32>
      %24 = stablehlo.complex %16, %23 : tensor<complex<f32>>
      stablehlo.return %24 : tensor<complex<f32>>
    }) : (tensor<2x5xcomplex<f32>>, tensor<complex<f32>>) -> tensor<2x5xcomplex<f32>>
    return %0 : tensor<2x5xcomplex<f32>>
  }
}
