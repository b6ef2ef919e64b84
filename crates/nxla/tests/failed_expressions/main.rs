//! Failed expressions: every function accepts them without a panic, in every transformation, and
//! the call returns the first error.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cases;

use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;

use cases::{Case, all};
use nxla::prelude::*;
use nxla::{cond, scan, vmap};

/// The messages of all panics in this process, including caught panics.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Returns the results of a call on `x` and on a failed expression, as one scalar.
fn run_case((_, call): &Case, x: &Expr) -> Expr {
    let wrong = x.dot(Tensor::from([1.0f32; 5]));
    let results = call(&wrong, x);
    results.iter().fold(wrong, |total, result| total + result).sum()
}

type Transformation = (&'static str, fn(&Case, Tensor) -> nxla::Result<Tensor>);

fn transformations() -> [Transformation; 7] {
    [
        ("jit", |case, x| jit(|x: Expr| run_case(case, &x)).call(x)),
        ("vmap", |case, x| jit(vmap(|x: Expr| run_case(case, &x), 0, 0)).call(x)),
        ("grad", |case, x| jit(grad(|x: Expr| run_case(case, &x))).call(x)),
        ("scan", |case, x| jit(|x: Expr| scan((), x, |(), x| ((), run_case(case, &x))).1).call(x)),
        ("cond", |case, x| {
            jit(|x: Expr| cond(x.sum(), || run_case(case, &x), || Expr::of(0.0f32))).call(x)
        }),
        ("grad of vmap", |case, x| {
            jit(grad(|x: Expr| vmap(|x: Expr| run_case(case, &x), 0, 0)(x).sum())).call(x)
        }),
        ("vmap of grad", |case, x| jit(vmap(grad(|x: Expr| run_case(case, &x)), 0, 0)).call(x)),
    ]
}

#[test]
fn no_function_panics_on_failed_expressions() {
    panic::set_hook(Box::new(|panic| PANICS.lock().unwrap().push(panic.to_string())));
    let x = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let mut faults = Vec::new();
    for case in all() {
        for (name, call) in transformations() {
            let result = panic::catch_unwind(AssertUnwindSafe(|| call(&case, x.clone())));
            let panics = std::mem::take(&mut *PANICS.lock().unwrap());
            let what = format!("{} under {name}", case.0);
            match result {
                Ok(Err(error)) if panics.is_empty() && error.to_string().starts_with("dot: ") => {}
                Ok(Err(error)) if panics.is_empty() => faults.push(format!("{what}: {error}")),
                Ok(Ok(_)) => faults.push(format!("{what}: no error")),
                Ok(Err(_)) | Err(_) => faults.push(format!("{what}: {panics:?}")),
            }
        }
    }
    drop(panic::take_hook());
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Returns the names of methods and functions of expressions in a source file: rows of macros and
/// public functions.
fn declared_functions(source: &str) -> BTreeSet<&str> {
    let rows = source.match_indices("\n    fn ").filter_map(|(at, start)| {
        let row = &source[at + start.len()..];
        let (signature, _) = row.split_once(" |graph|")?;
        let has_arity =
            [" one", " two", " three", " many"].iter().any(|end| signature.ends_with(end));
        let name = row.split_once('(')?.0;
        (has_arity && !signature.contains('{') && !name.starts_with('$')).then_some(name)
    });
    let functions = source.match_indices("\npub fn ").filter_map(|(at, start)| {
        let name = source[at + start.len()..].split(['(', '<']).next()?;
        Some(name)
    });
    rows.chain(functions).collect()
}

#[test]
fn cases_cover_every_function() {
    let called: BTreeSet<&str> = all().iter().map(|(name, _)| *name).collect();
    let sources = [
        include_str!("../../src/ops/contract.rs"),
        include_str!("../../src/ops/control.rs"),
        include_str!("../../src/ops/create.rs"),
        include_str!("../../src/ops/elementwise.rs"),
        include_str!("../../src/ops/hooks.rs"),
        include_str!("../../src/ops/index.rs"),
        include_str!("../../src/ops/linalg.rs"),
        include_str!("../../src/ops/loops.rs"),
        include_str!("../../src/ops/movement.rs"),
        include_str!("../../src/ops/nn.rs"),
        include_str!("../../src/ops/position.rs"),
        include_str!("../../src/ops/random.rs"),
        include_str!("../../src/ops/reduce.rs"),
        include_str!("../../src/ops/statistics.rs"),
        include_str!("../../src/ops/window.rs"),
        include_str!("../../src/transform.rs"),
        include_str!("../../src/transform/derivatives.rs"),
        include_str!("../../src/vectors.rs"),
    ];
    let declared: BTreeSet<&str> =
        sources.iter().flat_map(|source| declared_functions(source)).collect();
    assert!(declared.len() > 150, "the sources are read: {declared:?}");
    let missing: Vec<_> = declared.difference(&called).collect();
    assert!(missing.is_empty(), "no call of {missing:?}");
}

#[test]
fn errors_of_types_have_the_line_of_the_call() {
    let x = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let unfit: [fn() -> Expr; 5] = [
        || Expr::zeros([5], DType::C64),
        || Expr::zeros([7, 2, 2], DType::S32),
        || Expr::zeros([3], DType::U32),
        || Expr::zeros([4, 4], DType::Pred),
        || Expr::zeros([5, 3], DType::F32).vectorize(["x"]),
    ];
    let (mut failed, mut faults) = (BTreeSet::new(), Vec::new());
    for (name, call) in all() {
        for unfit in unfit {
            let traced = jit(|x: Expr| {
                let _ = call(&unfit(), &x);
                x
            });
            if let Err(error) = traced.trace(&x) {
                failed.insert(name);
                if !error.to_string().contains(" (cases.rs:") {
                    faults.push(format!("{name}: {error}"));
                }
            }
        }
    }
    assert!(failed.len() > 100, "{failed:?}");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
