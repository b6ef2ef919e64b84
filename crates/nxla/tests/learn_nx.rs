//! Tests of the page for users of Nx: this file compiles and runs every line of Rust in its tables.
#![allow(clippy::cloned_ref_to_slice_refs, reason = "calls are written as in the guide")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(clippy::print_stdout, reason = "a page for readers prints")]
#![allow(clippy::let_unit_value, reason = "some lines return `()`")]
#![allow(clippy::cast_possible_wrap, reason = "a page for readers has no checked conversions")]

use std::collections::BTreeSet;
use std::sync::Arc;

use nxla::graph::{Graph, Note};
use nxla::prelude::*;
use nxla::split::Decision;
use nxla::{
    CompileRequest, Compiler, Conflict, DType, Device, Evaluator, Executable, Leftover, Options,
    Result, Scalar, TensorType, backend_copy, backend_deallocate, backend_transfer, block,
    current_compiler, default_options, devices, global_default_options, grad, hook, is_tracing,
    metadata, named_hook, print_value, register_compiler, set_default_options,
    set_global_default_options, stream, value_and_grad, while_loop, with_default_options,
};

fn fun(x: Expr) -> Expr {
    x.sin().sum()
}

fn pair(x: Expr) -> (Expr, Expr) {
    (fun(x.clone()), x)
}

fn step(x: Expr, state: Expr) -> (Expr, Expr) {
    (x.clone(), state + x)
}

fn f32s<const N: usize>(shape: [usize; N]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

#[derive(Container)]
struct Line<T> {
    slope: T,
}

/// The evaluator under another name.
struct Renamed;

impl Compiler for Renamed {
    fn name(&self) -> &str {
        "of the page"
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
        Evaluator.compile(request)
    }
}

/// Returns code without spaces.
fn without_spaces(code: &str) -> String {
    code.chars().filter(|character| !character.is_whitespace()).collect()
}

/// Returns the lines of the column for Rust.
fn lines_of_the_page() -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/learn/nx.md");
    let page = std::fs::read_to_string(path).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Nx |"));
    let lines = rows.filter_map(|row| {
        let row = row.replace("\\|", "\u{1}");
        let cell = row.split('|').nth(3)?.trim().replace('\u{1}', "|");
        Some(without_spaces(cell.strip_prefix('`')?.strip_suffix('`')?))
    });
    lines.collect()
}

macro_rules! run {
    ($found:ident: $($line:expr;)*) => {$(
        $found.insert(without_spaces(stringify!($line)));
        {
            let _value = $line;
        }
        set_default_options(None);
    )*};
}

/// Runs the lines of Nx.Defn.
fn run_functions(found: &mut BTreeSet<String>, x: &Tensor, y: &Tensor) -> Result<()> {
    let (x, y) = (x.clone(), y.clone());
    run! { found:
        jit(fun);
        jit(fun).call(&x)?;
        jit(fun).compiler("xla");
        jit(fun).compiler("evaluator");
        jit(fun).hook("seen", |x: Tensor| println!("{x}"));
        jit(fun).on_conflict(Conflict::Raise);
        jit(fun).on_conflict(Conflict::Force);
        jit(fun).on_conflict(Conflict::Reuse);
        jit(fun).compile(f32s([3]))?;
        jit(fun).trace(f32s([3]))?;
        jit(grad(fun)).call(&x)?;
        jit(grad(|[w, b]: [Expr; 2]| (w * b).sum())).call([&x, &x])?;
        jit(value_and_grad(fun)).call(&x)?;
        jit(value_and_grad(pair)).call(&x)?;
        set_default_options(Some(Options::new().compiler("xla")));
        default_options();
        Options::new().compiler("evaluator").results_device()?;
        stream(step, f32s([3]), &x)?;
        jit(|x: Expr| fun(x.clone()) * x.shape()[0] as i64).call(&x)?;
        f32s([2, 3]);
        jit(fun).donate([0]);
        Line { slope: x.clone() };
        jit(|[a, b]: [Expr; 2]| a + b).call([&x, &y])?;
        x.vectorize(["batch"])?;
        jit(fun).call_each([&x, &x])?;
        Options::new().partitions()?;
        Options::new().results_device()?;
        current_compiler();
        is_tracing();
    }
    let before = global_default_options();
    run! { found: set_global_default_options(Options::new().compiler("xla")); }
    set_global_default_options(before);
    let compiler: Arc<dyn Compiler> = Arc::new(Renamed);
    run! { found: register_compiler(compiler)?; }
    let mut running = stream(step, f32s([3]), &x)?;
    run! { found:
        running.send(&x)?;
        running.recv()?;
        running.done()?;
    }
    Ok(())
}

/// Runs the lines of expressions, stages and devices.
fn run_expressions(found: &mut BTreeSet<String>, x: &Tensor, y: &Tensor) -> Result<()> {
    let (x, y) = (x.clone(), y.clone());
    run! { found:
        jit(|x: Expr| while_loop(x, |x| x.sum().less(50), |x| x * 2)).call(&x)?;
        jit(|x: Expr| hook(x, |x: Tensor| println!("{x}"))).call(&x)?;
        jit(|x: Expr| hook(x, |x: Tensor| println!("{:?}", x.shape()))).call(&x)?;
        jit(|x: Expr| named_hook(x, "name")).call(&x)?;
        jit(|x: Expr| print_value(x, "x")).call(&x)?;
        jit(|x: Expr| x.stop_grad()).call(&x)?;
        jit(|x: Expr| metadata(x, [("layer", Note::from(3))])).call(&x)?;
        (&x, &y).0;
        jit(fun).trace(f32s([3]))?.0.to_string();
        jit(fun).split(f32s([3]), |_| Decision::None)?;
        [Decision::Before, Decision::After, Decision::Both, Decision::None];
        x.on(&Device::HOST)?;
        jit(fun).device(Device::HOST);
        with_default_options(&Options::new().device(Device::HOST));
        backend_copy(&(x.clone(), y.clone()), &Device::HOST)?;
        backend_copy(&[x.clone()], &Device::HOST)?;
        backend_transfer([x.clone()], &Device::HOST)?;
        backend_deallocate(&[x.clone()])?;
        x.to_batched(2, Leftover::Repeat)?;
        x.to_batched(2, Leftover::Discard)?;
        x.first(2)?;
        devices()?;
        jit(|x: Expr| block("twice", x, |x| x * 2)).call(&x)?;
    }
    let mut graph = Graph::new();
    run! { found:
        graph.parameter(0, f32s([3]));
        graph.constant(Scalar::Float(1.0), f32s([3]))?;
        graph.tensor(x.to_host()?)?;
    }
    let cut = jit(fun).split(f32s([3]), |_| Decision::None)?;
    run! { found: cut.run(&x)?; }
    Ok(())
}

#[test]
fn every_line_of_rust_runs() -> Result<()> {
    let (x, y) = (Tensor::from([1.0f32, 2.0, 3.0]), Tensor::from([0.5f32, 0.25, 0.125]));
    let mut found = BTreeSet::new();
    run_functions(&mut found, &x, &y)?;
    run_expressions(&mut found, &x, &y)?;
    assert_eq!(lines_of_the_page(), found);
    Ok(())
}
