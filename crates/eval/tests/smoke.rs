use nxla_eval::{Hooks, Plan};
use nxla_expr::{Graph, Program, TensorType};
use nxla_tensor::{DType, HostTensor};
use std::sync::Arc;
#[test]
fn adds() {
    let mut graph = Graph::new();
    let ty = TensorType::new(DType::F32, [3]);
    let x = graph.parameter(0, ty.clone());
    let y = graph.add(x, x).unwrap();
    let z = graph.exp(y).unwrap();
    let w = graph.sum(z, None, false).unwrap();
    let t = graph.multiply(w, x).unwrap();
    let p = Program::new(&graph, vec![ty], &[t, w, x]).unwrap();
    let plan = Plan::new(Arc::new(p));
    let r = plan
        .run(vec![HostTensor::from_slice(&[0f32, 1., 2.], [3]).unwrap()], &Hooks::new())
        .unwrap();
    println!("{r:?} {plan:?}");
}
