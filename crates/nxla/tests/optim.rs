//! Optimizers and schedules, compared with their formulas in scalar arithmetic.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::{assert_close, compilers, numbers};
use nxla::optim::{Optimizer, Schedule, State, adam, adamw, lion, sgd};
use nxla::prelude::*;

#[derive(Container, Clone)]
struct Pair<T> {
    x: T,
    rest: Vec<T>,
}

/// Returns the parameters after some steps with the gradient `3 x^2`, element by element.
fn run(optimizer: &Optimizer, compiler: &str, steps: usize) -> Vec<f64> {
    let rest = vec![Tensor::from([0.75f64, -1.5])];
    let mut pair = Pair { x: Tensor::from(0.5f64), rest };
    let mut state = optimizer.init(&pair).unwrap();
    let optimizer = optimizer.clone();
    let step = jit(move |pair: Pair<Expr>, state: State<Pair<Expr>, Expr>| {
        let slopes =
            grad(|pair: Pair<Expr>| pair.x.pow(3) + pair.rest[0].pow(3).sum())(pair.clone());
        optimizer.step(&pair, &slopes, &state)
    });
    let step = step.compiler(compiler);
    for _ in 0..steps {
        (pair, state) = step.call((&pair, &state)).unwrap();
    }
    assert_eq!(numbers(&state.steps), [steps as f64]);
    [numbers(&pair.x), numbers(&pair.rest[0])].concat()
}

/// Computes the same with a rule for one element: gradient, element, moments and the number of the
/// step.
fn expected(steps: usize, rule: impl Fn(f64, f64, &mut [f64; 2], i32) -> f64) -> Vec<f64> {
    let element = |mut x: f64| {
        let mut moments = [0.0; 2];
        for step in 1..=steps {
            x = rule(3.0 * x * x, x, &mut moments, step as i32);
        }
        x
    };
    [0.5, 0.75, -1.5].map(element).to_vec()
}

fn check(optimizer: &Optimizer, rule: impl Fn(f64, f64, &mut [f64; 2], i32) -> f64) {
    for compiler in compilers() {
        for steps in [1, 2, 7] {
            let what = format!("{optimizer:?} on {compiler}");
            assert_close(&run(optimizer, compiler, steps), &expected(steps, &rule), &what);
        }
    }
}

#[test]
fn optimisers_follow_their_formulas() {
    check(&sgd(0.1), |g, x, _, _| x - 0.1 * g);
    check(&sgd(0.1).momentum(0.8), |g, x, m, _| {
        m[0] = g + 0.8 * m[0];
        x - 0.1 * m[0]
    });
    check(&sgd(0.1).nesterov(0.8), |g, x, m, _| {
        m[0] = g + 0.8 * m[0];
        x - 0.1 * (g + 0.8 * m[0])
    });
    check(&sgd(0.1).weight_decay(0.25), |g, x, _, _| x - 0.1 * (g + 0.25 * x));
    let adam_step = |g: f64, m: &mut [f64; 2], step: i32| {
        *m = [0.9 * m[0] + 0.1 * g, 0.999 * m[1] + 0.001 * g * g];
        let first = m[0] / (1.0 - 0.9f64.powi(step));
        first / ((m[1] / (1.0 - 0.999f64.powi(step))).sqrt() + 1e-8)
    };
    check(&adam(0.1), |g, x, m, step| x - 0.1 * adam_step(g, m, step));
    check(&adamw(0.1), |g, x, m, step| x - 0.1 * (adam_step(g, m, step) + 1e-4 * x));
    check(&lion(0.1), |g, x, m, _| {
        let step = (0.9 * m[0] + 0.1 * g).signum();
        m[0] = 0.99 * m[0] + 0.01 * g;
        x - 0.1 * (step + 1e-3 * x)
    });
    check(&sgd(Schedule::linear(0.1, 0.0, 4)), |g, x, _, step| {
        x - (0.1 - 0.025 * f64::from(step - 1).min(4.0)) * g
    });
}

#[test]
fn gradients_are_clipped_by_their_norm_over_all_leaves() {
    for compiler in compilers() {
        let norm = [0.5f64, 0.75, -1.5].map(|x| (3.0 * x * x).powi(2)).iter().sum::<f64>().sqrt();
        let small = run(&sgd(0.1).clip_by_global_norm(2.0 * norm), compiler, 1);
        assert_close(&small, &expected(1, |g, x, _, _| x - 0.1 * g), compiler);
        let large = run(&sgd(0.1).clip_by_global_norm(norm / 4.0), compiler, 1);
        assert_close(&large, &expected(1, |g, x, _, _| x - 0.025 * g), compiler);
    }
}

#[test]
fn a_state_of_another_optimiser_is_an_error() {
    let x = Tensor::from(1.0f32);
    let state = sgd(0.1).init(&x).unwrap();
    let step = jit(|x: Expr, state: State<Expr, Expr>| adam(0.1).step(&x, &x, &state));
    let error = step.call((&x, &state)).unwrap_err().to_string();
    assert!(error.starts_with("step: state: must come from `init`"), "{error}");
}
