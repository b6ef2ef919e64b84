//! Steps that compute several results, and large runs that several threads share.

use std::sync::Arc;
use std::thread;

use crate::common::{contents, program, run_unfused};
use nxla_eval::{EvalError, Hooks, Plan};
use nxla_expr::build::SliceStart;
use nxla_expr::{BinaryOp, Program, TensorType};
use nxla_tensor::{DType, HostTensor, Scalar};

fn numbers(len: usize, shape: &[usize]) -> HostTensor {
    let elements: Vec<f32> = (0..len).map(|at| ((at * 37 % 101) as f32 - 50.0) / 25.0).collect();
    HostTensor::from_slice(&elements, shape.to_vec()).unwrap()
}

#[test]
fn results_of_one_shape_are_one_step() {
    let ty = TensorType::new(DType::F32, [5000]);
    let program = Arc::new(program(&[ty.clone(), ty], |graph, ids| {
        let product = graph.multiply(ids[0], ids[1]).unwrap();
        let sum = graph.add(product, ids[0]).unwrap();
        let larger = graph.greater(product, sum).unwrap();
        let chosen = graph.select(larger, product, sum).unwrap();
        let rounded = graph.as_type(sum, DType::S16).unwrap();
        // The results contain one value twice, an input and a constant.
        vec![chosen, rounded, sum, chosen, ids[0]]
    }));
    let plan = Plan::new(program.clone());
    assert_eq!(plan.step_count(), 1);
    let inputs = vec![numbers(5000, &[5000]), numbers(5000, &[5000])];
    let expected = run_unfused(&program, inputs.clone());
    assert_eq!(contents(&plan.run(inputs, &Hooks::new()).unwrap()), contents(&expected));
}

#[test]
fn grid_windows_are_fused() {
    // Some shapes are too narrow for fusion, some need several blocks, and some use several
    // threads.
    for (rows, columns) in [(4, 4), (9, 34), (50, 60), (316, 316), (7, 9000), (1100, 900)] {
        let grid = TensorType::new(DType::F32, [rows, columns]);
        let types =
            [grid, TensorType::new(DType::F64, [rows, columns]), TensorType::scalar(DType::F32)];
        let program = Arc::new(program(&types, |graph, ids| {
            let lengths = [rows - 2, columns - 2];
            let mut window = |x: usize, row: usize, column: usize| {
                let starts = [SliceStart::at(row), SliceStart::at(column)];
                graph.slice(ids[x], &starts, &lengths, None).unwrap()
            };
            let (upper, lower) = (window(0, 0, 1), window(0, 2, 1));
            let (left, right, wide) = (window(0, 1, 0), window(0, 1, 2), window(1, 2, 2));
            let sum = graph.add(upper, lower).unwrap();
            let product = graph.multiply(left, right).unwrap();
            let scaled = graph.multiply(product, ids[2]).unwrap();
            let all = graph.add(sum, scaled).unwrap();
            let all_wide = graph.add(all, wide).unwrap();
            vec![all, all_wide]
        }));
        let plan = Plan::new(program.clone());
        assert_eq!(plan.step_count(), 1);
        let elements: Vec<f64> = (0..rows * columns).map(|at| (at as f64).sin()).collect();
        let inputs = vec![
            numbers(rows * columns, &[rows, columns]),
            HostTensor::from_slice(&elements, [rows, columns]).unwrap(),
            HostTensor::scalar(Scalar::Float(1.5), DType::F32),
        ];
        let expected = run_unfused(&program, inputs.clone());
        assert_eq!(contents(&plan.run(inputs, &Hooks::new()).unwrap()), contents(&expected));
    }
}

#[test]
fn dead_inputs_are_overwritten_after_their_last_read() {
    let ty = TensorType::new(DType::F32, [3000]);
    let program = Arc::new(program(&[ty.clone(), ty], |graph, ids| {
        let (x, y) = (ids[0], ids[1]);
        let sum = graph.add(x, y).unwrap();
        let difference = graph.subtract(x, y).unwrap();
        let product = graph.multiply(sum, difference).unwrap();
        let result = graph.add(product, x).unwrap();
        vec![sum, result, difference, product]
    }));
    let inputs = || vec![numbers(3000, &[3000]), numbers(3000, &[3000])];
    let expected = run_unfused(&program, inputs());
    let results = Plan::new(program).run(inputs(), &Hooks::new()).unwrap();
    assert_eq!(contents(&results), contents(&expected));
}

#[test]
fn consumers_with_other_access_run_later() {
    let ty = TensorType::new(DType::F32, [40, 40]);
    let program = Arc::new(program(&[ty], |graph, ids| {
        let x = ids[0];
        let double = graph.add(x, x).unwrap();
        let transposed = graph.transpose(double, Some(&[1, 0])).unwrap();
        let row = graph.sum(double, Some(&[0]), true).unwrap();
        let sum = graph.add(transposed, double).unwrap();
        let last = graph.subtract(sum, row).unwrap();
        vec![last, double, sum]
    }));
    let expected = run_unfused(&program, vec![numbers(1600, &[40, 40])]);
    let results = Plan::new(program).run(vec![numbers(1600, &[40, 40])], &Hooks::new()).unwrap();
    assert_eq!(contents(&results), contents(&expected));
}

/// A program with much work in many steps, so that threads share it.
fn large_program() -> Arc<Program> {
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
fn concurrent_large_runs_are_deterministic() {
    let plan = Plan::new(large_program());
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
fn large_runs_can_be_interrupted() {
    let plan = Plan::new(large_program());
    let input = || vec![numbers(25_600, &[160, 160])];
    let stopped = plan.run_with(input(), &Hooks::new(), Some(&|| true));
    // A run may end before the first check for cancellation.
    assert!(stopped.map_or_else(|error| error == EvalError::Interrupted, |_| true));
    let finished = plan.run_with(input(), &Hooks::new(), Some(&|| false)).unwrap();
    assert_eq!(contents(&finished), contents(&plan.run(input(), &Hooks::new()).unwrap()));
}

#[test]
fn annotated_values_are_computed() {
    let ty = TensorType::new(DType::F64, [2]);
    let program = Arc::new(program(&[ty.clone(), ty], |graph, ids| {
        let product = graph.multiply(ids[0], ids[1]).unwrap();
        let sum = graph.add(ids[0], ids[1]).unwrap();
        let results = graph
            .custom_grad(&[product, sum], ids, |_, dy| {
                Ok::<_, nxla_expr::Error>(vec![dy[0], dy[1]])
            })
            .unwrap();
        let result = graph.multiply(results[0], ids[0]).unwrap();
        vec![graph.add(result, results[1]).unwrap()]
    }));
    let input = |numbers: [f64; 2]| HostTensor::from_slice(&numbers, [2]).unwrap();
    let inputs = vec![input([0.5, 1.5]), input([2.0, 3.0])];
    let results = Plan::new(program).run(inputs, &Hooks::new()).unwrap();
    assert_eq!(results[0].as_slice::<f64>().unwrap(), [3.0, 11.25]);
}

#[test]
fn fused_pairs_match_separate_operations() {
    let operations = [BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Multiply];
    for dtype in [DType::F16, DType::F32, DType::F64] {
        let ty = TensorType::new(dtype, [1000]);
        let program = Arc::new(program(&[ty.clone(), ty.clone(), ty], |graph, ids| {
            let mut results = Vec::new();
            for (first, second) in operations.iter().flat_map(|&a| operations.map(|b| (a, b))) {
                for is_left in [true, false] {
                    let inner = graph.binary(first, ids[0], ids[1]).unwrap();
                    let [x, y] = if is_left { [inner, ids[2]] } else { [ids[2], inner] };
                    let outer = graph.binary(second, x, y).unwrap();
                    // Each is read once, and the sum of both is a result.
                    results.push(graph.max(outer, ids[2]).unwrap());
                }
                let inner = graph.binary(first, ids[0], ids[1]).unwrap();
                let outer = graph.binary(second, inner, inner).unwrap();
                results.push(graph.max(outer, ids[2]).unwrap());
            }
            results
        }));
        // Numbers that no dtype represents exactly.
        let operand = |step: usize| {
            let elements = (0..1000).map(|at| ((at * step % 997) as f64 - 400.0) / 301.0);
            HostTensor::from_vec(elements.collect(), [1000]).unwrap().cast(dtype)
        };
        let inputs = || [37, 101, 211].map(operand).to_vec();
        let expected = run_unfused(&program, inputs());
        let results = Plan::new(program).run(inputs(), &Hooks::new()).unwrap();
        assert_eq!(contents(&results), contents(&expected));
    }
}

#[test]
fn random_blocks_match_their_bodies() {
    for (count, dtype) in
        [(1, DType::F32), (7, DType::F32), (90_001, DType::F32), (40_000, DType::F64)]
    {
        let types = [TensorType::new(DType::U32, [2])];
        let program = Arc::new(program(&types, |graph, ids| {
            let [low, high] =
                [0.0, 1.0].map(|bound| graph.scalar_constant(Scalar::Float(bound), dtype).unwrap());
            let numbers = graph
                .random_uniform(ids[0], low, high, &nxla_expr::build::Draw::new([count]))
                .unwrap();
            vec![numbers]
        }));
        let key = || vec![HostTensor::from_slice(&[17_u32, 4_000_000_000], [2]).unwrap()];
        let expected = run_unfused(&program, key());
        let results = Plan::new(program).run(key(), &Hooks::new()).unwrap();
        assert_eq!(contents(&results), contents(&expected));
    }
}
