//! Optimizers and schedules, compared with their formulas in scalar arithmetic.

use crate::common::{assert_close, compilers, numbers};
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
fn optimizers_follow_their_formulas() {
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
fn states_of_other_optimizers_are_errors() {
    let x = Tensor::from(1.0f32);
    let state = sgd(0.1).init(&x).unwrap();
    let step = jit(|x: Expr, state: State<Expr, Expr>| adam(0.1).step(&x, &x, &state));
    let error = step.call((&x, &state)).unwrap_err().to_string();
    assert!(error.starts_with("step: state: must come from `init`"), "{error}");
}

#[test]
fn gradients_and_states_have_the_shapes_of_the_parameters() {
    let (x, wide) = (Tensor::from(1.0f32), Tensor::from([1.0f32, 2.0]));
    let step = jit(|x: Expr, g: Expr, state: State<Expr, Expr>| adam(0.1).step(&x, &g, &state));
    let [state, wide_state] = [&x, &wide].map(|x| adam(0.1).init(x).unwrap());
    let expected = "expected the shape of the parameter, f32; got f32[2]";
    let error = step.call((&x, &wide, &state)).unwrap_err().to_string();
    assert!(error.starts_with(&format!("step: gradients: {expected}")), "{error}");
    let error = step.call((&x, &x, &wide_state)).unwrap_err().to_string();
    assert!(error.starts_with(&format!("step: state: {expected}")), "{error}");
}

#[test]
fn settings_without_a_meaning_are_errors() {
    let invalid: [(&str, fn(f64) -> Optimizer); 7] = [
        ("momentum: decay", |x| sgd(0.1).momentum(x)),
        ("nesterov: decay", |x| sgd(0.1).nesterov(x)),
        ("betas: b1", |x| adam(0.1).betas(x, 0.9)),
        ("betas: b2", |x| lion(0.1).betas(0.9, x)),
        ("epsilon", |x| adam(0.1).epsilon(-x.abs())),
        ("weight_decay: decay", |x| adamw(0.1).weight_decay(-x.abs())),
        ("clip_by_global_norm: max_norm", |x| sgd(0.1).clip_by_global_norm(-x.abs())),
    ];
    for (start, optimizer) in invalid {
        for value in [-0.5, 1.5, f64::NAN] {
            let error = optimizer(value).init(&Tensor::from(1.0f32)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{start}: must ")), "{value}: {error}");
        }
    }
}

#[test]
fn integer_parameters_are_rounded_to_nearest() {
    for compiler in compilers() {
        let optimizer = sgd(0.1).momentum(0.5);
        let mut x = Tensor::from([5, -5, 5]);
        let mut state = optimizer.init(&x).unwrap();
        assert_eq!(state.moments[0].dtype(), DType::F32);
        let step =
            jit(move |x: Expr, g: Expr, state: State<Expr, Expr>| optimizer.step(&x, &g, &state));
        let step = step.compiler(compiler);
        for _ in 0..2 {
            (x, state) = step.call((&x, Tensor::from([1, -1, -7]), &state)).unwrap();
        }
        assert_eq!(x.to_vec::<i32>().unwrap(), [5, -5, 7], "{compiler}");
        assert_eq!(state.moments[0].to_vec::<f32>().unwrap(), [1.5, -1.5, -10.5]);
    }
}

/// The parameter after steps on given gradients, in a dtype, as `f64`.
fn run_steps(optimizer: &Optimizer, compiler: &str, dtype: DType, gradients: &[f64]) -> Vec<f64> {
    let typed = |x: &[f64]| Tensor::from(x.to_vec()).as_type(dtype).unwrap();
    let mut x = typed(&vec![1.0; gradients.len()]);
    let mut state = optimizer.init(&x).unwrap();
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let optimizer = optimizer.clone();
    let step =
        jit(move |x: Expr, g: Expr, state: State<Expr, Expr>| optimizer.step(&x, &g, &state));
    let step = step.compiler(compiler);
    for _ in 0..2 {
        (x, state) = step.call((&x, &typed(gradients), &state)).unwrap();
        assert_eq!(x.dtype(), dtype);
        assert!(state.moments.iter().all(|moment| moment.dtype() == wide));
    }
    numbers(&x.as_type(DType::F64).unwrap())
}

#[test]
fn narrow_parameters_have_wide_states() {
    let gradients = [0.0, 300.0, 6e4, -0.5];
    for (dtype, close) in
        [(DType::F16, 2e-3), (DType::BF16, 1e-2), (DType::F32, 1e-6), (DType::F64, 1e-8)]
    {
        for compiler in compilers() {
            let moved = run_steps(&adam(0.125), compiler, dtype, &gradients);
            // Adam moves by the rate at each step if the gradient stays the same.
            for (found, expected) in moved.iter().zip([1.0, 0.75, 0.75, 1.25]) {
                assert!((found - expected).abs() < close, "{dtype} {compiler}: {moved:?}");
            }
            let moved = run_steps(&lion(0.125).weight_decay(0.0), compiler, dtype, &gradients);
            assert_eq!(moved, [1.0, 0.75, 0.75, 1.25], "{dtype} {compiler}");
        }
    }
}

#[test]
fn clipping_keeps_the_direction_of_gradients_of_any_size() {
    let direction = [0.5f64, -0.25, 1.0, 1.0];
    let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
    for (dtype, sizes, close) in [
        (DType::F16, [1e-3, 6e4], 2e-3),
        (DType::BF16, [1e-30, 3e38], 1e-2),
        (DType::F32, [1e-30, 3e38], 1e-6),
        (DType::F64, [1e-30, 1e308], 1e-6),
    ] {
        for compiler in compilers() {
            for size in sizes {
                let gradients = direction.map(|x| x * size);
                let norm = if size < 1.0 { size / 2.0 } else { 1.0 };
                let clipped = sgd(0.125 / norm).clip_by_global_norm(norm);
                let moved = run_steps(&clipped, compiler, dtype, &gradients);
                for (found, direction) in moved.iter().zip(direction) {
                    let expected = 1.0 - 2.0 * 0.125 * direction / length;
                    let what = format!("{dtype} {compiler} {size}: {moved:?}");
                    assert!((found - expected).abs() < close, "{what}");
                }
            }
            let unmoved = run_steps(&sgd(0.5).clip_by_global_norm(0.0), compiler, dtype, &[0.0; 3]);
            assert_eq!(unmoved, [1.0; 3]);
        }
    }
}
