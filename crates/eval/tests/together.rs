//! Steps that compute several results, and large runs that several threads share.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::sync::Arc;
use std::thread;

use common::program;
use nxla_eval::{EvalError, Hooks, Plan};
use nxla_expr::{Program, TensorType};
use nxla_tensor::{DType, HostTensor};

fn numbers(len: usize, shape: &[usize]) -> HostTensor {
    let elements: Vec<f32> = (0..len).map(|at| ((at * 37 % 101) as f32 - 50.0) / 25.0).collect();
    HostTensor::from_slice(&elements, shape.to_vec()).unwrap()
}

/// Dtypes, shapes and bytes.
fn contents(results: &[HostTensor]) -> Vec<(DType, Vec<usize>, Vec<u8>)> {
    let parts = |x: &HostTensor| (x.dtype(), x.shape().to_vec(), x.bytes().to_vec());
    results.iter().map(parts).collect()
}

/// What comes out when each operation is a step of its own.
fn one_by_one(program: &Arc<Program>, inputs: Vec<HostTensor>) -> Vec<HostTensor> {
    Plan::checked(program.clone()).run(inputs, &Hooks::new()).unwrap()
}

#[test]
fn results_of_one_shape_take_one_step() {
    let ty = TensorType::new(DType::F32, [5000]);
    let program = Arc::new(program(&[ty.clone(), ty], |graph, ids| {
        let product = graph.multiply(ids[0], ids[1]).unwrap();
        let sum = graph.add(product, ids[0]).unwrap();
        let larger = graph.greater(product, sum).unwrap();
        let chosen = graph.select(larger, product, sum).unwrap();
        let rounded = graph.as_type(sum, DType::S16).unwrap();
        // One result twice, an input and a constant among the results.
        vec![chosen, rounded, sum, chosen, ids[0]]
    }));
    let plan = Plan::new(program.clone());
    assert_eq!(plan.step_count(), 1);
    let inputs = vec![numbers(5000, &[5000]), numbers(5000, &[5000])];
    let expected = one_by_one(&program, inputs.clone());
    assert_eq!(contents(&plan.run(inputs, &Hooks::new()).unwrap()), contents(&expected));
}

#[test]
fn inputs_that_die_are_overwritten_only_once_they_are_read() {
    let ty = TensorType::new(DType::F32, [3000]);
    let program = Arc::new(program(&[ty.clone(), ty], |graph, ids| {
        let (x, y) = (ids[0], ids[1]);
        let sum = graph.add(x, y).unwrap();
        let difference = graph.subtract(x, y).unwrap();
        let product = graph.multiply(sum, difference).unwrap();
        let again = graph.add(product, x).unwrap();
        vec![sum, again, difference, product]
    }));
    let inputs = || vec![numbers(3000, &[3000]), numbers(3000, &[3000])];
    let expected = one_by_one(&program, inputs());
    let results = Plan::new(program).run(inputs(), &Hooks::new()).unwrap();
    assert_eq!(contents(&results), contents(&expected));
}

#[test]
fn what_depends_on_a_result_otherwise_comes_after_it() {
    let ty = TensorType::new(DType::F32, [40, 40]);
    let program = Arc::new(program(&[ty], |graph, ids| {
        let x = ids[0];
        let double = graph.add(x, x).unwrap();
        let turned = graph.transpose(double, Some(&[1, 0])).unwrap();
        let row = graph.sum(double, Some(&[0]), true).unwrap();
        let sum = graph.add(turned, double).unwrap();
        let last = graph.subtract(sum, row).unwrap();
        vec![last, double, sum]
    }));
    let expected = one_by_one(&program, vec![numbers(1600, &[40, 40])]);
    let results = Plan::new(program).run(vec![numbers(1600, &[40, 40])], &Hooks::new()).unwrap();
    assert_eq!(contents(&results), contents(&expected));
}

/// Much work in many steps, so that it is handed over.
fn large() -> Arc<Program> {
    let ty = TensorType::new(DType::F32, [160, 160]);
    Arc::new(program(&[ty], |graph, ids| {
        let mut x = ids[0];
        for _ in 0..12 {
            let product = graph.matmul(x, ids[0]).unwrap();
            let mean = graph.mean(product, Some(&[1]), true).unwrap();
            let centered = graph.subtract(product, mean).unwrap();
            x = graph.tanh(centered).unwrap();
        }
        vec![x]
    }))
}

#[test]
fn large_runs_give_the_same_side_by_side() {
    let plan = Plan::new(large());
    let run = || plan.run(vec![numbers(25_600, &[160, 160])], &Hooks::new()).unwrap();
    let expected = run();
    thread::scope(|scope| {
        let runs: Vec<_> =
            (0..3).map(|_| scope.spawn(|| (0..3).map(|_| run()).collect())).collect();
        for results in runs {
            let results: Vec<Vec<HostTensor>> = results.join().unwrap();
            assert!(results.iter().all(|result| contents(result) == contents(&expected)));
        }
    });
}

#[test]
fn large_runs_are_broken_off() {
    let plan = Plan::new(large());
    let input = || vec![numbers(25_600, &[160, 160])];
    let stopped = plan.run_with(input(), &Hooks::new(), Some(&|| true));
    // A run may end before anybody asks.
    assert!(stopped.map_or_else(|error| error == EvalError::Interrupted, |_| true));
    let finished = plan.run_with(input(), &Hooks::new(), Some(&|| false)).unwrap();
    assert_eq!(contents(&finished), contents(&plan.run(input(), &Hooks::new()).unwrap()));
}

#[test]
fn parts_of_an_annotation_are_values_like_others() {
    let ty = TensorType::new(DType::F64, [2]);
    let program = Arc::new(program(&[ty.clone(), ty], |graph, ids| {
        let product = graph.multiply(ids[0], ids[1]).unwrap();
        let sum = graph.add(ids[0], ids[1]).unwrap();
        let results = graph
            .custom_grad(&[product, sum], ids, |_, dy| {
                Ok::<_, nxla_expr::Error>(vec![dy[0], dy[1]])
            })
            .unwrap();
        let again = graph.multiply(results[0], ids[0]).unwrap();
        vec![graph.add(again, results[1]).unwrap()]
    }));
    let input = |numbers: [f64; 2]| HostTensor::from_slice(&numbers, [2]).unwrap();
    let inputs = vec![input([0.5, 1.5]), input([2.0, 3.0])];
    let results = Plan::new(program).run(inputs, &Hooks::new()).unwrap();
    assert_eq!(results[0].as_slice::<f64>().unwrap(), [3.0, 11.25]);
}
