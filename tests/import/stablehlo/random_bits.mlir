module @jit_random_bits attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xui32>) -> (tensor<4xui32> {jax.result_info = "result[0][0][0]"}, tensor<ui32> {jax.result_info = "result[0][0][1]"}, tensor<4xui32> {jax.result_info = "result[0][1][0]"}, tensor<0xui32> {jax.result_info = "result[0][1][1]"}, tensor<4xui32> {jax.result_info = "result[0][2][0]"}, tensor<1xui32> {jax.result_info = "result[0][2][1]"}, tensor<4xui32> {jax.result_info = "result[0][3][0]"}, tensor<5xui32> {jax.result_info = "result[0][3][1]"}, tensor<4xui32> {jax.result_info = "result[0][4][0]"}, tensor<3x4xui32> {jax.result_info = "result[0][4][1]"}, tensor<4xui32> {jax.result_info = "result[0][5][0]"}, tensor<3x5xui32> {jax.result_info = "result[0][5][1]"}, tensor<4xui32> {jax.result_info = "result[0][6][0]"}, tensor<5x3xui32> {jax.result_info = "result[0][6][1]"}, tensor<4xui32> {jax.result_info = "result[0][7][0]"}, tensor<2x3x4xui32> {jax.result_info = "result[0][7][1]"}, tensor<4xui32> {jax.result_info = "result[0][8][0]"}, tensor<5x5x3xui32> {jax.result_info = "result[0][8][1]"}, tensor<4xui32> {jax.result_info = "result[0][9][0]"}, tensor<ui32> {jax.result_info = "result[0][9][1]"}, tensor<4xui32> {jax.result_info = "result[0][10][0]"}, tensor<0xui32> {jax.result_info = "result[0][10][1]"}, tensor<4xui32> {jax.result_info = "result[0][11][0]"}, tensor<1xui32> {jax.result_info = "result[0][11][1]"}, tensor<4xui32> {jax.result_info = "result[0][12][0]"}, tensor<5xui32> {jax.result_info = "result[0][12][1]"}, tensor<4xui32> {jax.result_info = "result[0][13][0]"}, tensor<3x4xui32> {jax.result_info = "result[0][13][1]"}, tensor<4xui32> {jax.result_info = "result[0][14][0]"}, tensor<3x5xui32> {jax.result_info = "result[0][14][1]"}, tensor<4xui32> {jax.result_info = "result[0][15][0]"}, tensor<5x3xui32> {jax.result_info = "result[0][15][1]"}, tensor<4xui32> {jax.result_info = "result[0][16][0]"}, tensor<2x3x4xui32> {jax.result_info = "result[0][16][1]"}, tensor<4xui32> {jax.result_info = "result[0][17][0]"}, tensor<5x5x3xui32> {jax.result_info = "result[0][17][1]"}, tensor<4xui32> {jax.result_info = "result[0][18][0]"}, tensor<7xui8> {jax.result_info = "result[0][18][1]"}, tensor<4xui32> {jax.result_info = "result[1][0]"}, tensor<7xui8> {jax.result_info = "result[1][1]"}, tensor<3x4xui32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %1 = stablehlo.bitcast_convert %0 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state, %output = stablehlo.rng_bit_generator %1, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui32>)
    %2 = stablehlo.bitcast_convert %output_state : (tensor<2xui64>) -> tensor<2x2xui32>
    %3 = stablehlo.reshape %2 : (tensor<2x2xui32>) -> tensor<4xui32>
    %4 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %5 = stablehlo.bitcast_convert %4 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_0, %output_1 = stablehlo.rng_bit_generator %5, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<0xui32>)
    %6 = stablehlo.bitcast_convert %output_state_0 : (tensor<2xui64>) -> tensor<2x2xui32>
    %7 = stablehlo.reshape %6 : (tensor<2x2xui32>) -> tensor<4xui32>
    %8 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %9 = stablehlo.bitcast_convert %8 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_2, %output_3 = stablehlo.rng_bit_generator %9, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<1xui32>)
    %10 = stablehlo.bitcast_convert %output_state_2 : (tensor<2xui64>) -> tensor<2x2xui32>
    %11 = stablehlo.reshape %10 : (tensor<2x2xui32>) -> tensor<4xui32>
    %12 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %13 = stablehlo.bitcast_convert %12 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_4, %output_5 = stablehlo.rng_bit_generator %13, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
    %14 = stablehlo.bitcast_convert %output_state_4 : (tensor<2xui64>) -> tensor<2x2xui32>
    %15 = stablehlo.reshape %14 : (tensor<2x2xui32>) -> tensor<4xui32>
    %16 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %17 = stablehlo.bitcast_convert %16 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_6, %output_7 = stablehlo.rng_bit_generator %17, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x4xui32>)
    %18 = stablehlo.bitcast_convert %output_state_6 : (tensor<2xui64>) -> tensor<2x2xui32>
    %19 = stablehlo.reshape %18 : (tensor<2x2xui32>) -> tensor<4xui32>
    %20 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %21 = stablehlo.bitcast_convert %20 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_8, %output_9 = stablehlo.rng_bit_generator %21, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>)
    %22 = stablehlo.bitcast_convert %output_state_8 : (tensor<2xui64>) -> tensor<2x2xui32>
    %23 = stablehlo.reshape %22 : (tensor<2x2xui32>) -> tensor<4xui32>
    %24 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %25 = stablehlo.bitcast_convert %24 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_10, %output_11 = stablehlo.rng_bit_generator %25, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5x3xui32>)
    %26 = stablehlo.bitcast_convert %output_state_10 : (tensor<2xui64>) -> tensor<2x2xui32>
    %27 = stablehlo.reshape %26 : (tensor<2x2xui32>) -> tensor<4xui32>
    %28 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %29 = stablehlo.bitcast_convert %28 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_12, %output_13 = stablehlo.rng_bit_generator %29, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3x4xui32>)
    %30 = stablehlo.bitcast_convert %output_state_12 : (tensor<2xui64>) -> tensor<2x2xui32>
    %31 = stablehlo.reshape %30 : (tensor<2x2xui32>) -> tensor<4xui32>
    %32 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %33 = stablehlo.bitcast_convert %32 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_14, %output_15 = stablehlo.rng_bit_generator %33, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5x5x3xui32>)
    %34 = stablehlo.bitcast_convert %output_state_14 : (tensor<2xui64>) -> tensor<2x2xui32>
    %35 = stablehlo.reshape %34 : (tensor<2x2xui32>) -> tensor<4xui32>
    %36 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %37 = stablehlo.bitcast_convert %36 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_16, %output_17 = stablehlo.rng_bit_generator %37, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui32>)
    %38 = stablehlo.bitcast_convert %output_state_16 : (tensor<2xui64>) -> tensor<2x2xui32>
    %39 = stablehlo.reshape %38 : (tensor<2x2xui32>) -> tensor<4xui32>
    %40 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %41 = stablehlo.bitcast_convert %40 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_18, %output_19 = stablehlo.rng_bit_generator %41, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<0xui32>)
    %42 = stablehlo.bitcast_convert %output_state_18 : (tensor<2xui64>) -> tensor<2x2xui32>
    %43 = stablehlo.reshape %42 : (tensor<2x2xui32>) -> tensor<4xui32>
    %44 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %45 = stablehlo.bitcast_convert %44 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_20, %output_21 = stablehlo.rng_bit_generator %45, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<1xui32>)
    %46 = stablehlo.bitcast_convert %output_state_20 : (tensor<2xui64>) -> tensor<2x2xui32>
    %47 = stablehlo.reshape %46 : (tensor<2x2xui32>) -> tensor<4xui32>
    %48 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %49 = stablehlo.bitcast_convert %48 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_22, %output_23 = stablehlo.rng_bit_generator %49, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
    %50 = stablehlo.bitcast_convert %output_state_22 : (tensor<2xui64>) -> tensor<2x2xui32>
    %51 = stablehlo.reshape %50 : (tensor<2x2xui32>) -> tensor<4xui32>
    %52 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %53 = stablehlo.bitcast_convert %52 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_24, %output_25 = stablehlo.rng_bit_generator %53, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x4xui32>)
    %54 = stablehlo.bitcast_convert %output_state_24 : (tensor<2xui64>) -> tensor<2x2xui32>
    %55 = stablehlo.reshape %54 : (tensor<2x2xui32>) -> tensor<4xui32>
    %56 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %57 = stablehlo.bitcast_convert %56 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_26, %output_27 = stablehlo.rng_bit_generator %57, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>)
    %58 = stablehlo.bitcast_convert %output_state_26 : (tensor<2xui64>) -> tensor<2x2xui32>
    %59 = stablehlo.reshape %58 : (tensor<2x2xui32>) -> tensor<4xui32>
    %60 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %61 = stablehlo.bitcast_convert %60 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_28, %output_29 = stablehlo.rng_bit_generator %61, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5x3xui32>)
    %62 = stablehlo.bitcast_convert %output_state_28 : (tensor<2xui64>) -> tensor<2x2xui32>
    %63 = stablehlo.reshape %62 : (tensor<2x2xui32>) -> tensor<4xui32>
    %64 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %65 = stablehlo.bitcast_convert %64 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_30, %output_31 = stablehlo.rng_bit_generator %65, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3x4xui32>)
    %66 = stablehlo.bitcast_convert %output_state_30 : (tensor<2xui64>) -> tensor<2x2xui32>
    %67 = stablehlo.reshape %66 : (tensor<2x2xui32>) -> tensor<4xui32>
    %68 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %69 = stablehlo.bitcast_convert %68 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_32, %output_33 = stablehlo.rng_bit_generator %69, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5x5x3xui32>)
    %70 = stablehlo.bitcast_convert %output_state_32 : (tensor<2xui64>) -> tensor<2x2xui32>
    %71 = stablehlo.reshape %70 : (tensor<2x2xui32>) -> tensor<4xui32>
    %72 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %73 = stablehlo.bitcast_convert %72 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_34, %output_35 = stablehlo.rng_bit_generator %73, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui8>)
    %74 = stablehlo.bitcast_convert %output_state_34 : (tensor<2xui64>) -> tensor<2x2xui32>
    %75 = stablehlo.reshape %74 : (tensor<2x2xui32>) -> tensor<4xui32>
    %76 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %77 = stablehlo.bitcast_convert %76 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state_36, %output_37 = stablehlo.rng_bit_generator %77, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui8>)
    %78 = stablehlo.bitcast_convert %output_state_36 : (tensor<2xui64>) -> tensor<2x2xui32>
    %79 = stablehlo.reshape %78 : (tensor<2x2xui32>) -> tensor<4xui32>
    %80 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %81 = stablehlo.slice %80 [0:2, 0:1] : (tensor<2x2xui32>) -> tensor<2x1xui32>
    %82 = stablehlo.reshape %81 : (tensor<2x1xui32>) -> tensor<2xui32>
    %83 = stablehlo.slice %80 [0:2, 1:2] : (tensor<2x2xui32>) -> tensor<2x1xui32>
    %84 = stablehlo.reshape %83 : (tensor<2x1xui32>) -> tensor<2xui32>
    %85 = stablehlo.iota dim = 0 : tensor<3xui64>
    %c = stablehlo.constant dense<1> : tensor<ui64>
    %86 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui64>) -> tensor<3xui64>
    %87 = stablehlo.multiply %86, %85 : tensor<3xui64>
    %c_38 = stablehlo.constant dense<32> : tensor<ui64>
    %88 = stablehlo.broadcast_in_dim %c_38, dims = [] : (tensor<ui64>) -> tensor<3xui64>
    %89 = stablehlo.shift_right_logical %87, %88 : tensor<3xui64>
    %90 = stablehlo.convert %87 : (tensor<3xui64>) -> tensor<3xui32>
    %91 = stablehlo.convert %89 : (tensor<3xui64>) -> tensor<3xui32>
    %92 = stablehlo.broadcast_in_dim %91, dims = [1] : (tensor<3xui32>) -> tensor<1x3xui32>
    %93 = stablehlo.broadcast_in_dim %90, dims = [1] : (tensor<3xui32>) -> tensor<1x3xui32>
    %94 = stablehlo.broadcast_in_dim %82, dims = [0] : (tensor<2xui32>) -> tensor<2x1xui32>
    %95 = stablehlo.broadcast_in_dim %84, dims = [0] : (tensor<2xui32>) -> tensor<2x1xui32>
    %96:2 = call @threefry2x32(%94, %95, %92, %93) : (tensor<2x1xui32>, tensor<2x1xui32>, tensor<1x3xui32>, tensor<1x3xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>)
    %97 = stablehlo.broadcast_in_dim %96#0, dims = [0, 1] : (tensor<2x3xui32>) -> tensor<2x3x1xui32>
    %98 = stablehlo.broadcast_in_dim %96#1, dims = [0, 1] : (tensor<2x3xui32>) -> tensor<2x3x1xui32>
    %99 = stablehlo.concatenate %97, %98, dim = 2 : (tensor<2x3x1xui32>, tensor<2x3x1xui32>) -> tensor<2x3x2xui32>
    %100 = stablehlo.transpose %99, dims = [1, 0, 2] : (tensor<2x3x2xui32>) -> tensor<3x2x2xui32>
    %101 = stablehlo.reshape %100 : (tensor<3x2x2xui32>) -> tensor<3x4xui32>
    return %3, %output, %7, %output_1, %11, %output_3, %15, %output_5, %19, %output_7, %23, %output_9, %27, %output_11, %31, %output_13, %35, %output_15, %39, %output_17, %43, %output_19, %47, %output_21, %51, %output_23, %55, %output_25, %59, %output_27, %63, %output_29, %67, %output_31, %71, %output_33, %75, %output_35, %79, %output_37, %101 : tensor<4xui32>, tensor<ui32>, tensor<4xui32>, tensor<0xui32>, tensor<4xui32>, tensor<1xui32>, tensor<4xui32>, tensor<5xui32>, tensor<4xui32>, tensor<3x4xui32>, tensor<4xui32>, tensor<3x5xui32>, tensor<4xui32>, tensor<5x3xui32>, tensor<4xui32>, tensor<2x3x4xui32>, tensor<4xui32>, tensor<5x5x3xui32>, tensor<4xui32>, tensor<ui32>, tensor<4xui32>, tensor<0xui32>, tensor<4xui32>, tensor<1xui32>, tensor<4xui32>, tensor<5xui32>, tensor<4xui32>, tensor<3x4xui32>, tensor<4xui32>, tensor<3x5xui32>, tensor<4xui32>, tensor<5x3xui32>, tensor<4xui32>, tensor<2x3x4xui32>, tensor<4xui32>, tensor<5x5x3xui32>, tensor<4xui32>, tensor<7xui8>, tensor<4xui32>, tensor<7xui8>, tensor<3x4xui32>
  }
  func.func private @threefry2x32(%arg0: tensor<2x1xui32>, %arg1: tensor<2x1xui32>, %arg2: tensor<1x3xui32>, %arg3: tensor<1x3xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>) {
    %c = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>
    %c_0 = stablehlo.constant dense<[17, 29, 16, 24]> : tensor<4xui32>
    %0 = stablehlo.xor %arg0, %arg1 : tensor<2x1xui32>
    %c_1 = stablehlo.constant dense<466688986> : tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui32>) -> tensor<2x1xui32>
    %2 = stablehlo.xor %0, %1 : tensor<2x1xui32>
    %3 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1] : (tensor<1x3xui32>) -> tensor<2x3xui32>
    %4 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<2x1xui32>) -> tensor<2x3xui32>
    %5 = stablehlo.add %3, %4 : tensor<2x3xui32>
    %6 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1] : (tensor<1x3xui32>) -> tensor<2x3xui32>
    %7 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<2x1xui32>) -> tensor<2x3xui32>
    %8 = stablehlo.add %6, %7 : tensor<2x3xui32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9:9 = stablehlo.while(%iterArg = %c_3, %iterArg_4 = %c_2, %iterArg_5 = %5, %iterArg_6 = %8, %iterArg_7 = %arg1, %iterArg_8 = %2, %iterArg_9 = %arg0, %iterArg_10 = %c, %iterArg_11 = %c_0) : tensor<i32>, tensor<i32>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<4xui32>, tensor<4xui32>
    cond {
      %c_12 = stablehlo.constant dense<5> : tensor<i32>
      %10 = stablehlo.compare LT, %iterArg, %c_12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    } do {
      %10:8 = func.call @closed_call(%iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11) : (tensor<i32>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<4xui32>, tensor<4xui32>)
      %c_12 = stablehlo.constant dense<1> : tensor<i32>
      %11 = stablehlo.add %iterArg, %c_12 : tensor<i32>
      stablehlo.return %11, %10#0, %10#1, %10#2, %10#3, %10#4, %10#5, %10#6, %10#7 : tensor<i32>, tensor<i32>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<4xui32>, tensor<4xui32>
    }
    return %9#2, %9#3 : tensor<2x3xui32>, tensor<2x3xui32>
  }
  func.func private @closed_call(%arg0: tensor<i32>, %arg1: tensor<2x3xui32>, %arg2: tensor<2x3xui32>, %arg3: tensor<2x1xui32>, %arg4: tensor<2x1xui32>, %arg5: tensor<2x1xui32>, %arg6: tensor<4xui32>, %arg7: tensor<4xui32>) -> (tensor<i32>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<4xui32>, tensor<4xui32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %arg0, %c : tensor<i32>
    %1 = stablehlo.slice %arg6 [0:1] : (tensor<4xui32>) -> tensor<1xui32>
    %2 = stablehlo.reshape %1 : (tensor<1xui32>) -> tensor<ui32>
    %3 = stablehlo.add %arg1, %arg2 : tensor<2x3xui32>
    %4 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %5 = stablehlo.shift_left %arg2, %4 : tensor<2x3xui32>
    %c_0 = stablehlo.constant dense<32> : tensor<ui32>
    %6 = stablehlo.subtract %c_0, %2 : tensor<ui32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %8 = stablehlo.shift_right_logical %arg2, %7 : tensor<2x3xui32>
    %9 = stablehlo.or %5, %8 : tensor<2x3xui32>
    %10 = stablehlo.xor %3, %9 : tensor<2x3xui32>
    %11 = stablehlo.slice %arg6 [1:2] : (tensor<4xui32>) -> tensor<1xui32>
    %12 = stablehlo.reshape %11 : (tensor<1xui32>) -> tensor<ui32>
    %13 = stablehlo.add %3, %10 : tensor<2x3xui32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %15 = stablehlo.shift_left %10, %14 : tensor<2x3xui32>
    %c_1 = stablehlo.constant dense<32> : tensor<ui32>
    %16 = stablehlo.subtract %c_1, %12 : tensor<ui32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %18 = stablehlo.shift_right_logical %10, %17 : tensor<2x3xui32>
    %19 = stablehlo.or %15, %18 : tensor<2x3xui32>
    %20 = stablehlo.xor %13, %19 : tensor<2x3xui32>
    %21 = stablehlo.slice %arg6 [2:3] : (tensor<4xui32>) -> tensor<1xui32>
    %22 = stablehlo.reshape %21 : (tensor<1xui32>) -> tensor<ui32>
    %23 = stablehlo.add %13, %20 : tensor<2x3xui32>
    %24 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %25 = stablehlo.shift_left %20, %24 : tensor<2x3xui32>
    %c_2 = stablehlo.constant dense<32> : tensor<ui32>
    %26 = stablehlo.subtract %c_2, %22 : tensor<ui32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %28 = stablehlo.shift_right_logical %20, %27 : tensor<2x3xui32>
    %29 = stablehlo.or %25, %28 : tensor<2x3xui32>
    %30 = stablehlo.xor %23, %29 : tensor<2x3xui32>
    %31 = stablehlo.slice %arg6 [3:4] : (tensor<4xui32>) -> tensor<1xui32>
    %32 = stablehlo.reshape %31 : (tensor<1xui32>) -> tensor<ui32>
    %33 = stablehlo.add %23, %30 : tensor<2x3xui32>
    %34 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %35 = stablehlo.shift_left %30, %34 : tensor<2x3xui32>
    %c_3 = stablehlo.constant dense<32> : tensor<ui32>
    %36 = stablehlo.subtract %c_3, %32 : tensor<ui32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %38 = stablehlo.shift_right_logical %30, %37 : tensor<2x3xui32>
    %39 = stablehlo.or %35, %38 : tensor<2x3xui32>
    %40 = stablehlo.xor %33, %39 : tensor<2x3xui32>
    %41 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1] : (tensor<2x1xui32>) -> tensor<2x3xui32>
    %42 = stablehlo.add %33, %41 : tensor<2x3xui32>
    %43 = stablehlo.broadcast_in_dim %arg4, dims = [0, 1] : (tensor<2x1xui32>) -> tensor<2x3xui32>
    %44 = stablehlo.add %40, %43 : tensor<2x3xui32>
    %c_4 = stablehlo.constant dense<1> : tensor<i32>
    %45 = stablehlo.add %arg0, %c_4 : tensor<i32>
    %46 = stablehlo.convert %45 : (tensor<i32>) -> tensor<ui32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %48 = stablehlo.add %44, %47 : tensor<2x3xui32>
    return %0, %42, %48, %arg4, %arg5, %arg3, %arg7, %arg6 : tensor<i32>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<2x1xui32>, tensor<4xui32>, tensor<4xui32>
  }
}
