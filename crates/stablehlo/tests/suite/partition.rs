//! Programs that are divided over several devices.

use nxla_expr::{Graph, Program, TensorType};
use nxla_stablehlo::{LowerOptions, Partition, lower};
use nxla_tensor::DType;

#[test]
fn mesh_and_shardings_use_shardy_syntax() {
    let ty = TensorType::new(DType::F32, [4, 6]);
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty.clone());
    let y = graph.exp(x).unwrap();
    let program = Program::new(&graph, vec![ty], &[y]).unwrap();
    let axes = [("data".to_owned(), 2), ("model".to_owned(), 3)];
    let rows = vec![vec!["data".to_owned()]];
    let both = vec![vec![], vec!["data".to_owned(), "model".to_owned()]];
    let (inputs, outputs) = ([rows], [both]);
    let partition = Partition { axes: &axes, inputs: &inputs, outputs: Some(&outputs) };
    let options = LowerOptions { partition: Some(partition), ..LowerOptions::default() };
    let parameter = "%0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"data\"}, {}]>}";
    let result =
        "tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"data\", \"model\"}]>}";
    assert_eq!(
        lower(&program, &options).unwrap().text,
        format!(
            "\
module @nxla attributes {{mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <[\"data\"=2, \"model\"=3]>
  func.func public @main({parameter}) -> ({result}) {{
    %1 = stablehlo.exponential %0 : tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }}
}}
"
        )
    );
    let free = LowerOptions {
        partition: Some(Partition { outputs: None, ..partition }),
        ..LowerOptions::default()
    };
    let text = lower(&program, &free).unwrap().text;
    assert!(text.contains(&format!("@main({parameter}) -> tensor<4x6xf32> {{")), "{text}");
}
