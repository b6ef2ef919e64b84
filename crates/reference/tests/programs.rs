//! Programs with host functions and regions, and inputs that do not fit.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};

use nxla_expr::build::WindowOptions;
use nxla_expr::{BinaryOp, Compute, Graph, HostFn, Program, TensorType};
use nxla_reference::{Error, run, run_with};
use nxla_tensor::{DType, HostTensor};

fn vector(elements: &[f32]) -> HostTensor {
    HostTensor::from_slice(elements, [elements.len()]).unwrap()
}

fn pair() -> TensorType {
    TensorType::new(DType::F32, [2])
}

#[test]
fn hooks_run_in_order_and_runtime_calls_return_values() {
    let seen: Arc<Mutex<Vec<f64>>> = Arc::default();
    let listener = |factor: f64| -> Arc<dyn HostFn> {
        let seen = seen.clone();
        Arc::new(move |values: &[HostTensor]| {
            seen.lock().unwrap().push(values[0].get(1).as_f64() * factor);
            Ok(())
        })
    };
    let mut graph = Graph::new();
    let x = graph.parameter(0, pair());
    let x = graph.hook(&[x], None, Some(listener(1.0))).unwrap()[0];
    let double: Arc<dyn HostFn> = Arc::new(Compute(|values: &[HostTensor]| {
        let doubled: Vec<f32> = values[0].as_slice::<f32>()?.iter().map(|x| 2.0 * x).collect();
        Ok(vec![HostTensor::from_slice(&doubled, [2])?])
    }));
    let doubled = graph.runtime_call(&[x], vec![pair()], double).unwrap()[0];
    let last = graph.hook(&[doubled], None, Some(listener(10.0))).unwrap()[0];
    let program = Program::new(&graph, vec![pair()], &[last]).unwrap();

    let results = run(&program, &[vector(&[1.0, 2.0])]).unwrap();
    assert_eq!(results[0].as_slice::<f32>().unwrap(), [2.0, 4.0]);
    assert_eq!(*seen.lock().unwrap(), [2.0, 40.0]);

    let without_functions = run_with(&program, &[vector(&[1.0, 2.0])], &|_| None);
    assert!(matches!(without_functions, Err(Error::NoFunction)));
}

#[test]
fn host_function_and_input_type_errors() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, pair());
    let refuse: Arc<dyn HostFn> = Arc::new(|_: &[HostTensor]| Err("no".into()));
    let x = graph.hook(&[x], None, Some(refuse)).unwrap()[0];
    let program = Program::new(&graph, vec![pair()], &[x]).unwrap();
    let failed = run(&program, &[vector(&[1.0, 2.0])]);
    assert_eq!(failed.unwrap_err().to_string(), "a host function failed: no");
    assert!(matches!(run(&program, &[]), Err(Error::InputCount { expected: 1, found: 0 })));
    let other = run(&program, &[vector(&[1.0])]);
    assert!(matches!(other, Err(Error::InputType { index: 0, .. })));
}

/// A function that is not commutative reveals the order of elements and accumulator.
#[test]
fn folds_start_with_the_initial_value() {
    let mut graph = Graph::new();
    let ty = TensorType::new(DType::F32, [3]);
    let x = graph.parameter(0, ty.clone());
    let initial = graph.parameter(1, TensorType::scalar(DType::F32));
    let fold = |graph: &mut Graph, x, sum| graph.binary(BinaryOp::Subtract, x, sum);
    let all = graph.reduce_fun(x, initial, None, false, fold).unwrap();
    let windows = graph.window_reduce(x, initial, &[2], &WindowOptions::default(), fold).unwrap();
    let types = vec![ty, TensorType::scalar(DType::F32)];
    let program = Program::new(&graph, types, &[all, windows]).unwrap();
    let initial = HostTensor::from_slice(&[10.0_f32], []).unwrap();
    let results = run(&program, &[vector(&[1.0, 2.0, 4.0]), initial]).unwrap();
    // 4 - (2 - (1 - 10)), and 2 - (1 - 10) and 4 - (2 - 10).
    assert_eq!(results[0].as_slice::<f32>().unwrap(), [-7.0]);
    assert_eq!(results[1].as_slice::<f32>().unwrap(), [11.0, 12.0]);
}
