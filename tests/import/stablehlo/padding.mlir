module @jit_padding attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x5xf32>) -> (tensor<10x2xf32> {jax.result_info = "result[0]"}, tensor<8x9xf32> {jax.result_info = "result[1]"}, tensor<4x5xf32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = stablehlo.pad %arg0, %cst, low = [1, -1], high = [2, -2], interior = [1, 0] : (tensor<4x5xf32>, tensor<f32>) -> tensor<10x2xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = call @_pad(%arg0, %c) : (tensor<4x5xf32>, tensor<i32>) -> tensor<8x9xf32>
    %2 = call @_roll_static(%arg0) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    return %0, %1, %2 : tensor<10x2xf32>, tensor<8x9xf32>, tensor<4x5xf32>
  }
  func.func private @_pad(%arg0: tensor<4x5xf32>, %arg1: tensor<i32>) -> tensor<8x9xf32> {
    %0 = stablehlo.slice %arg0 [0:1, 0:5] : (tensor<4x5xf32>) -> tensor<1x5xf32>
    %1 = stablehlo.slice %arg0 [1:3, 0:5] : (tensor<4x5xf32>) -> tensor<2x5xf32>
    %2 = call @_flip(%1) : (tensor<2x5xf32>) -> tensor<2x5xf32>
    %3 = stablehlo.concatenate %2, %arg0, dim = 0 : (tensor<2x5xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
    %4 = stablehlo.slice %3 [5:6, 0:5] : (tensor<6x5xf32>) -> tensor<1x5xf32>
    %5 = stablehlo.slice %3 [3:5, 0:5] : (tensor<6x5xf32>) -> tensor<2x5xf32>
    %6 = call @_flip(%5) : (tensor<2x5xf32>) -> tensor<2x5xf32>
    %7 = stablehlo.concatenate %3, %6, dim = 0 : (tensor<6x5xf32>, tensor<2x5xf32>) -> tensor<8x5xf32>
    %8 = stablehlo.slice %7 [0:8, 0:1] : (tensor<8x5xf32>) -> tensor<8x1xf32>
    %9 = stablehlo.slice %7 [0:8, 1:3] : (tensor<8x5xf32>) -> tensor<8x2xf32>
    %10 = call @_flip_0(%9) : (tensor<8x2xf32>) -> tensor<8x2xf32>
    %11 = stablehlo.concatenate %10, %7, dim = 1 : (tensor<8x2xf32>, tensor<8x5xf32>) -> tensor<8x7xf32>
    %12 = stablehlo.slice %11 [0:8, 6:7] : (tensor<8x7xf32>) -> tensor<8x1xf32>
    %13 = stablehlo.slice %11 [0:8, 4:6] : (tensor<8x7xf32>) -> tensor<8x2xf32>
    %14 = call @_flip_0(%13) : (tensor<8x2xf32>) -> tensor<8x2xf32>
    %15 = stablehlo.concatenate %11, %14, dim = 1 : (tensor<8x7xf32>, tensor<8x2xf32>) -> tensor<8x9xf32>
    return %15 : tensor<8x9xf32>
  }
  func.func private @_flip(%arg0: tensor<2x5xf32>) -> tensor<2x5xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<2x5xf32>
    return %0 : tensor<2x5xf32>
  }
  func.func private @_flip_0(%arg0: tensor<8x2xf32>) -> tensor<8x2xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<8x2xf32>
    return %0 : tensor<8x2xf32>
  }
  func.func private @_roll_static(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.slice %arg0 [0:4, 3:5] : (tensor<4x5xf32>) -> tensor<4x2xf32>
    %1 = stablehlo.slice %arg0 [0:4, 0:3] : (tensor<4x5xf32>) -> tensor<4x3xf32>
    %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
    return %2 : tensor<4x5xf32>
  }
}
