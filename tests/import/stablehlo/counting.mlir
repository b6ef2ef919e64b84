module @jit_counting attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<30xi32>) -> (tensor<5xi32> {jax.result_info = "result[0]"}, tensor<30xi32> {jax.result_info = "result[1]"}, tensor<5xi32> {jax.result_info = "result[2]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = call @clip(%arg0, %c_0) : (tensor<30xi32>, tensor<i32>) -> tensor<30xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<30xi32>
    %3 = stablehlo.compare LT, %1, %2, SIGNED : (tensor<30xi32>, tensor<30xi32>) -> tensor<30xi1>
    %c_2 = stablehlo.constant dense<5> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<30xi32>
    %5 = stablehlo.add %1, %4 : tensor<30xi32>
    %6 = stablehlo.select %3, %5, %1 : tensor<30xi1>, tensor<30xi32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<30xi32>) -> tensor<30x1xi32>
    %c_3 = stablehlo.constant dense<1> : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<30xi32>
    %9 = "stablehlo.scatter"(%0, %7, %8) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %34 = stablehlo.add %arg1, %arg2 : tensor<i32>
      stablehlo.return %34 : tensor<i32>
    }) : (tensor<5xi32>, tensor<30x1xi32>, tensor<30xi32>) -> tensor<5xi32>
    %10 = stablehlo.iota dim = 0 : tensor<5xi32>
    %11 = call @searchsorted(%10, %arg0) : (tensor<5xi32>, tensor<30xi32>) -> tensor<30xi32>
    %12:3 = call @_unique_sorted_mask(%arg0) : (tensor<30xi32>) -> (tensor<30xi32>, tensor<30xi1>, tensor<30xi32>)
    %13 = call @cumsum(%12#1) : (tensor<30xi1>) -> tensor<30xi32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %15 = call @clip(%13, %c_5) : (tensor<30xi32>, tensor<i32>) -> tensor<30xi32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %16 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<30xi32>
    %17 = stablehlo.compare LT, %15, %16, SIGNED : (tensor<30xi32>, tensor<30xi32>) -> tensor<30xi1>
    %c_7 = stablehlo.constant dense<5> : tensor<i32>
    %18 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<30xi32>
    %19 = stablehlo.add %15, %18 : tensor<30xi32>
    %20 = stablehlo.select %17, %19, %15 : tensor<30xi1>, tensor<30xi32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0] : (tensor<30xi32>) -> tensor<30x1xi32>
    %c_8 = stablehlo.constant dense<1> : tensor<i32>
    %22 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<30xi32>
    %23 = "stablehlo.scatter"(%14, %21, %22) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %34 = stablehlo.add %arg1, %arg2 : tensor<i32>
      stablehlo.return %34 : tensor<i32>
    }) : (tensor<5xi32>, tensor<30x1xi32>, tensor<30xi32>) -> tensor<5xi32>
    %24 = call @cumsum_2(%23) : (tensor<5xi32>) -> tensor<5xi32>
    %c_9 = stablehlo.constant dense<1> : tensor<i32>
    %25 = call @floor_divide_4(%24, %c_9) : (tensor<5xi32>, tensor<i32>) -> tensor<5xi32>
    %c_10 = stablehlo.constant dense<30> : tensor<i32>
    %26 = call @remainder(%25, %c_10) : (tensor<5xi32>, tensor<i32>) -> tensor<5xi32>
    %c_11 = stablehlo.constant dense<0> : tensor<i32>
    %27 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %28 = stablehlo.compare LT, %26, %27, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_12 = stablehlo.constant dense<30> : tensor<i32>
    %29 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %30 = stablehlo.add %26, %29 : tensor<5xi32>
    %31 = stablehlo.select %28, %30, %26 : tensor<5xi1>, tensor<5xi32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %33 = "stablehlo.gather"(%12#0, %32) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<30xi32>, tensor<5x1xi32>) -> tensor<5xi32>
    return %9, %11, %33 : tensor<5xi32>, tensor<30xi32>, tensor<5xi32>
  }
  func.func private @clip(%arg0: tensor<30xi32>, %arg1: tensor<i32>) -> tensor<30xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<30xi32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<30xi32>
    return %2 : tensor<30xi32>
  }
  func.func private @searchsorted(%arg0: tensor<5xi32>, %arg1: tensor<30xi32>) -> tensor<30xi32> {
    %0 = call @_searchsorted_scan_impl(%arg0, %arg1) : (tensor<5xi32>, tensor<30xi32>) -> tensor<30xi32>
    return %0 : tensor<30xi32>
  }
  func.func private @_searchsorted_scan_impl(%arg0: tensor<5xi32>, %arg1: tensor<30xi32>) -> tensor<30xi32> {
    %0 = call @_searchsorted_scan_impl_0(%arg0, %arg1) : (tensor<5xi32>, tensor<30xi32>) -> tensor<30xi32>
    return %0 : tensor<30xi32>
  }
  func.func private @_searchsorted_scan_impl_0(%arg0: tensor<5xi32>, %arg1: tensor<30xi32>) -> tensor<30xi32> {
    %c = stablehlo.constant dense<0> : tensor<ui32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<30xui32>
    %c_0 = stablehlo.constant dense<5> : tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<30xui32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %2:5 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %arg1, %iterArg_3 = %c_1, %iterArg_4 = %0, %iterArg_5 = %1) : tensor<5xi32>, tensor<30xi32>, tensor<i32>, tensor<30xui32>, tensor<30xui32>
    cond {
      %c_6 = stablehlo.constant dense<3> : tensor<i32>
      %4 = stablehlo.compare LT, %iterArg_3, %c_6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4:2 = func.call @closed_call(%iterArg, %iterArg_2, %iterArg_4, %iterArg_5) : (tensor<5xi32>, tensor<30xi32>, tensor<30xui32>, tensor<30xui32>) -> (tensor<30xui32>, tensor<30xui32>)
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %iterArg_3, %c_6 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_2, %5, %4#0, %4#1 : tensor<5xi32>, tensor<30xi32>, tensor<i32>, tensor<30xui32>, tensor<30xui32>
    }
    %3 = stablehlo.convert %2#4 : (tensor<30xui32>) -> tensor<30xi32>
    return %3 : tensor<30xi32>
  }
  func.func private @closed_call(%arg0: tensor<5xi32>, %arg1: tensor<30xi32>, %arg2: tensor<30xui32>, %arg3: tensor<30xui32>) -> (tensor<30xui32>, tensor<30xui32>) {
    %0 = stablehlo.subtract %arg3, %arg2 : tensor<30xui32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %1 = call @floor_divide(%0, %c) : (tensor<30xui32>, tensor<i32>) -> tensor<30xui32>
    %2 = stablehlo.add %arg2, %1 : tensor<30xui32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<30xui32>) -> tensor<30x1xui32>
    %4 = "stablehlo.gather"(%arg0, %3) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<5xi32>, tensor<30x1xui32>) -> tensor<30x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<30x1xi32>) -> tensor<30xi32>
    %6 = stablehlo.compare LE, %arg1, %5, SIGNED : (tensor<30xi32>, tensor<30xi32>) -> tensor<30xi1>
    %7 = stablehlo.select %6, %arg2, %2 : tensor<30xi1>, tensor<30xui32>
    %8 = stablehlo.select %6, %2, %arg3 : tensor<30xi1>, tensor<30xui32>
    return %7, %8 : tensor<30xui32>, tensor<30xui32>
  }
  func.func private @floor_divide(%arg0: tensor<30xui32>, %arg1: tensor<i32>) -> tensor<30xui32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<ui32>) -> tensor<30xui32>
    %2 = stablehlo.divide %arg0, %1 : tensor<30xui32>
    return %2 : tensor<30xui32>
  }
  func.func private @_unique_sorted_mask(%arg0: tensor<30xi32>) -> (tensor<30xi32>, tensor<30xi1>, tensor<30xi32>) {
    %0 = stablehlo.reshape %arg0 : (tensor<30xi32>) -> tensor<30x1xi32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<30x1xi32>) -> tensor<1x30xi32>
    %2 = stablehlo.reverse %1, dims = [0] : tensor<1x30xi32>
    %3 = call @lexsort(%2) : (tensor<1x30xi32>) -> tensor<30xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<30xi32>
    %5 = stablehlo.compare LT, %3, %4, SIGNED : (tensor<30xi32>, tensor<30xi32>) -> tensor<30xi1>
    %c_0 = stablehlo.constant dense<30> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<30xi32>
    %7 = stablehlo.add %3, %6 : tensor<30xi32>
    %8 = stablehlo.select %5, %7, %3 : tensor<30xi1>, tensor<30xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<30xi32>) -> tensor<30x1xi32>
    %10 = "stablehlo.gather"(%arg0, %9) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<30xi32>, tensor<30x1xi32>) -> tensor<30xi32>
    %c_1 = stablehlo.constant dense<true> : tensor<i1>
    %11 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i1>) -> tensor<30xi1>
    %12 = stablehlo.slice %10 [1:30] : (tensor<30xi32>) -> tensor<29xi32>
    %13 = stablehlo.slice %10 [0:29] : (tensor<30xi32>) -> tensor<29xi32>
    %14 = stablehlo.compare NE, %12, %13, SIGNED : (tensor<29xi32>, tensor<29xi32>) -> tensor<29xi1>
    %c_2 = stablehlo.constant dense<false> : tensor<i1>
    %15 = stablehlo.reduce(%14 init: %c_2) applies stablehlo.or across dimensions = [] : (tensor<29xi1>, tensor<i1>) -> tensor<29xi1>
    %c_3 = stablehlo.constant dense<1> : tensor<i32>
    %16 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %17 = "stablehlo.scatter"(%11, %16, %15) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg1: tensor<i1>, %arg2: tensor<i1>):
      stablehlo.return %arg2 : tensor<i1>
    }) : (tensor<30xi1>, tensor<1xi32>, tensor<29xi1>) -> tensor<30xi1>
    return %10, %17, %3 : tensor<30xi32>, tensor<30xi1>, tensor<30xi32>
  }
  func.func private @lexsort(%arg0: tensor<1x30xi32>) -> tensor<30xi32> {
    %0 = stablehlo.slice %arg0 [0:1, 0:30] : (tensor<1x30xi32>) -> tensor<1x30xi32>
    %1 = stablehlo.reshape %0 : (tensor<1x30xi32>) -> tensor<30xi32>
    %2 = stablehlo.iota dim = 0 : tensor<30xi32>
    %3:2 = "stablehlo.sort"(%1, %2) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>, %arg3: tensor<i32>, %arg4: tensor<i32>):
      %4 = stablehlo.compare LT, %arg1, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }) : (tensor<30xi32>, tensor<30xi32>) -> (tensor<30xi32>, tensor<30xi32>)
    return %3#1 : tensor<30xi32>
  }
  func.func private @cumsum(%arg0: tensor<30xi1>) -> tensor<30xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<30xi1>) -> tensor<30xi32>
    %1 = call @cumsum_1(%0) : (tensor<30xi32>) -> tensor<30xi32>
    return %1 : tensor<30xi32>
  }
  func.func private @cumsum_1(%arg0: tensor<30xi32>) -> tensor<30xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1>, padding = dense<[[29, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 30>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }) : (tensor<30xi32>, tensor<i32>) -> tensor<30xi32>
    return %1 : tensor<30xi32>
  }
  func.func private @cumsum_2(%arg0: tensor<5xi32>) -> tensor<5xi32> {
    %0 = call @cumsum_3(%arg0) : (tensor<5xi32>) -> tensor<5xi32>
    return %0 : tensor<5xi32>
  }
  func.func private @cumsum_3(%arg0: tensor<5xi32>) -> tensor<5xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1>, padding = dense<[[4, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 5>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }) : (tensor<5xi32>, tensor<i32>) -> tensor<5xi32>
    return %1 : tensor<5xi32>
  }
  func.func private @floor_divide_4(%arg0: tensor<5xi32>, %arg1: tensor<i32>) -> tensor<5xi32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %1 = stablehlo.divide %arg0, %0 : tensor<5xi32>
    %2 = stablehlo.sign %arg0 : tensor<5xi32>
    %3 = stablehlo.sign %arg1 : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %5 = stablehlo.compare NE, %2, %4, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %6 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %7 = stablehlo.remainder %arg0, %6 : tensor<5xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %9 = stablehlo.compare NE, %7, %8, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %10 = stablehlo.and %5, %9 : tensor<5xi1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %11 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %12 = stablehlo.subtract %1, %11 : tensor<5xi32>
    %13 = call @_where(%10, %12, %1) : (tensor<5xi1>, tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
    return %13 : tensor<5xi32>
  }
  func.func private @_where(%arg0: tensor<5xi1>, %arg1: tensor<5xi32>, %arg2: tensor<5xi32>) -> tensor<5xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<5xi1>, tensor<5xi32>
    return %0 : tensor<5xi32>
  }
  func.func private @remainder(%arg0: tensor<5xi32>, %arg1: tensor<i32>) -> tensor<5xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where_5(%1, %c_0, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<5xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<5xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<5xi1>, tensor<5xi1>) -> tensor<5xi1>
    %12 = stablehlo.and %11, %6 : tensor<5xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %14 = stablehlo.add %4, %13 : tensor<5xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<5xi1>, tensor<5xi32>
    return %15 : tensor<5xi32>
  }
  func.func private @_where_5(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
}
