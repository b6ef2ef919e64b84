//! Results that are written to memory of others.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;

use nxla_eval::{Hooks, Plan};
use nxla_expr::build::Cumulative;
use nxla_expr::{ExprId, Graph, Program, TensorType};
use nxla_tensor::{DType, HostTensor};

/// Runs a program of one vector both ways, and compares what there is afterwards.
fn compare(len: usize, build: impl FnOnce(&mut Graph, ExprId) -> Vec<ExprId>) {
    let ty = TensorType::new(DType::F32, [len]);
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty.clone());
    let outputs = build(&mut graph, x);
    let program = Program::new(&graph, vec![ty], &outputs).unwrap();
    let plan = Plan::new(Arc::new(program));
    let x =
        HostTensor::from_vec((0..len).map(|at| at as f32 * 1e-3 - 2.0).collect(), [len]).unwrap();
    let before = x.bytes().to_vec();
    let expected = plan.run(vec![x.clone()], &Hooks::new()).unwrap();
    let mut memory: Vec<Vec<u8>> =
        expected.iter().map(|result| vec![0xaa; result.byte_size()]).collect();
    let places = memory.iter_mut().map(|place| &mut place[..]).collect();
    plan.run_into(vec![x.clone()], &Hooks::new(), places).unwrap();
    for (place, result) in memory.iter().zip(&expected) {
        assert_eq!(place, result.bytes());
    }
    assert_eq!(x.bytes(), before);
}

#[test]
fn code_writes_its_results_there() {
    for len in [0, 1, 5, 1000, 400_000] {
        compare(len, |graph, x| {
            let sine = graph.sin(x).unwrap();
            vec![graph.multiply(sine, x).unwrap()]
        });
    }
}

#[test]
fn several_results_have_their_places() {
    for len in [7, 400_000] {
        compare(len, |graph, x| {
            let exp = graph.exp(x).unwrap();
            let is_large = graph.greater(exp, x).unwrap();
            vec![is_large, exp]
        });
        // The same twice, and an input as it is.
        compare(len, |graph, x| {
            let exp = graph.exp(x).unwrap();
            vec![exp, x, exp]
        });
    }
}

#[test]
fn other_programs_copy_theirs() {
    for len in [7, 400_000] {
        compare(len, |graph, x| vec![graph.cumulative(Cumulative::Sum, x, 0, false).unwrap()]);
        compare(len, |graph, x| {
            let reversed = graph.reverse(x, Some(&[0])).unwrap();
            let sine = graph.sin(reversed).unwrap();
            vec![graph.sum(sine, None, false).unwrap(), sine]
        });
    }
}

#[test]
#[should_panic(expected = "places have the sizes of results")]
fn places_of_other_sizes_are_refused() {
    let ty = TensorType::new(DType::F32, [2]);
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty.clone());
    let sine = graph.sin(x).unwrap();
    let plan = Plan::new(Arc::new(Program::new(&graph, vec![ty], &[sine]).unwrap()));
    let x = HostTensor::zeros(DType::F32, [2]).unwrap();
    let _ = plan.run_into(vec![x], &Hooks::new(), vec![&mut [0; 4]]);
}
