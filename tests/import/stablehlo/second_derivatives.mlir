module @jit_second_derivatives attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3x3xf32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.iota dim = 0 : tensor<3x3xi32>
    %1 = stablehlo.iota dim = 1 : tensor<3x3xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3x3xi32>
    %3 = stablehlo.add %0, %2 : tensor<3x3xi32>
    %4 = stablehlo.compare EQ, %3, %1, SIGNED : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
    %5 = stablehlo.convert %4 : (tensor<3x3xi1>) -> tensor<3x3xf32>
    %6 = stablehlo.slice %5 [0:3, 0:3] : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %7 = stablehlo.convert %6 : tensor<3x3xf32>
    %8 = stablehlo.sine %arg0 : tensor<3xf32>
    %9 = stablehlo.cosine %arg0 : tensor<3xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<3x3xf32>
    %12 = stablehlo.multiply %7, %11 : tensor<3x3xf32>
    %13 = stablehlo.cosine %arg0 : tensor<3xf32>
    %14 = stablehlo.sine %arg0 : tensor<3xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<3x3xf32>
    %17 = stablehlo.multiply %7, %16 : tensor<3x3xf32>
    %18 = stablehlo.negate %17 : tensor<3x3xf32>
    %19 = stablehlo.slice %arg0 [0:1] : (tensor<3xf32>) -> tensor<1xf32>
    %20 = stablehlo.slice %7 [0:3, 0:1] : (tensor<3x3xf32>) -> tensor<3x1xf32>
    %21 = stablehlo.reshape %19 : (tensor<1xf32>) -> tensor<f32>
    %22 = stablehlo.reshape %20 : (tensor<3x1xf32>) -> tensor<3xf32>
    %23 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %24 = stablehlo.multiply %8, %23 : tensor<3xf32>
    %25 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<3x3xf32>
    %26 = stablehlo.multiply %12, %25 : tensor<3x3xf32>
    %27 = stablehlo.broadcast_in_dim %8, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %28 = stablehlo.broadcast_in_dim %22, dims = [0] : (tensor<3xf32>) -> tensor<3x1xf32>
    %29 = stablehlo.broadcast_in_dim %27, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<3x3xf32>
    %30 = stablehlo.broadcast_in_dim %28, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x3xf32>
    %31 = stablehlo.multiply %29, %30 : tensor<3x3xf32>
    %32 = stablehlo.add %26, %31 : tensor<3x3xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.reduce(%24 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %34 = stablehlo.reduce(%32 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
    %35 = stablehlo.iota dim = 0 : tensor<1x1xi32>
    %36 = stablehlo.iota dim = 1 : tensor<1x1xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %37 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<1x1xi32>
    %38 = stablehlo.add %35, %37 : tensor<1x1xi32>
    %39 = stablehlo.compare EQ, %38, %36, SIGNED : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi1>
    %40 = stablehlo.convert %39 : (tensor<1x1xi1>) -> tensor<1x1xf32>
    %41 = stablehlo.slice %40 [0:1, 0:1] : (tensor<1x1xf32>) -> tensor<1x1xf32>
    %42 = stablehlo.reshape %41 : (tensor<1x1xf32>) -> tensor<1xf32>
    %43 = stablehlo.convert %42 : tensor<1xf32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [0] : (tensor<1xf32>) -> tensor<1x3xf32>
    %45 = stablehlo.broadcast_in_dim %8, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %46 = stablehlo.broadcast_in_dim %12, dims = [0, 2] : (tensor<3x3xf32>) -> tensor<3x1x3xf32>
    %47 = stablehlo.multiply %45, %44 : tensor<1x3xf32>
    %48 = stablehlo.broadcast_in_dim %44, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<1x1x3xf32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [0, 1, 2] : (tensor<1x1x3xf32>) -> tensor<3x1x3xf32>
    %50 = stablehlo.multiply %46, %49 : tensor<3x1x3xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %51 = stablehlo.reduce(%47 init: %cst_2) applies stablehlo.add across dimensions = [1] : (tensor<1x3xf32>, tensor<f32>) -> tensor<1xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %52 = stablehlo.reduce(%50 init: %cst_3) applies stablehlo.add across dimensions = [2] : (tensor<3x1x3xf32>, tensor<f32>) -> tensor<3x1xf32>
    %53 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<1x3xf32>
    %54 = stablehlo.multiply %44, %53 : tensor<1x3xf32>
    %55 = stablehlo.broadcast_in_dim %44, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<1x1x3xf32>
    %56 = stablehlo.broadcast_in_dim %22, dims = [0] : (tensor<3xf32>) -> tensor<3x1x1xf32>
    %57 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 2] : (tensor<1x1x3xf32>) -> tensor<3x1x3xf32>
    %58 = stablehlo.broadcast_in_dim %56, dims = [0, 1, 2] : (tensor<3x1x1xf32>) -> tensor<3x1x3xf32>
    %59 = stablehlo.multiply %57, %58 : tensor<3x1x3xf32>
    %60 = stablehlo.broadcast_in_dim %51, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %61 = stablehlo.broadcast_in_dim %52, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x1x1xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %62 = stablehlo.pad %60, %cst_4, low = [0, 0], high = [0, 2], interior = [0, 0] : (tensor<1x1xf32>, tensor<f32>) -> tensor<1x3xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %63 = stablehlo.pad %61, %cst_5, low = [0, 0, 0], high = [0, 0, 2], interior = [0, 0, 0] : (tensor<3x1x1xf32>, tensor<f32>) -> tensor<3x1x3xf32>
    %64 = stablehlo.broadcast_in_dim %13, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %65 = stablehlo.broadcast_in_dim %18, dims = [0, 2] : (tensor<3x3xf32>) -> tensor<3x1x3xf32>
    %66 = stablehlo.multiply %54, %64 : tensor<1x3xf32>
    %67 = stablehlo.broadcast_in_dim %64, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<1x1x3xf32>
    %68 = stablehlo.broadcast_in_dim %67, dims = [0, 1, 2] : (tensor<1x1x3xf32>) -> tensor<3x1x3xf32>
    %69 = stablehlo.multiply %59, %68 : tensor<3x1x3xf32>
    %70 = stablehlo.broadcast_in_dim %54, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<1x1x3xf32>
    %71 = stablehlo.broadcast_in_dim %70, dims = [0, 1, 2] : (tensor<1x1x3xf32>) -> tensor<3x1x3xf32>
    %72 = stablehlo.multiply %71, %65 : tensor<3x1x3xf32>
    %73 = stablehlo.add %69, %72 : tensor<3x1x3xf32>
    %74 = stablehlo.add %62, %66 : tensor<1x3xf32>
    %75 = stablehlo.add %63, %73 : tensor<3x1x3xf32>
    %76 = stablehlo.slice %74 [0:1, 0:3] : (tensor<1x3xf32>) -> tensor<1x3xf32>
    %77 = stablehlo.slice %75 [0:3, 0:1, 0:3] : (tensor<3x1x3xf32>) -> tensor<3x1x3xf32>
    %78 = stablehlo.reshape %76 : (tensor<1x3xf32>) -> tensor<3xf32>
    %79 = stablehlo.reshape %77 : (tensor<3x1x3xf32>) -> tensor<3x3xf32>
    %80 = stablehlo.transpose %79, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %81 = stablehlo.slice %80 [0:3, 0:3] : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %82 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %83 = stablehlo.sine %arg0 : tensor<3xf32>
    %84 = stablehlo.cosine %arg0 : tensor<3xf32>
    %85 = stablehlo.multiply %82, %84 : tensor<3xf32>
    %86 = stablehlo.slice %arg0 [0:1] : (tensor<3xf32>) -> tensor<1xf32>
    %87 = stablehlo.slice %82 [0:1] : (tensor<3xf32>) -> tensor<1xf32>
    %88 = stablehlo.reshape %86 : (tensor<1xf32>) -> tensor<f32>
    %89 = stablehlo.reshape %87 : (tensor<1xf32>) -> tensor<f32>
    %90 = stablehlo.broadcast_in_dim %88, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %91 = stablehlo.multiply %83, %90 : tensor<3xf32>
    %92 = stablehlo.broadcast_in_dim %88, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %93 = stablehlo.multiply %85, %92 : tensor<3xf32>
    %94 = stablehlo.broadcast_in_dim %89, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %95 = stablehlo.multiply %83, %94 : tensor<3xf32>
    %96 = stablehlo.add %93, %95 : tensor<3xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %97 = stablehlo.reduce(%91 init: %cst_7) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %98 = stablehlo.reduce(%96 init: %cst_8) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    return %81, %98 : tensor<3x3xf32>, tensor<f32>
  }
}
