//! Arguments of methods: conversions by the caller's code, options without effect, and sizes that
//! do not fit.

use std::sync::mpsc;
use std::time::Duration;

use nxla::graph::ExprId;
use nxla::prelude::*;
use nxla::split::Policy;
use nxla::{Arg, Axis, Names, Number, Over, Shape, Sort, VectorAxis, Vectors};

/// Returns the result of `run`, which must end within a minute.
fn ends<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(run()));
    receiver.recv_timeout(Duration::from_mins(1)).unwrap_or_else(|_| panic!("{what} hangs"))
}

/// An argument whose conversion reads an expression.
#[derive(Clone)]
struct Reads(Expr);

macro_rules! conversions {
    ($($to:ty => |$x:ident| $value:expr;)*) => {
        $(
            impl From<Reads> for $to {
                fn from(Reads($x): Reads) -> Self {
                    $value
                }
            }
        )*
    };
}

conversions! {
    Axis => |x| Axis::Number(x.shape().rank() as i64 - 1);
    Over => |x| Over::axis(x.shape().rank() as i64 - 1);
    Arg => |x| Arg::axis(x.shape().rank() as i64 - 1);
    Sort => |x| Sort::axis(x.shape().rank() as i64 - 1);
    Shape => |x| x.shape();
    Number => |x| Number::Int(x.shape().size() as i128);
}

#[test]
fn arguments_may_read_expressions_of_the_trace() {
    type Case = (&'static str, fn(Expr) -> Expr);
    let cases: &[Case] = &[
        ("pad", |x| {
            let y = x.clone();
            x.pad(0, (0..2).map(move |axis| (0, y.shape()[axis] as i64))).sum()
        }),
        ("cumulative_sum", |x| x.cumulative_sum(Reads(x.clone())).sum()),
        ("sum_over", |x| x.sum_over(Reads(x.clone())).sum()),
        ("argmax", |x| x.argmax(Reads(x.clone())).sum()),
        ("sort", |x| x.sort(Reads(x.clone())).sum()),
        ("reshape", |x| x.reshape(Reads(x.clone())).sum()),
        ("full_like", |x| x.full_like(Reads(x.clone())).sum()),
        ("zeros", |x| Expr::zeros(Reads(x.clone()), DType::S32).sum()),
        ("concatenate", |x| Expr::concatenate(&[&x, &x], Reads(x.clone())).sum()),
        ("at_axis", |x| x.at_axis(0, Reads(x.clone())).sum()),
        ("reduce", |x| x.reduce(0, Reads(x.clone()), |x, sum| x + sum).sum()),
    ];
    for &(what, function) in cases {
        ends(what, move || jit(function).call(Tensor::from([[1, 2], [3, 4]])).unwrap());
    }
}

/// The macros of `src/ops` convert the options that they know; any other conversion in a row would
/// run under the lock of the trace.
#[test]
fn no_method_converts_an_argument_under_the_lock_of_the_trace() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ops");
    let mut rows = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            // Functions with `self` and free functions are not rows of `methods!`.
            let Some(row) = line.trim_start().strip_prefix("fn ") else { continue };
            let is_row = [" one ", " two ", " three ", " many "].iter().any(|at| row.contains(at));
            if is_row || lines.peek().is_some_and(|next| next.trim_start().starts_with("|graph|")) {
                rows += 1;
                let is_open = row.contains("impl Into<") || row.contains("impl IntoIterator");
                assert!(!is_open, "{}: {row}", path.display());
            }
        }
    }
    assert!(rows > 150, "{rows} rows");
}

/// Asserts that the result is an error with this start.
#[track_caller]
fn refused<T>(result: nxla::Result<T>, start: &str) {
    let error = result.err().expect(start).to_string();
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn sizes_beyond_memory_are_errors() {
    let x = &Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    let most = usize::MAX;
    refused(x.repeat(&[most, most], 0), "repeat: counts: must have a sum that fits into memory");
    refused(x.repeat(&[1 << 60, 0], 0), "repeat: counts: must have a sum that fits into memory");
    refused(x.bin_edges(most, None), "histogram: bins: must be at least 1 and less than");
    let key = Tensor::random_key(0).unwrap();
    refused(key.random_split(most), "random_split: parts: must be at least 1 and at most");
    assert_eq!(x.repeat(&[2, 0], 0).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0, 1.0, 2.0]);
}

#[test]
fn names_are_distinct_and_one_for_each_axis() {
    let x = &Tensor::from([[1, 2]]);
    assert!(x.clone().with_names(["a", "a"]).is_err());
    refused(x.rename(["a", "a"]), "rename: names: must be distinct; got [a, a]");
    assert!(x.rename([None, None]).is_ok());
    let ty =
        TensorType { names: Some(Names::from(["a", "b"])), ..TensorType::new(DType::F32, [2]) };
    let f = jit(|x: Expr| x.sin());
    let expected = "names [a, b] do not fit a tensor of rank 1";
    refused(f.compile(&ty), expected);
    refused(f.stages(&ty, &Policy::EveryOps(1)), expected);
    refused(f.trace(&ty), expected);
}

#[test]
fn expressions_have_nodes_of_their_trace() {
    let rows = |size| Vectors::new([VectorAxis { name: "row".into(), size }]);
    type Case = (&'static str, fn(&Expr, Vectors) -> Expr);
    let cases: &[Case] = &[
        ("Expr::new: id: must be one of the 1 nodes of the trace; got %7", |x, _| {
            Expr::new(x.trace().clone(), ExprId::from_index(7)) + 1
        }),
        (
            "Expr::new: vectors: must be the leading axes of s32[2]; got vectorized[row: 3]",
            |x, rows| Expr::with_vectors(x.trace().clone(), x.id().unwrap(), rows).sum(),
        ),
    ];
    for &(expected, function) in cases {
        let f = jit(move |x: Expr| function(&x, rows(3)));
        refused(f.call(Tensor::from([1, 2])), expected);
    }
    let x = Tensor::from([1, 2]);
    let expected =
        "with_vectors: vectors: must be the leading axes of s32[2]; got vectorized[row: 3]";
    refused(x.clone().with_vectors(rows(3)), expected);
    let entries = x.with_vectors(rows(2)).unwrap();
    assert!(entries.with_vectors(rows(2)).is_err());
}
