module @jit_max_pool_gradient attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x1x7x7xf32>) -> (tensor<2x1x7x7xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %14 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %14 : tensor<f32>
    }) : (tensor<2x1x7x7xf32>, tensor<f32>) -> tensor<2x1x3x3xf32>
    %2 = stablehlo.iota dim = 0 : tensor<9xf32>
    %3 = stablehlo.reshape %2 : (tensor<9xf32>) -> tensor<3x3xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [2, 3] : (tensor<3x3xf32>) -> tensor<1x1x3x3xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : (tensor<1x1x3x3xf32>) -> tensor<2x1x3x3xf32>
    %6 = stablehlo.multiply %1, %5 : tensor<2x1x3x3xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_0) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x1x3x3xf32>, tensor<f32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x1x3x3xf32>
    %9 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : (tensor<1x1x3x3xf32>) -> tensor<2x1x3x3xf32>
    %10 = stablehlo.multiply %8, %9 : tensor<2x1x3x3xf32>
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %11 = stablehlo.pad %arg0, %cst_2, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<2x1x7x7xf32>, tensor<f32>) -> tensor<2x1x7x7xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = "stablehlo.select_and_scatter"(%11, %10, %cst_3) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %14 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %14 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %14 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %14 : tensor<f32>
    }) : (tensor<2x1x7x7xf32>, tensor<2x1x3x3xf32>, tensor<f32>) -> tensor<2x1x7x7xf32>
    %13 = stablehlo.slice %12 [0:2, 0:1, 0:7, 0:7] : (tensor<2x1x7x7xf32>) -> tensor<2x1x7x7xf32>
    return %13 : tensor<2x1x7x7xf32>
  }
}
