//! Arguments of methods: conversions by the caller's code, options without effect, and sizes that
//! do not fit.

use std::sync::mpsc;
use std::time::Duration;

use nxla::graph::ExprId;
use nxla::initializers::{glorot_uniform, orthogonal};
use nxla::optim;
use nxla::prelude::*;
use nxla::split::{Cluster, Policy, Speed};
use nxla::{
    Arg, Axis, Compiler, Complex, Draw, Evaluator, FftNorm, Index, Names, NewAxis, Number, Over,
    Setting, Shape, Sort, VectorAxes, VectorAxis, custom_grad, custom_jvp, f16,
};

/// Returns the result of `run`, which must end within a minute.
fn run_within_a_minute<T: Send + 'static>(
    what: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(run()));
    receiver.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{what} hangs"))
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
fn arguments_may_read_traced_expressions() {
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
        run_within_a_minute(what, move || {
            jit(function).call(Tensor::from([[1, 2], [3, 4]])).unwrap()
        });
    }
}

/// The macros of `src/ops` convert the options that they know; any other conversion in a row would
/// run under the lock of the trace.
#[test]
fn arguments_are_converted_outside_the_trace_lock() {
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
fn assert_error<T>(result: nxla::Result<T>, start: &str) {
    let error = result.err().expect(start).to_string();
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn only_reductions_keep_axes() {
    let x = &Tensor::from([[1.0f32, 2.0]]);
    let (rows, all) = (|| Over::axis(0).keep(), || Over::all().keep());
    let (at, update) = (Tensor::from([[0]]), Tensor::from([[1.0f32, 1.0]]));
    let results = [
        ("flatten", x.flatten(all())),
        ("squeeze", x.squeeze(rows())),
        ("transpose", x.transpose(all())),
        ("reverse", x.reverse(rows())),
        ("gather", x.gather(&at, rows())),
        ("indexed_add", x.indexed_add(&at, &update, rows())),
        ("indexed_put", x.indexed_put(&at, &update, rows())),
        ("fftn", x.fftn(None, all(), FftNorm::Backward)),
        ("ifftn", x.ifftn(None, all(), FftNorm::Backward)),
        ("rfftn", x.rfftn(None, all(), FftNorm::Backward)),
        ("irfftn", x.irfftn(None, all(), FftNorm::Backward)),
        ("layer_norm", x.layer_norm(rows(), 0.0)),
        ("rms_norm", x.rms_norm(1.0, rows(), 0.0)),
    ];
    for (name, result) in results {
        assert_error(result, &format!("{name}: axes: must not keep axes"));
    }
    assert_eq!(x.median(rows()).unwrap().shape()[..], [1, 2]);
}

#[test]
fn search_options_are_used_or_rejected() {
    let x = &Tensor::from([[9, 1], [9, 2]]);
    assert_error(x.nan_argmax(Arg::all().last()), "nan_argmax: over: must be an axis");
    assert_error(x.nan_argmin(Arg::axis(0).dtype(DType::U8)), "nan_argmin: over: must be an axis");
    assert_error(x.mode(Arg::all().last()), "mode: over: must be an axis");
    assert_error(x.mode(Arg::all().dtype(DType::S32)), "mode: over: must be an axis");
    assert_error(x.sort(Sort::axis(0).dtype(DType::U8)), "sort: sort: must have no dtype");
    assert_eq!(x.mode(Arg::axis(0).keep()).unwrap().shape()[..], [1, 2]);
    assert_eq!(x.nan_argmax(Arg::axis(0).keep()).unwrap().shape()[..], [1, 2]);
    assert_eq!(x.argmax(Arg::all().last().dtype(DType::U8)).unwrap().to_vec::<u8>().unwrap(), [2]);
}

#[test]
fn only_ranges_have_steps() {
    let x = &Tensor::from([1, 2, 3]);
    assert_error(x.at(Index::from(1).step(2)), "at: index: must be a range to have a step");
    assert_error(x.at(Index::from(NewAxis).step(2)), "at: index: must be a range to have a step");
    assert_eq!(x.at(Index::from(..).step(2)).unwrap().to_vec::<i32>().unwrap(), [1, 3]);
}

#[test]
fn optimizers_reject_options_of_other_optimizers() {
    let x = Tensor::from(1.0f32);
    assert_error(optim::adam(0.1).momentum(0.9).init(&x), "momentum: optimizer: must be an `sgd`");
    assert_error(optim::lion(0.1).nesterov(0.9).init(&x), "nesterov: optimizer: must be an `sgd`");
    let wrong = optim::sgd(0.1).betas(0.9, 0.99).weight_decay(0.1);
    assert_error(wrong.init(&x), "betas: optimizer: must be an `adam`");
    let state = optim::sgd(0.1).init(&x).unwrap();
    let step = jit(move |x: Expr, state: optim::State<Expr, Expr>| wrong.step(&x, &x, &state));
    assert_error(step.call((&x, &state)), "betas: optimizer: must be an `adam`");
    assert!(optim::sgd(0.1).momentum(0.9).nesterov(0.8).init(&x).is_ok());
    let expected = "betas: b1: must be at least 0 and less than 1; got 1.5";
    assert_error(optim::adam(0.1).betas(1.5, 0.9).init(&x), expected);
    assert_error(optim::lion(0.1).betas(0.9, f64::NAN).init(&x), "betas: b2: must be at least 0");
    assert_error(optim::sgd(0.1).epsilon(1e-6).init(&x), "epsilon: optimizer: must be an `adam`");
    let expected = "clip_by_global_norm: max_norm: must not be negative; got -1";
    assert_error(optim::sgd(0.1).clip_by_global_norm(-1.0).init(&x), expected);
    let rate = jit(|step: Expr| optim::Schedule::exponential(0.1, -0.5, 10).at(&step));
    assert_error(rate.call(1), "exponential: factor: must be positive; got -0.5");
}

#[test]
fn rules_must_return_one_value_for_each_input() {
    let gradient = |x: Expr| {
        let rule = |change: Expr| vec![change.clone(), change];
        custom_grad(x.clone(), &vec![x], rule)
    };
    assert_error(
        jit(gradient).call(1.0f32),
        "custom_grad: rule: must have the structure of the inputs; got result[1] instead of nothing (",
    );
    let tangent = |x: Expr| {
        let rule = |change: Expr| vec![change.clone(), change];
        custom_jvp(vec![x.clone()], &x, rule)
    };
    assert_error(
        jit(tangent).call(1.0f32),
        "custom_jvp: rule: must have the structure of the value; got result[1] instead of nothing (",
    );
}

#[test]
fn initializers_have_two_axes() {
    let key = Tensor::random_key(0).unwrap();
    let expected = "initialize: axes: must be two distinct axes of [3, 4]; got ";
    assert_error(key.initialize(glorot_uniform().axes(0, 0), Draw::new([3, 4])), expected);
    assert_error(key.initialize(orthogonal(1.0).axes(1, -1), Draw::new([3, 4])), expected);
}

#[test]
fn simulated_clusters_have_positive_speeds() {
    let f = jit(|x: Expr| x.sin().cos());
    let stages = f.stages(TensorType::scalar(DType::F32), &Policy::EveryOps(1)).unwrap();
    let expected = "simulate: cluster: bandwidth must be positive and latency must not be negative";
    for (bandwidth, latency) in [(0.0, 0.0), (f64::NAN, 0.0), (1.0, f64::NAN), (1.0, -1.0)] {
        let cluster = Cluster { workers: 2, bandwidth, latency };
        let error = stages.simulate(&cluster, &Speed::default());
        assert_error(error, &format!("{expected}; got {bandwidth} and {latency}"));
    }
    let cluster = Cluster { workers: usize::MAX, bandwidth: 1e9, latency: 1e-6 };
    let expected = "simulate: speed: flops and bytes must be positive and overhead must not be";
    for (flops, bytes, overhead) in
        [(-1.0, 1.0, 0.0), (1.0, 0.0, 0.0), (f64::NAN, 1.0, 0.0), (1.0, 1.0, f64::NAN)]
    {
        assert_error(stages.simulate(&cluster, &Speed { flops, bytes, overhead }), expected);
    }
    assert_eq!(stages.simulate(&cluster, &Speed::default()).unwrap().runs.len(), 2);
}

#[test]
fn sizes_beyond_memory_are_errors() {
    let x = &Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    let most = usize::MAX;
    assert_error(x.repeat(&[most, most], 0), "repeat: counts: must have a sum that fits in memory");
    assert_error(x.repeat(&[1 << 60, 0], 0), "repeat: counts: must have a sum that fits in memory");
    assert_error(x.bin_edges(most, None), "bin_edges: bins: must be at least 1 and less than");
    let key = Tensor::random_key(0).unwrap();
    assert_error(key.random_split(most), "random_split: parts: must be at least 1 and at most");
    assert_eq!(x.repeat(&[2, 0], 0).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0, 1.0, 2.0]);
}

#[test]
fn axis_names_must_be_distinct_and_complete() {
    let x = &Tensor::from([[1, 2]]);
    assert!(x.clone().with_names(["a", "a"]).is_err());
    assert_error(x.rename(["a", "a"]), "rename: names: must be distinct; got [a, a]");
    assert!(x.rename([None, None]).is_ok());
    let ty =
        TensorType { names: Some(Names::from(["a", "b"])), ..TensorType::new(DType::F32, [2]) };
    let f = jit(|x: Expr| x.sin());
    let expected = "names [a, b] do not fit a tensor of rank 1";
    assert_error(f.compile(&ty), expected);
    assert_error(f.stages(&ty, &Policy::EveryOps(1)), expected);
    assert_error(f.trace(&ty), expected);
}

#[test]
fn expressions_have_nodes_of_their_trace() {
    let rows = |size| VectorAxes::new([VectorAxis { name: "row".into(), size }]);
    type Case = (&'static str, fn(&Expr, VectorAxes) -> Expr);
    let cases: &[Case] = &[
        ("Expr::new: id: must be one of the 1 nodes of the trace; got %7", |x, _| {
            Expr::new(x.trace().clone(), ExprId::from_index(7)) + 1
        }),
        (
            "Expr::with_vectors: vectors: must be the leading axes of s32[2]; got vectorized[row: 3]",
            |x, rows| Expr::with_vectors(x.trace().clone(), x.id().unwrap(), rows).sum(),
        ),
    ];
    for &(expected, function) in cases {
        let f = jit(move |x: Expr| function(&x, rows(3)));
        assert_error(f.call(Tensor::from([1, 2])), expected);
    }
    let x = Tensor::from([1, 2]);
    let expected =
        "with_vectors: vectors: must be the leading axes of s32[2]; got vectorized[row: 3]";
    assert_error(x.clone().with_vectors(rows(3)), expected);
    let entries = x.with_vectors(rows(2)).unwrap();
    assert!(entries.with_vectors(rows(2)).is_err());
}

#[test]
fn axes_can_be_usize() {
    let x = &Tensor::from([[1, 9], [3, 2]]);
    let last = x.shape().rank() - 1;
    assert_eq!(x.sum_over(last).unwrap().to_vec::<i32>().unwrap(), [10, 5]);
    assert_eq!(x.sum_over([0usize, last]).unwrap().item::<i32>().unwrap(), 15);
    assert_eq!(x.argmax(last).unwrap().to_vec::<i32>().unwrap(), [1, 0]);
    assert_eq!(x.argmax(Axis::from(last)).unwrap().to_vec::<i32>().unwrap(), [1, 0]);
    assert_eq!(x.sort(last).unwrap().to_vec::<i32>().unwrap(), [1, 9, 2, 3]);
    assert!(x.sum_over(usize::MAX).is_err());
    assert_error(
        x.cumulative_sum_reverse("zz"),
        "cumulative_sum_reverse: axis: must be an axis of",
    );
}

#[test]
fn settings_and_compilers_convert_from_values() {
    let path = String::from("cuda");
    assert_eq!(Setting::from(path), Setting::from("cuda"));
    assert_eq!(Setting::from(4usize), Setting::Int(4));
    let double = |x: Expr| x * 2;
    let shared: std::sync::Arc<dyn Compiler> = std::sync::Arc::new(Evaluator);
    for f in [
        jit(double).compiler(Evaluator),
        jit(double).compiler(std::sync::Arc::new(Evaluator)),
        jit(double).compiler(shared),
    ] {
        assert_eq!(f.call(4usize).unwrap().item::<i32>().unwrap(), 8);
    }
    let number = &1.5f32;
    assert_eq!(jit(double).call(number).unwrap().item::<f32>().unwrap(), 3.0);
    assert_eq!(jit(double).call(-2isize).unwrap().dtype(), DType::S64);
    let (byte, count) = (&4u8, &4usize);
    assert_eq!(jit(double).call(byte).unwrap().dtype(), DType::U8);
    assert_eq!(jit(double).call(count).unwrap().dtype(), DType::U64);
    assert_eq!(jit(double).call(f16::from_f32(0.5)).unwrap().item::<f32>().unwrap(), 1.0);
    let complex = jit(double).call(Complex::new(1.0f32, 2.0)).unwrap();
    assert_eq!(complex.item::<Complex<f32>>().unwrap(), Complex::new(2.0, 4.0));
}
