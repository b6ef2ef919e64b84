module @jit_gpt attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x7xi32>, %arg1: tensor<17x8xf32>, %arg2: tensor<7x8xf32>, %arg3: tensor<2x8x24xf32>, %arg4: tensor<2x8x8xf32>, %arg5: tensor<2x8x32xf32>, %arg6: tensor<2x32x8xf32>) -> (tensor<f32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x7xi32>
    %1 = stablehlo.compare LT, %arg0, %0, SIGNED : (tensor<2x7xi32>, tensor<2x7xi32>) -> tensor<2x7xi1>
    %c_0 = stablehlo.constant dense<17> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x7xi32>
    %3 = stablehlo.add %arg0, %2 : tensor<2x7xi32>
    %4 = stablehlo.select %1, %3, %arg0 : tensor<2x7xi1>, tensor<2x7xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x7xi32>) -> tensor<2x7x1xi32>
    %6 = "stablehlo.gather"(%arg1, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<17x8xf32>, tensor<2x7x1xi32>) -> tensor<2x7x8xf32>
    %7 = stablehlo.broadcast_in_dim %arg2, dims = [1, 2] : (tensor<7x8xf32>) -> tensor<1x7x8xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<1x7x8xf32>) -> tensor<2x7x8xf32>
    %9 = stablehlo.add %6, %8 : tensor<2x7x8xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %10:6 = stablehlo.while(%iterArg = %arg3, %iterArg_7 = %arg4, %iterArg_8 = %arg5, %iterArg_9 = %arg6, %iterArg_10 = %c_1, %iterArg_11 = %9) : tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x32xf32>, tensor<2x32x8xf32>, tensor<i32>, tensor<2x7x8xf32>
    cond {
      %c_12 = stablehlo.constant dense<2> : tensor<i32>
      %31 = stablehlo.compare LT, %iterArg_10, %c_12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %31 : tensor<i1>
    } do {
      %31 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_10) : (tensor<2x8x24xf32>, tensor<i32>) -> tensor<8x24xf32>
      %32 = func.call @dynamic_index_in_dim_0(%iterArg_7, %iterArg_10) : (tensor<2x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
      %33 = func.call @dynamic_index_in_dim_1(%iterArg_8, %iterArg_10) : (tensor<2x8x32xf32>, tensor<i32>) -> tensor<8x32xf32>
      %34 = func.call @dynamic_index_in_dim_2(%iterArg_9, %iterArg_10) : (tensor<2x32x8xf32>, tensor<i32>) -> tensor<32x8xf32>
      %35 = func.call @closed_call(%iterArg_11, %31, %32, %33, %34) : (tensor<2x7x8xf32>, tensor<8x24xf32>, tensor<8x8xf32>, tensor<8x32xf32>, tensor<32x8xf32>) -> tensor<2x7x8xf32>
      %c_12 = stablehlo.constant dense<1> : tensor<i32>
      %36 = stablehlo.add %iterArg_10, %c_12 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_7, %iterArg_8, %iterArg_9, %36, %35 : tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x32xf32>, tensor<2x32x8xf32>, tensor<i32>, tensor<2x7x8xf32>
    }
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%10#5 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x7x8xf32>, tensor<f32>) -> tensor<2x7xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %14 = stablehlo.divide %12, %13 : tensor<2x7x1xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x8xf32>
    %16 = stablehlo.subtract %10#5, %15 : tensor<2x7x8xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %17 = call @_var(%10#5, %c_3) : (tensor<2x7x8xf32>, tensor<i32>) -> tensor<2x7x1xf32>
    %cst_4 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %19 = stablehlo.add %17, %18 : tensor<2x7x1xf32>
    %20 = stablehlo.rsqrt %19 : tensor<2x7x1xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x8xf32>
    %22 = stablehlo.multiply %16, %21 : tensor<2x7x8xf32>
    %23 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<17x8xf32>) -> tensor<8x17xf32>
    %24 = stablehlo.dot_general %22, %23, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x7x8xf32>, tensor<8x17xf32>) -> tensor<2x7x17xf32>
    %25 = call @log_softmax(%24) : (tensor<2x7x17xf32>) -> tensor<2x7x17xf32>
    %26 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<2x7xi32>) -> tensor<2x7x1xi32>
    %27 = call @take_along_axis(%25, %26) : (tensor<2x7x17xf32>, tensor<2x7x1xi32>) -> tensor<2x7x1xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %28 = stablehlo.reduce(%27 init: %cst_5) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x7x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_6 = stablehlo.constant dense<1.400000e+01> : tensor<f32>
    %29 = stablehlo.divide %28, %cst_6 : tensor<f32>
    %30 = stablehlo.negate %29 : tensor<f32>
    return %30 : tensor<f32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<2x8x24xf32>, %arg1: tensor<i32>) -> tensor<8x24xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 24] : (tensor<2x8x24xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x24xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x24xf32>) -> tensor<8x24xf32>
    return %1 : tensor<8x24xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<2x8x8xf32>, %arg1: tensor<i32>) -> tensor<8x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 8] : (tensor<2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
  func.func private @dynamic_index_in_dim_1(%arg0: tensor<2x8x32xf32>, %arg1: tensor<i32>) -> tensor<8x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 32] : (tensor<2x8x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x32xf32>) -> tensor<8x32xf32>
    return %1 : tensor<8x32xf32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<2x32x8xf32>, %arg1: tensor<i32>) -> tensor<32x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 32, 8] : (tensor<2x32x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x32x8xf32>) -> tensor<32x8xf32>
    return %1 : tensor<32x8xf32>
  }
  func.func private @closed_call(%arg0: tensor<2x7x8xf32>, %arg1: tensor<8x24xf32>, %arg2: tensor<8x8xf32>, %arg3: tensor<8x32xf32>, %arg4: tensor<32x8xf32>) -> tensor<2x7x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x7x8xf32>, tensor<f32>) -> tensor<2x7xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %cst_0 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<2x7x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x8xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x7x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %6 = call @_var(%arg0, %c) : (tensor<2x7x8xf32>, tensor<i32>) -> tensor<2x7x1xf32>
    %cst_1 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %8 = stablehlo.add %6, %7 : tensor<2x7x1xf32>
    %9 = stablehlo.rsqrt %8 : tensor<2x7x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x8xf32>
    %11 = stablehlo.multiply %5, %10 : tensor<2x7x8xf32>
    %12 = stablehlo.dot_general %11, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x7x8xf32>, tensor<8x24xf32>) -> tensor<2x7x24xf32>
    %13 = stablehlo.slice %12 [0:2, 0:7, 0:8] : (tensor<2x7x24xf32>) -> tensor<2x7x8xf32>
    %14 = stablehlo.slice %12 [0:2, 0:7, 8:16] : (tensor<2x7x24xf32>) -> tensor<2x7x8xf32>
    %15 = stablehlo.slice %12 [0:2, 0:7, 16:24] : (tensor<2x7x24xf32>) -> tensor<2x7x8xf32>
    %16 = stablehlo.reshape %13 : (tensor<2x7x8xf32>) -> tensor<2x7x2x4xf32>
    %17 = stablehlo.reshape %14 : (tensor<2x7x8xf32>) -> tensor<2x7x2x4xf32>
    %18 = stablehlo.reshape %15 : (tensor<2x7x8xf32>) -> tensor<2x7x2x4xf32>
    %19 = stablehlo.dot_general %16, %17, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x7x2x4xf32>, tensor<2x7x2x4xf32>) -> tensor<2x2x7x7xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x2x7x7xf32>
    %21 = stablehlo.divide %19, %20 : tensor<2x2x7x7xf32>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %22 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i1>) -> tensor<7x7xi1>
    %23 = call @tril(%22) : (tensor<7x7xi1>) -> tensor<7x7xi1>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %24 = call @_where_3(%23, %21, %cst_4) : (tensor<7x7xi1>, tensor<2x2x7x7xf32>, tensor<f32>) -> tensor<2x2x7x7xf32>
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %25 = stablehlo.reduce(%24 init: %cst_5) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x7x7xf32>, tensor<f32>) -> tensor<2x2x7xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x2x7xf32>
    %27 = stablehlo.maximum %26, %25 : tensor<2x2x7xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2] : (tensor<2x2x7xf32>) -> tensor<2x2x7x1xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2, 3] : (tensor<2x2x7x1xf32>) -> tensor<2x2x7x7xf32>
    %30 = stablehlo.subtract %24, %29 : tensor<2x2x7x7xf32>
    %31 = stablehlo.exponential %30 : tensor<2x2x7x7xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %32 = stablehlo.reduce(%31 init: %cst_7) applies stablehlo.add across dimensions = [3] : (tensor<2x2x7x7xf32>, tensor<f32>) -> tensor<2x2x7xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2] : (tensor<2x2x7xf32>) -> tensor<2x2x7x1xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2, 3] : (tensor<2x2x7x1xf32>) -> tensor<2x2x7x7xf32>
    %35 = stablehlo.divide %31, %34 : tensor<2x2x7x7xf32>
    %36 = stablehlo.dot_general %18, %35, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x7x2x4xf32>, tensor<2x2x7x7xf32>) -> tensor<2x2x4x7xf32>
    %37 = stablehlo.transpose %36, dims = [0, 3, 1, 2] : (tensor<2x2x4x7xf32>) -> tensor<2x7x2x4xf32>
    %38 = stablehlo.reshape %37 : (tensor<2x7x2x4xf32>) -> tensor<2x7x8xf32>
    %39 = stablehlo.dot_general %38, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x7x8xf32>, tensor<8x8xf32>) -> tensor<2x7x8xf32>
    %40 = stablehlo.add %arg0, %39 : tensor<2x7x8xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %41 = stablehlo.reduce(%40 init: %cst_8) applies stablehlo.add across dimensions = [2] : (tensor<2x7x8xf32>, tensor<f32>) -> tensor<2x7xf32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [0, 1] : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %cst_9 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %44 = stablehlo.divide %42, %43 : tensor<2x7x1xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x8xf32>
    %46 = stablehlo.subtract %40, %45 : tensor<2x7x8xf32>
    %c_10 = stablehlo.constant dense<0> : tensor<i32>
    %47 = call @_var(%40, %c_10) : (tensor<2x7x8xf32>, tensor<i32>) -> tensor<2x7x1xf32>
    %cst_11 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %49 = stablehlo.add %47, %48 : tensor<2x7x1xf32>
    %50 = stablehlo.rsqrt %49 : tensor<2x7x1xf32>
    %51 = stablehlo.broadcast_in_dim %50, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x8xf32>
    %52 = stablehlo.multiply %46, %51 : tensor<2x7x8xf32>
    %53 = stablehlo.dot_general %52, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x7x8xf32>, tensor<8x32xf32>) -> tensor<2x7x32xf32>
    %54 = stablehlo.multiply %53, %53 : tensor<2x7x32xf32>
    %55 = stablehlo.multiply %54, %53 : tensor<2x7x32xf32>
    %cst_12 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2x7x32xf32>
    %57 = stablehlo.multiply %56, %55 : tensor<2x7x32xf32>
    %58 = stablehlo.add %53, %57 : tensor<2x7x32xf32>
    %cst_13 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %59 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2x7x32xf32>
    %60 = stablehlo.multiply %59, %58 : tensor<2x7x32xf32>
    %61 = stablehlo.tanh %60 : tensor<2x7x32xf32>
    %cst_14 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %62 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<2x7x32xf32>
    %63 = stablehlo.add %62, %61 : tensor<2x7x32xf32>
    %cst_15 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %64 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<2x7x32xf32>
    %65 = stablehlo.multiply %64, %63 : tensor<2x7x32xf32>
    %66 = stablehlo.multiply %53, %65 : tensor<2x7x32xf32>
    %67 = stablehlo.dot_general %66, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x7x32xf32>, tensor<32x8xf32>) -> tensor<2x7x8xf32>
    %68 = stablehlo.add %40, %67 : tensor<2x7x8xf32>
    return %68 : tensor<2x7x8xf32>
  }
  func.func private @_var(%arg0: tensor<2x7x8xf32>, %arg1: tensor<i32>) -> tensor<2x7x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x7x8xf32>, tensor<f32>) -> tensor<2x7xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %cst_0 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<2x7x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x8xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x7x8xf32>
    %6 = chlo.square %5 : tensor<2x7x8xf32> -> tensor<2x7x8xf32>
    %7 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %8 = stablehlo.subtract %cst_1, %7 : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.reduce(%6 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<2x7x8xf32>, tensor<f32>) -> tensor<2x7xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %11 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %12 = stablehlo.divide %10, %11 : tensor<2x7x1xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.compare GT, %8, %cst_3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = call @_where(%13, %12, %cst_4) : (tensor<i1>, tensor<2x7x1xf32>, tensor<f32>) -> tensor<2x7x1xf32>
    return %14 : tensor<2x7x1xf32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<2x7x1xf32>, %arg2: tensor<f32>) -> tensor<2x7x1xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<2x7x1xf32>
    return %2 : tensor<2x7x1xf32>
  }
  func.func private @tril(%arg0: tensor<7x7xi1>) -> tensor<7x7xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<7x7xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<7x7xi32>
    %2 = stablehlo.add %0, %1 : tensor<7x7xi32>
    %3 = stablehlo.iota dim = 1 : tensor<7x7xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<7x7xi32>, tensor<7x7xi32>) -> tensor<7x7xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<7x7xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<7x7xi1>, tensor<7x7xi1>
    return %6 : tensor<7x7xi1>
  }
  func.func private @_where_3(%arg0: tensor<7x7xi1>, %arg1: tensor<2x2x7x7xf32>, %arg2: tensor<f32>) -> tensor<2x2x7x7xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<7x7xi1>) -> tensor<2x2x7x7xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x2x7x7xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x2x7x7xi1>, tensor<2x2x7x7xf32>
    return %3 : tensor<2x2x7x7xf32>
  }
  func.func private @log_softmax(%arg0: tensor<2x7x17xf32>) -> tensor<2x7x17xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<2x7x17xf32>, tensor<f32>) -> tensor<2x7xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x7xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<2x7xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x17xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x7x17xf32>
    %6 = stablehlo.exponential %5 : tensor<2x7x17xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x7x17xf32>, tensor<f32>) -> tensor<2x7xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %9 = stablehlo.log %8 : tensor<2x7x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x17xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<2x7x17xf32>
    return %11 : tensor<2x7x17xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<2x7x17xf32>, %arg1: tensor<2x7x1xi32>) -> tensor<2x7x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x7x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<2x7x1xi32>, tensor<2x7x1xi32>) -> tensor<2x7x1xi1>
    %c_0 = stablehlo.constant dense<17> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x7x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<2x7x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<2x7x1xi1>, tensor<2x7x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<2x7x1xi32>) -> tensor<2x7x1x1xi32>
    %c_1 = stablehlo.constant dense<16> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2x7x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<2x7x1x1xi32>, tensor<2x7x1x1xi32>) -> tensor<2x7x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<2x7x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<2x7x1x1xi32>, tensor<2x7x1x1xi32>) -> tensor<2x7x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<2x7x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<2x7x1x1xi1>, tensor<i1>) -> tensor<2x7x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<2x7x17xf32>, tensor<2x7x1x1xi32>) -> tensor<2x7x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<2x7x1xi1>, tensor<2x7x1xf32>
    return %15 : tensor<2x7x1xf32>
  }
}
