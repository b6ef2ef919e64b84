//! Calls by the compiler `auto` on both sides of each of its limits: values, device, donation,
//! hooks, errors and deallocation are the same on both backends. The tests do nothing without a
//! plugin.

use std::sync::{Arc, Mutex};

use crate::common::has_plugin;
use nxla::{Device, Expr, Tensor, devices, fori, hook, jit};

/// An argument and options of `auto`, and the backends of the first three calls.
struct Side {
    name: &'static str,
    elements: usize,
    work: Work,
    settings: &'static [(&'static str, i64)],
    backends: [&'static str; 3],
}

/// Work of a program that does not affect its results.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    Nothing,
    /// A loop of steps that compute one number.
    SmallSteps(i64),
    /// A loop of steps that compute products of matrices.
    Products,
}

const SIDES: [Side; 6] = [
    Side {
        name: "at most compile_above",
        elements: 1_000,
        work: Work::SmallSteps(100),
        settings: &[],
        backends: ["evaluator"; 3],
    },
    Side {
        name: "above compile_above",
        elements: 1_000,
        work: Work::SmallSteps(10_000),
        settings: &[],
        backends: ["evaluator", "evaluator", "xla"],
    },
    Side {
        name: "one call by compile_after",
        elements: 1_000,
        work: Work::Nothing,
        settings: &[("compile_above", 0), ("compile_after", 1)],
        backends: ["evaluator", "xla", "xla"],
    },
    Side {
        name: "no call by compile_after",
        elements: 1_000,
        work: Work::Nothing,
        settings: &[("compile_above", 0), ("compile_after", 0)],
        backends: ["xla"; 3],
    },
    Side {
        name: "slow small steps",
        elements: 1_000,
        work: Work::SmallSteps(1_000_000),
        settings: &[],
        backends: ["xla"; 3],
    },
    Side {
        name: "large steps",
        elements: 250_000,
        work: Work::Products,
        settings: &[],
        backends: ["evaluator"; 3],
    },
];

/// Returns the device of XLA, or `None` without a plugin.
fn device() -> Option<Device> {
    has_plugin().then(|| devices().unwrap().swap_remove(1))
}

impl Side {
    fn argument(&self) -> Tensor {
        let step = 6.0 / self.elements as f32;
        Tensor::from((0..self.elements).map(|at| step.mul_add(at as f32, -3.0)).collect::<Vec<_>>())
    }

    /// Computes the values by their formula, in double precision.
    fn expected(&self) -> Vec<f64> {
        let argument = self.argument().to_vec::<f32>().unwrap();
        argument
            .into_iter()
            .map(f64::from)
            .map(|x| x.sinh() * x.tanh() + x.mul_add(x, 1.0).ln())
            .collect()
    }

    fn compute(&self, x: &Expr) -> Expr {
        let y = x.sinh() * x.tanh() + (x * x + 1.0).log();
        let work = match self.work {
            Work::Nothing => return y,
            Work::SmallSteps(steps) => {
                let first = x.sum() * 0.0;
                fori(0, steps, first, |_, value| value * 0.5 + 1.0)
            }
            Work::Products => {
                let matrix = x.reshape([500, 500]);
                fori(0, 3, matrix.clone(), |_, product| product.dot(&matrix) * 0.01).sum()
            }
        };
        y + work * 0.0
    }

    #[track_caller]
    fn check(&self, result: &Tensor, device: &Device) {
        assert_eq!(result.device(), *device, "{}", self.name);
        for (found, expected) in result.to_vec::<f32>().unwrap().into_iter().zip(self.expected()) {
            let error = (f64::from(found) - expected).abs();
            assert!(error <= 1e-5 * expected.abs().max(1.0), "{}: {found} {expected}", self.name);
        }
    }
}

/// Runs a function of the side on `auto`.
macro_rules! by_auto {
    ($side:expr, $function:expr) => {{
        let jitted = jit($function).compiler("auto");
        $side.settings.iter().fold(jitted, |jitted, (name, value)| jitted.set(name, *value))
    }};
}

#[test]
fn values_and_devices_do_not_depend_on_the_backend() {
    let Some(device) = device() else { return };
    for side in &SIDES {
        let f = by_auto!(side, |x: Expr| side.compute(&x));
        let x = side.argument();
        for expected in side.backends {
            assert_eq!(f.explain(&x).unwrap().backend, expected, "{}", side.name);
            side.check(&f.call(&x).unwrap(), &device);
        }
    }
}

#[test]
fn donated_arguments_are_deleted_and_results_can_be_freed() {
    let Some(device) = device() else { return };
    for side in &SIDES {
        let f = by_auto!(side, |x: Expr| side.compute(&x)).donate([0]);
        for _ in 0..3 {
            let x = side.argument().on(&device).unwrap();
            let result = f.call(&x).unwrap();
            let error = x.to_vec::<f32>().unwrap_err().to_string();
            assert!(error.contains("donated"), "{}: {error}", side.name);
            side.check(&result, &device);
            assert!(result.deallocate().unwrap() && !result.deallocate().unwrap());
            let error = result.to_vec::<f32>().unwrap_err().to_string();
            assert!(error.contains("deallocated or donated"), "{}: {error}", side.name);
        }
    }
}

#[test]
fn hooks_run_and_their_errors_are_raised() {
    let Some(device) = device() else { return };
    for side in &SIDES {
        let seen = Arc::new(Mutex::new(0));
        let count = seen.clone();
        let f = by_auto!(side, |x: Expr| {
            let count = count.clone();
            hook(side.compute(&x), move |_: Tensor| {
                let mut count = count.lock().unwrap();
                *count += 1;
                if *count == 2 { Err("the second call fails") } else { Ok(()) }
            })
        });
        let x = side.argument();
        side.check(&f.call(&x).unwrap(), &device);
        let error = f.call(&x).unwrap_err().to_string();
        assert!(error.contains("the second call fails"), "{}: {error}", side.name);
        side.check(&f.call(&x).unwrap(), &device);
        assert_eq!(*seen.lock().unwrap(), 3, "{}", side.name);
    }
}
