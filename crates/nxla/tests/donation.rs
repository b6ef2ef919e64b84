//! The tensors of a donation: arguments by index, and parts of arguments by path.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};

use nxla::prelude::*;
use nxla::{
    CompileRequest, Compiler, Device, Evaluator, Executable, Function, Jit, UnusableDonation,
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
fn donated<F, Inputs, A>(f: Jit<F, Inputs>, arguments: A) -> Vec<usize>
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
fn a_position_is_an_argument_with_all_of_its_tensors() {
    assert_eq!(donated(jit(step).donate([0]), arguments()), [0, 1, 2, 3, 4, 5]);
    assert_eq!(donated(jit(step).donate([1]), arguments()), [6]);
    assert_eq!(donated(jit(step).donate([2, 1]), arguments()), [6, 7, 8]);
    assert_eq!(donated(jit(step).donate([0, 1, 2]), arguments()), Vec::from_iter(0..9));
    let one = |state: State<Expr>| state.map(|leaf| leaf + 1);
    assert_eq!(donated(jit(one).donate([0]), state()), Vec::from_iter(0..6));
    let boxed = jit(step).donate([1]).boxed();
    assert_eq!(donated(boxed, arguments()), [6]);
}

#[test]
fn a_path_is_a_part_of_an_argument() {
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
        assert_eq!(donated(jit(step).donate(paths), arguments()), expected);
    }
    let one = |state: State<Expr>| state.map(|leaf| leaf + 1);
    assert_eq!(donated(jit(one).donate(["0.moments[0]"]), state()), [1]);
}

#[test]
fn what_is_not_in_the_call_is_an_error() {
    for (path, named) in [("3", "3"), ("0.weight", "0.weight"), ("0.moments[2]", "0.moments[2]")] {
        let error = jit(step).donate([path]).call(arguments()).unwrap_err().to_string();
        let start = format!("donate: {named}: must be an argument or a part of one; the tensors");
        assert!(error.starts_with(&start) && error.contains("0.moments[1], 0.bias"), "{error}");
    }
}

#[test]
fn a_donation_of_no_use_is_an_error_on_request() {
    let sums = |x: Expr, y: Expr| (x.sum(), y + 1);
    let call = || (Tensor::from([1.0f32, 2.0, 3.0]), Tensor::from([3.0f32, 4.0]));
    assert!(jit(sums).donate([0, 1]).call(call()).is_ok());
    let strict = jit(sums).on_unusable_donation(UnusableDonation::Raise);
    let error = strict.donate([0, 1]).call(call()).unwrap_err().to_string();
    assert!(error.contains("no result can take over the memory of 0 (f32[3]);"), "{error}");
    let strict = jit(sums).on_unusable_donation(UnusableDonation::Raise);
    assert!(strict.donate([1]).call(call()).is_ok());
}
