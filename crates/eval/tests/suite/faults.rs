//! Runs that fail or end early, and elements that are not finite.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nxla_eval::{EvalError, Hooks, Plan, first_nan, first_not_finite};
use nxla_expr::build::Cumulative;
use nxla_expr::{ExprId, Program, TensorType};
use nxla_tensor::{Complex, DType, HostTensor, Scalar};

use super::common::program;

#[test]
fn hook_panics_propagate() {
    let ty = TensorType::scalar(DType::F32);
    let program = program(&[ty], |g, x| g.hook(x, Some("name"), None).expect("it has a name"));
    let mut hooks = Hooks::new();
    hooks.insert("name", Arc::new(|_: &[HostTensor]| std::panic::resume_unwind(Box::new("a bug"))));
    let plan = Plan::new(Arc::new(program));
    let zero = HostTensor::scalar(Scalar::Float(0.0), DType::F32);
    let run = || plan.run(vec![zero.clone()], &hooks).map(drop);
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the host function panics");
    assert_eq!(panic.downcast_ref(), Some(&"a bug"));
}

/// A factorization cannot be stopped, but the caller does not wait for its end.
#[test]
fn interrupts_abandon_long_factorizations() {
    let side = 700;
    let ty = TensorType::new(DType::F64, [side, side]);
    let program = program(std::slice::from_ref(&ty), |g, x| {
        vec![g.svd(x[0], true).expect("it is a matrix").0]
    });
    let numbers: Vec<f64> = (0..side * side).map(|at| (at as f64 * 0.7).sin()).collect();
    let x = HostTensor::from_vec(numbers, [side, side]).expect("a square matrix");
    let calls = AtomicUsize::new(0);
    let interrupt = || calls.fetch_add(1, Ordering::Relaxed) > 2;
    let start = Instant::now();
    let stopped = Plan::new(Arc::new(program)).run_with(vec![x], &Hooks::new(), Some(&interrupt));
    assert_eq!(stopped.expect_err("the run is cancelled"), EvalError::Interrupted);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// The partial results of 10^14 differences would need more memory than there is.
#[test]
fn interrupts_stop_sums_of_more_elements_than_fit_in_memory() {
    let size = 10_000_000;
    let types = [TensorType::new(DType::F32, [size, 1]), TensorType::new(DType::F32, [size])];
    let program = program(&types, |g, x| {
        let difference = g.subtract(x[0], x[1]).expect("the shapes broadcast");
        let square = g.multiply(difference, difference).expect("numbers");
        vec![g.sum(square, None, false).expect("numbers")]
    });
    let zeros = types.map(|ty| HostTensor::zeros(ty.dtype, ty.shape).expect("it fits in memory"));
    let calls = AtomicUsize::new(0);
    let interrupt = || calls.fetch_add(1, Ordering::Relaxed) > 2;
    let plan = Plan::new(Arc::new(program));
    assert_eq!(plan.step_count(), 1);
    let stopped = plan.run_with(zeros.into(), &Hooks::new(), Some(&interrupt));
    assert_eq!(stopped.expect_err("the run is cancelled"), EvalError::Interrupted);
}

/// A loop of three iterations that returns some of its states: `y` grows by `x`, which doubles, and the states
/// `z` and `w` are accumulated and exchanged.
fn loop_program(returned: &[usize], size: usize) -> Program {
    let scalar = TensorType::scalar(DType::F64);
    let vector = TensorType::new(DType::F64, [size]);
    let types = [scalar, vector.clone(), vector.clone(), vector.clone(), vector];
    program(&types, |graph, initial| {
        let mark = graph.mark();
        let scope = graph.open_scope("while", &types);
        let &[n, x, y, z, w] = &scope.parameters[..] else { unreachable!("five states") };
        let mut number = |value| graph.scalar_constant(Scalar::Float(value), DType::F64);
        let (one, three) = (number(1.0).expect("a number"), number(3.0).expect("a number"));
        let holds = graph.less(n, three).expect("numbers have an order");
        let condition = graph.traced(mark, vec![holds]);
        let [z, w] = [w, z].map(|x| graph.cumulative(Cumulative::Sum, x, 0, false));
        let next = [graph.add(n, one), graph.add(x, x), graph.add(y, x), z, w];
        let next = next.map(|next| next.expect("the operands have one shape")).to_vec();
        let body = graph.traced(mark, next);
        let found = graph.while_loop(mark, &scope, initial, condition, body).expect("it fits");
        returned.iter().map(|&at| found[at]).collect::<Vec<ExprId>>()
    })
}

/// The interrupt is called before each step on tensors, so that its calls count the steps.
#[test]
fn dead_states_are_not_computed() {
    // Too large for the arena, and too small for the thread pool, whose threads do not call the
    // interrupt function.
    let size = 2100;
    let mut steps = Vec::new();
    for (returned, expected) in [
        (&[1][..], vec![8.0]),
        (&[2], vec![12.0]),
        (&[2, 3], vec![12.0, 0.25]),
        (&[0, 1, 2, 3, 4], vec![3.0, 8.0, 12.0, 0.25, 0.5]),
    ] {
        let vector = |value| HostTensor::full(Scalar::Float(value), DType::F64, [size]).unwrap();
        let zero = HostTensor::scalar(Scalar::Float(0.0), DType::F64);
        let inputs = vec![zero, vector(1.0), vector(5.0), vector(0.5), vector(0.25)];
        let calls = AtomicUsize::new(0);
        let interrupt = || {
            calls.fetch_add(1, Ordering::Relaxed);
            false
        };
        let plan = Plan::new(Arc::new(loop_program(returned, size)));
        let found = plan.run_with(inputs, &Hooks::new(), Some(&interrupt)).expect("it runs");
        let found: Vec<f64> = found.iter().map(|x| x.get(0).as_f64()).collect();
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        steps.push(calls.into_inner());
    }
    // Each of the three iterations has fewer steps if unused states are removed.
    let [x, y, all_but_w, all] = steps[..] else { unreachable!("four programs") };
    assert!(x < all_but_w && y < all_but_w, "{steps:?}");
    assert_eq!(all_but_w, all, "the exchanged states depend on each other");
}

#[test]
fn finds_the_first_non_finite_element() {
    let tensor = HostTensor::from_slice(&[1.0_f32, 2.0, f32::NAN, f32::INFINITY], [2, 2]).unwrap();
    assert_eq!(first_not_finite(&tensor), Some((vec![1, 0], "NaN".into())));
    let half = HostTensor::from_slice(&[1.0_f32, -f32::INFINITY], [2]).unwrap().cast(DType::F16);
    assert_eq!(first_not_finite(&half), Some((vec![1], "-inf".into())));
    let complex = [Complex::new(1.0, 0.0), Complex::new(f64::NAN, -1.0)];
    let complex = HostTensor::from_slice(&complex, [2]).unwrap();
    assert_eq!(first_not_finite(&complex), Some((vec![1], "NaN-1i".into())));
    let whole = HostTensor::from_slice(&[1_i32], [1]).unwrap();
    assert_eq!(first_not_finite(&whole), None);
    let mask = HostTensor::from_slice(&[f32::INFINITY, f32::NAN], [2]).unwrap();
    assert_eq!(first_nan(&mask), Some((vec![1], "NaN".into())));
    assert_eq!(first_nan(&half), None);
}
