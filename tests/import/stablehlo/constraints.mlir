module @jit_constraints attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["device"=1]> {stablehlo.mesh = {axes = [{name = "device", size = 1 : i64}]}}
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.multiply %0, %arg0 : tensor<4xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{}]> : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
