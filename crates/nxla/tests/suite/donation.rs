//! Donations: their arguments and parts of arguments, and the contract of a call.

use std::sync::{Arc, Mutex};

use crate::common::{compilers, numbers};
use nxla::prelude::*;
use nxla::{
    CompileRequest, Compiler, Device, Evaluator, Executable, Function, Jit, UnusableDonation, hook,
};

#[derive(Container, Clone, Debug)]
struct State<T> {
    weights: T,
    moments: [T; 2],
    bias: Option<T>,
    layers: Vec<T>,
}

fn state() -> State<Tensor> {
    let x = || Tensor::from([1.0f32, 2.0]);
    State { weights: x(), moments: [x(), x()], bias: Some(x()), layers: vec![x(), x()] }
}

/// Records which inputs are donated.
#[derive(Default)]
struct Noting(Mutex<Vec<bool>>);

impl Compiler for Noting {
    fn name(&self) -> &str {
        "noting"
    }

    fn compile(&self, request: &CompileRequest<'_>) -> nxla::Result<Arc<dyn Executable>> {
        self.0.lock().unwrap().clone_from(&request.donated.to_vec());
        Evaluator.compile(request)
    }

    fn check_device(&self, device: &Device) -> nxla::Result<()> {
        Evaluator.check_device(device)
    }
}

/// Returns the indices of the inputs that a function donates.
fn donated_inputs<F, Inputs, A>(f: Jit<F, Inputs>, arguments: A) -> Vec<usize>
where
    F: Function<Inputs>,
    A: nxla::Arguments<F::Arguments, Tensor>,
{
    let noting = Arc::new(Noting::default());
    f.compiler(noting.clone() as Arc<dyn Compiler>).call(arguments).unwrap();
    let marks = noting.0.lock().unwrap();
    (0..marks.len()).filter(|&at| marks[at]).collect()
}

fn step(state: State<Expr>, x: Expr, more: [Expr; 2]) -> (State<Expr>, Expr, [Expr; 2]) {
    (state.map(|leaf| leaf + 1), x + 1, more.map(|leaf| leaf + 1))
}

fn arguments() -> (State<Tensor>, Tensor, [Tensor; 2]) {
    let x = || Tensor::from([1.0f32, 2.0]);
    (state(), x(), [x(), x()])
}

#[test]
fn positions_donate_all_leaves_of_an_argument() {
    assert_eq!(donated_inputs(jit(step).donate([0]), arguments()), [0, 1, 2, 3, 4, 5]);
    assert_eq!(donated_inputs(jit(step).donate([1]), arguments()), [6]);
    assert_eq!(donated_inputs(jit(step).donate([2, 1]), arguments()), [6, 7, 8]);
    assert_eq!(donated_inputs(jit(step).donate([0, 1, 2]), arguments()), Vec::from_iter(0..9));
    let one = |state: State<Expr>| state.map(|leaf| leaf + 1);
    assert_eq!(donated_inputs(jit(one).donate([0]), state()), Vec::from_iter(0..6));
    let boxed = jit(step).donate([1]).boxed();
    assert_eq!(donated_inputs(boxed, arguments()), [6]);
}

#[test]
fn paths_donate_parts_of_arguments() {
    let cases: [(&[&str], &[usize]); 6] = [
        (&["0.weights"], &[0]),
        (&["0.moments"], &[1, 2]),
        (&["0.moments[1]", "2[0]"], &[2, 7]),
        (&["0.layers", "0.bias"], &[3, 4, 5]),
        (&["1"], &[6]),
        (&["2[1]"], &[8]),
    ];
    for (paths, expected) in cases {
        let paths = paths.iter().copied();
        assert_eq!(donated_inputs(jit(step).donate(paths), arguments()), expected);
    }
    let one = |state: State<Expr>| state.map(|leaf| leaf + 1);
    assert_eq!(donated_inputs(jit(one).donate(["0.moments[0]"]), state()), [1]);
}

#[test]
fn unknown_donation_paths_are_errors() {
    for (path, named) in [("3", "3"), ("0.weight", "0.weight"), ("0.moments[2]", "0.moments[2]")] {
        let error = jit(step).donate([path]).call(arguments()).unwrap_err().to_string();
        let start = format!("donate: {named}: must be an argument or a part of one; the tensors");
        assert!(error.starts_with(&start) && error.contains("0.moments[1], 0.bias"), "{error}");
    }
}

#[test]
fn unusable_donations_are_errors_on_request() {
    let sums = |x: Expr, y: Expr| (x.sum(), y + 1);
    let call = || (Tensor::from([1.0f32, 2.0, 3.0]), Tensor::from([3.0f32, 4.0]));
    assert!(jit(sums).donate([0, 1]).call(call()).is_ok());
    let strict = jit(sums).on_unusable_donation(UnusableDonation::Raise);
    let error = strict.donate([0, 1]).call(call()).unwrap_err().to_string();
    assert!(error.contains("no result can reuse the memory of 0 (f32[3]);"), "{error}");
    let strict = jit(sums).on_unusable_donation(UnusableDonation::Raise);
    assert!(strict.donate([1]).call(call()).is_ok());
}

/// A tensor on XLA's device; `None` without a plugin.
fn on_device() -> Option<Tensor> {
    let make = || jit(|x: Expr| x + 1).compiler("xla").call(Tensor::from([0.0f32, 1.0])).unwrap();
    compilers().contains(&"xla").then(make)
}

#[test]
fn accepted_calls_consume_donated_inputs() {
    for compiler in ["evaluator", "xla", "auto"] {
        let Some(x) = on_device() else { return };
        jit(|x: Expr| x * 2).compiler(compiler).donate([0]).call(&x).unwrap();
        assert!(x.to_host().unwrap_err().to_string().contains("donated to call"), "{compiler}");
        let (x, y) = (on_device().unwrap(), on_device().unwrap());
        let sum = jit(|x: Expr, _: Expr| x.sum()).compiler(compiler).donate([0, 1]);
        assert_eq!(numbers(&sum.call((&x, &y)).unwrap()), [3.0]);
        assert!(x.is_released().unwrap() && !y.is_released().unwrap(), "{compiler}");
        fn fail(_: Tensor) -> Result<(), nxla::graph::HostError> {
            Err("no".into())
        }
        let failing = jit(move |x: Expr| hook(x * 2, fail)).compiler(compiler).donate([0]);
        assert!(failing.call(&y).unwrap_err().to_string().contains("no"), "{compiler}");
        assert!(y.is_released().unwrap(), "{compiler}");
    }
}

#[test]
fn rejected_calls_keep_donated_inputs() {
    for compiler in ["evaluator", "xla", "auto"] {
        let Some(x) = on_device() else { return };
        let pair = |[x, y]: [Expr; 2], z: Expr| x + y + z;
        let step = jit(pair).compiler(compiler).donate(["0[1]"]);
        let expected =
            "call: argument 0[1]: a donated tensor must be passed once; got the same tensor as";
        for (other, arguments) in [
            ("argument 0[0]", ([x.clone(), x.clone()], Tensor::from(1.0f32))),
            ("argument 1", ([Tensor::from(1.0f32), x.clone()], x.clone())),
        ] {
            let error = step.call(arguments).unwrap_err().to_string();
            assert_eq!(error, format!("{expected} {other}; pass a copy"), "{compiler}");
        }
        let wrong = jit(|x: Expr| x * 2).compiler(compiler).set("speed", 11).donate([0]);
        assert!(wrong.call(&x).unwrap_err().to_string().contains("speed"), "{compiler}");
        let deallocated = on_device().unwrap();
        deallocated.deallocate().unwrap();
        let error =
            jit(|x: Expr, y: Expr| x + y).compiler(compiler).donate([0]).call((&x, &deallocated));
        assert!(error.is_err() && !x.is_released().unwrap(), "{compiler}");
    }
}
