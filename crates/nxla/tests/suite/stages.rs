//! Functions split into stages, on every available compiler and on executors.

use std::sync::Arc;
use std::sync::Mutex;
use std::thread;

use crate::common::{compilers, numbers};
use nxla::graph::Node;
use nxla::runtime::Done;
use nxla::split::{Decision, Stage};
use nxla::{
    DType, Error, Expr, Options, StageExecutor, Tensor, TensorType, default_options, hook, jit,
    runtime,
};

fn scalar() -> TensorType {
    TensorType::scalar(DType::F32)
}

fn cut_after(name: &'static str) -> impl FnMut(Node<'_>) -> Decision {
    move |node| if node.op.name() == name { Decision::After } else { Decision::None }
}

/// Runs each stage on a separate thread from its serialized bytes, as another process would.
#[derive(Default)]
struct Elsewhere {
    submitted: Mutex<Vec<usize>>,
}

impl StageExecutor for Elsewhere {
    fn submit(
        &self,
        stage: &Stage,
        inputs: Vec<runtime::RawTensor>,
        done: Done,
    ) -> Result<(), Error> {
        self.submitted.lock().unwrap().push(stage.id.index());
        let bytes = stage.to_bytes();
        thread::spawn(move || {
            let results = Stage::from_bytes(&bytes).map_err(Error::from).and_then(|stage| {
                let inputs: Vec<&runtime::RawTensor> = inputs.iter().collect();
                let options = Options::new().over(&default_options());
                runtime::run_program("stage", &stage.program, &options, &inputs, None)
            });
            done.end(move || results);
        });
        Ok(())
    }
}

#[test]
fn stages_keep_the_containers_of_the_function() {
    let table = Tensor::iota([8192], None, DType::F32).unwrap();
    let step = |(x, list): (Expr, Vec<Expr>), scale: Expr| {
        let element = Expr::of(&table).at_axis(5, 0);
        let list: Vec<Expr> = list.into_iter().map(|y| (y * &scale).sin() + &element).collect();
        (list, x.cos())
    };
    for compiler in compilers() {
        let f = jit(step).compiler(*compiler);
        let types = ((scalar(), vec![scalar(), scalar()]), scalar());
        let stages = f.split(types, cut_after("sin")).unwrap();
        assert!(stages.graph().stages().len() > 1);
        let arguments = || ((0.5f32, vec![1.0f32, 2.0]), 3.0f32);
        let (list, cosine) = stages.run(arguments()).unwrap();
        let (whole, expected) = f.call(arguments()).unwrap();
        assert_eq!(list.len(), 2);
        for (stage, whole) in list.iter().zip(&whole) {
            assert_eq!(numbers(stage), numbers(whole), "{compiler}");
        }
        assert_eq!(numbers(&cosine), numbers(&expected));
    }
}

#[test]
fn stages_reject_arguments_of_other_types() {
    let stages = jit(|x: Expr| x.sin().cos()).split(scalar(), cut_after("sin")).unwrap();
    let error = stages.run(1i32).unwrap_err().to_string();
    assert_eq!(error, "stages: argument: must be f32; got s32");
}

#[test]
fn stages_run_on_an_executor() {
    let elsewhere = Elsewhere::default();
    let stages = jit(|x: Expr| x.sin().cos()).split(scalar(), cut_after("sin")).unwrap();
    assert_eq!(numbers(&stages.run_on(&elsewhere, 0.0f32).unwrap()), [1.0]);
    assert_eq!(*elsewhere.submitted.lock().unwrap(), [0, 1]);
}

#[test]
fn values_are_donated_to_their_last_stage() {
    let layers = |x: Expr, w: Expr| {
        let second = layer(layer(x, &w), &w);
        (layer(second.clone(), &w), second)
    };
    for compiler in compilers() {
        let f = jit(layers).compiler(*compiler);
        let square = TensorType::new(DType::F32, [2, 2]);
        let stages = f.split((square.clone(), square), cut_after("tanh")).unwrap();
        let make = jit(|x: Expr| x * 0.5).compiler(*compiler);
        let x = make.call(Tensor::from([[1f32, 2.0], [3.0, 4.0]])).unwrap();
        let w = make.call(Tensor::from([[0.5f32, -1.0], [1.0, 0.25]])).unwrap();
        let (last, second) = f.call((&x, &w)).unwrap();
        for _ in 0..3 {
            let (staged, other) = stages.run((&x, &w)).unwrap();
            assert_eq!(numbers(&staged), numbers(&last), "{compiler}");
            assert_eq!(numbers(&other), numbers(&second), "{compiler}");
        }
        assert_eq!(numbers(&x), [0.5, 1.0, 1.5, 2.0]);
        assert_eq!(numbers(&w), [0.25, -0.5, 0.5, 0.125]);
    }
}

fn layer(x: Expr, w: &Expr) -> Expr {
    x.dot(w).tanh()
}

#[test]
fn stages_with_listened_hooks_run_in_this_process() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = {
        let seen = seen.clone();
        move |x: Tensor| {
            seen.lock().unwrap().push(numbers(&x)[0]);
            Ok::<(), String>(())
        }
    };
    let elsewhere = Elsewhere::default();
    let f = jit(move |x: Expr| hook(x.sin(), look.clone()).cos());
    let stages = f.split(scalar(), cut_after("sin")).unwrap();
    assert_eq!(numbers(&stages.run_on(&elsewhere, 0.0f32).unwrap()), [1.0]);
    assert_eq!(*seen.lock().unwrap(), [0.0]);
    assert_eq!(*elsewhere.submitted.lock().unwrap(), [0], "the second stage has the hook");
}

#[test]
fn stages_run_on_the_device_of_their_operands() {
    if !compilers().contains(&"xla") {
        return;
    }
    let one = jit(|x: Expr| x).compiler("xla").call(1.0f32).unwrap();
    let stages = jit(|x: Expr| x.sin().cos()).split(scalar(), cut_after("sin")).unwrap();
    assert_eq!(stages.run(&one).unwrap().device(), one.device());
    assert!(stages.run(1.0f32).unwrap().device().is_host());
}

#[test]
fn lists_of_other_lengths_are_named() {
    let ty = scalar();
    let add = |x: Vec<Expr>, y: Vec<Expr>| (&x[0] + &y[0]).sin();
    let lists = |x: usize, y: usize| (vec![ty.clone(); x], vec![ty.clone(); y]);
    let stages = jit(add).split(lists(2, 1), cut_after("add")).unwrap();
    let number = || Tensor::from(1.0f32);
    let error = stages.run((vec![number()], vec![number(), number()])).unwrap_err();
    let expected = "stages: argument: must have the structure that was compiled; got argument.1[0] \
                    instead of argument.0[1]";
    assert_eq!(error.to_string(), expected);
}
