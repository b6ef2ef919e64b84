//! Errors of users: each is reported with its cause.

use std::error::Error as _;
use std::sync::Arc;

use crate::common::{agree, compilers, numbers};
use nxla::{
    CompileRequest, Compiler, CompilerChoice, DType, Device, Error, ErrorClass, Executable, Expr,
    Index, Options, RunContext, Settings, Tensor, TensorType, grad, hook, jit, stream::stream_with,
};

fn matrix() -> Tensor {
    Tensor::from([[1, 2, 3], [4, 5, 6]]).with_names([None, Some("columns")]).unwrap()
}

#[test]
fn failed_lists_keep_the_first_error() {
    let f = jit(|x: Expr| {
        let parts = Expr::meshgrid(&[x.dot(Tensor::from([1, 2, 3])), x.clone()]);
        &parts[0] + &parts[1]
    });
    let error = f.call(matrix().reshape([3, 2]).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("dot: "), "{error}");
    let inside = jit(grad(|x: Expr| {
        let wrong = x.dot(Tensor::from([1.0f32, 2.0]));
        wrong.sum() * wrong.shape()[0]
    }));
    let error = inside.call(Tensor::from([1.0f32, 2.0, 3.0])).unwrap_err().to_string();
    assert!(error.starts_with("dot: "), "{error}");
}

#[test]
fn tensors_beyond_the_address_space_are_memory_errors() {
    for shape in [[1usize << 40, 1 << 40], [1 << 25, 1 << 25]] {
        let error = Tensor::zeros(shape, DType::F32).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Memory, "{error}");
    }
}

#[test]
fn negative_indices_count_from_the_end() {
    let x = matrix();
    agree!((x) => x.at_axis(-1, 0), [3], [4, 5, 6]);
    agree!((x) => x.at_axis(-3, "columns"), [2], [1, 4]);
    agree!((x) => x.take(-1, 1), [2], [3, 6]);
    agree!((x) => x.slice_along_axis(-2, 2, 1), [2, 2], [2, 3, 5, 6]);
    let column = Tensor::from([[7], [8]]);
    agree!((x, column) => x.put_slice_along_axis(-1, column, 1), [2, 3], [1, 2, 7, 4, 5, 8]);
    agree!((x) => x.at((.., 1..3)), [2, 2], [2, 3, 5, 6]);
    agree!((x) => x.at((-1, ..=-2)), [2], [4, 5]);
    agree!((x) => x.at((0usize.., -2..)), [2, 2], [2, 3, 5, 6]);
    let row = Tensor::from(9);
    agree!((x, row) => x.at((row, 0)), [], [4]);
    agree!((x) => x.at((1..1, ..)), [0, 3], [0; 0]);
}

#[test]
fn out_of_range_indices_are_errors() {
    let x = matrix();
    let errors = [
        x.at_axis(99, 0),
        x.at_axis(-3, 0),
        x.take(2, 0),
        x.slice_along_axis(2, 2, 1),
        x.slice_along_axis(i64::MAX, 1, 1),
        x.at((0, 3)),
        x.at((.., 1..4)),
        x.at((.., Index::between(2, 1))),
    ];
    for (at, result) in errors.into_iter().enumerate() {
        let error = result.expect_err(&at.to_string());
        assert_eq!(error.class(), ErrorClass::Argument);
        assert!(error.to_string().contains("must be inside axis"), "{error}");
    }
    let error = x.at((0, 0, 0)).unwrap_err().to_string();
    assert!(
        error.contains("must have at most one entry for each axis of s32[2][columns: 3]; got 3"),
        "{error}"
    );
    let error = jit(|x: Expr| x.at_axis(2, 0)).call(&x).unwrap_err().to_string();
    let expected = "at_axis: index: must be inside axis 0 of size 2; got 2";
    assert!(error.starts_with(expected) && error.contains("user_errors.rs:"), "{error}");
}

#[test]
fn expressions_outside_traces_are_errors() {
    let sum = Expr::of(1.0) + 2.0;
    assert!(sum.has_failed());
    let text = sum.to_string();
    assert!(text.contains("must be created in a traced function; use `Tensor` outside"), "{text}");
    let error = jit(move |x: Expr| x + &sum).call(1.0f32).unwrap_err().to_string();
    assert!(error.contains("must be created in a traced function"), "{error}");
}

#[test]
fn hook_panics_end_streams_with_their_message() {
    let step = |x: Expr, total: Expr| {
        let x = hook(x, |x: Tensor| -> () { panic!("no more of {}", numbers(&x)[0]) });
        (x.clone(), total + x)
    };
    for compiler in compilers() {
        let options = Options::new().compiler(*compiler);
        let scalar = TensorType::scalar(DType::S32);
        let mut stream = stream_with(step, scalar, 0, &options).unwrap();
        stream.send(3).unwrap();
        let error = stream.recv().unwrap_err();
        assert_eq!(error.class(), ErrorClass::Runtime, "{compiler}");
        assert_eq!(error.to_string(), "a step of the stream panicked: no more of 3");
        assert!(stream.done().is_err());
    }
}

#[test]
fn errors_of_hooks_are_user_errors() {
    let f = jit(|x: Expr| hook(x, |_: Tensor| "four".parse::<i32>().map(drop)));
    for compiler in compilers() {
        let error = f.call(1).unwrap_err();
        let user = error.user_error().unwrap();
        assert!(user.is::<std::num::ParseIntError>(), "{compiler}: {user:?}");
        assert!(error.source().is_none(), "{compiler}: the message contains the cause");
    }
}

#[test]
fn boxed_errors_become_user_errors() {
    type Boxed = Box<dyn std::error::Error + Send + Sync>;
    fn parse(text: &str) -> Result<i32, Boxed> {
        Ok(text.parse()?)
    }
    fn call(text: &str) -> Result<Tensor, Boxed> {
        Ok(Tensor::from(1).reshape([parse(text)?.unsigned_abs() as usize])?)
    }
    let f = |text: &'static str| jit(move |x: Expr| -> nxla::Result<Expr> { Ok(x * parse(text)?) });
    assert_eq!(numbers(&f("3").call(2).unwrap()), [6.0]);
    let error = f("three").call(2).unwrap_err();
    assert!(error.user_error().unwrap().is::<std::num::ParseIntError>());
    // An error of nxla in a box keeps its class.
    let error = Error::from(call("7").unwrap_err());
    assert_eq!(
        (error.class(), error.class().to_string()),
        (ErrorClass::Argument, "argument".into())
    );
}

/// An executable that returns fewer results than the program has.
struct TooFew;

struct Nothing;

impl Compiler for TooFew {
    fn name(&self) -> &str {
        "too few"
    }

    fn compile(&self, _: &CompileRequest<'_>) -> nxla::Result<Arc<dyn Executable>> {
        Ok(Arc::new(Nothing))
    }

    fn check_device(&self, _: &Device) -> nxla::Result<()> {
        Ok(())
    }

    fn results_device(&self, _: &Settings) -> nxla::Result<Device> {
        Err(Error::Usage("nowhere".into()))
    }
}

impl Executable for Nothing {
    fn run(
        &self,
        inputs: &[&nxla::runtime::RawTensor],
        _: &RunContext<'_>,
    ) -> nxla::Result<Vec<nxla::runtime::RawTensor>> {
        Ok(inputs.iter().take(1).map(|&input| input.clone()).collect())
    }

    fn byte_size(&self) -> usize {
        0
    }
}

#[test]
fn missing_results_of_executables_are_compiler_errors() {
    let compiler = CompilerChoice::from(Arc::new(TooFew) as Arc<dyn Compiler>);
    let both = jit(|x: Expr| (&x + 1, x * 2)).compiler(compiler.clone());
    let expected = "the executable of a compiler must return 2 results; got 1";
    assert_eq!(both.call(1).unwrap_err().to_string(), expected);
    let compiled = both.compile(&Tensor::from(1)).unwrap();
    assert_eq!(compiled.call(1).unwrap_err().to_string(), expected);
    assert_eq!(numbers(&jit(|x: Expr| x + 0).compiler(compiler).call(4).unwrap()), [4.0]);
}

#[test]
fn ranks_beyond_the_limit_are_errors() {
    for rank in [65, 256, 70_000] {
        let ty = || TensorType::new(DType::F32, vec![1; rank]);
        let limit = format!("a tensor must have at most 64 axes; got {rank}");
        let flat = jit(|x: Expr| x.reshape([1]));
        let mut errors = vec![
            flat.trace(ty()).map(drop).unwrap_err(),
            flat.compile(ty()).map(drop).unwrap_err(),
            jit(|x: Expr| x).trace(ty()).map(drop).unwrap_err(),
            Tensor::new(vec![1.0f32], vec![1; rank]).map(drop).unwrap_err(),
        ];
        let unused = jit(|_: Expr, y: Expr| y);
        errors.push(unused.trace((ty(), TensorType::scalar(DType::F32))).map(drop).unwrap_err());
        for error in errors {
            assert!(error.to_string().contains(&limit), "{error}");
        }
    }
    let most = jit(|x: Expr| x + 1).call(Tensor::new(vec![1.0f32], vec![1; 64]).unwrap()).unwrap();
    assert_eq!(most.shape().len(), 64);
}
