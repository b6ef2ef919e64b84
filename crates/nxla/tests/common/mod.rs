//! The compilers of the tests, and comparisons of results.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test binary uses some of these")]

use std::io::Write;
use std::sync::OnceLock;

use nxla::runtime::RawTensor;

/// Returns whether a plugin is installed and the feature `xla` is enabled; if not, prints a notice that
/// libtest does not capture.
pub(crate) fn has_plugin() -> bool {
    static HAS_PLUGIN: OnceLock<bool> = OnceLock::new();
    *HAS_PLUGIN.get_or_init(|| {
        let found = nxla::devices().unwrap().len() > 1;
        if !found {
            let notice = b"skipped: XLA, because no plugin is found\n";
            std::io::stderr().write_all(notice).unwrap();
        }
        found
    })
}

/// Returns from the test without a plugin.
macro_rules! require_plugin {
    () => {
        if !crate::common::has_plugin() {
            return;
        }
    };
}
pub(crate) use require_plugin;

/// Returns the evaluator, and XLA if there is a plugin.
pub(crate) fn compilers() -> &'static [&'static str] {
    if has_plugin() { &["evaluator", "xla"] } else { &["evaluator"] }
}

/// Returns the elements of a real tensor of any dtype.
pub(crate) fn numbers(tensor: &RawTensor) -> Vec<f64> {
    let tensor = tensor.to_host().unwrap();
    (0..tensor.size()).map(|at| tensor.get(at).as_f64()).collect()
}

/// Checks that numbers are equal up to rounding; NaN equals NaN.
#[track_caller]
pub(crate) fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    let close = |(x, y): (&f64, &f64)| {
        x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-5 * y.abs().max(1.0)
    };
    let same = found.len() == expected.len() && found.iter().zip(expected).all(close);
    assert!(same, "{what}: {found:?}, not {expected:?}");
}

/// Checks a function eagerly on tensors, and traced on every compiler: `agree!((x, y) => x.dot(y),
/// [2], [21, 43])`, where `x` and `y` are variables with tensors, followed by the shape and the
/// elements of the result.
macro_rules! agree {
    // Without operands, where `Maker` is `Tensor` or `Expr`.
    (() => Maker::$make:ident($($arg:expr),*), $shape:expr, $expected:expr) => {{
        let shape: &[usize] = &$shape;
        let expected: Vec<f64> = $expected.iter().map(|&number| f64::from(number)).collect();
        let eager = nxla::Tensor::$make($($arg),*).unwrap();
        assert_eq!(eager.shape()[..], *shape, "{} at once", stringify!($make));
        crate::common::assert_close(&crate::common::numbers(&eager), &expected, stringify!($make));
        for compiler in crate::common::compilers() {
            let function = nxla::jit(|(): ()| nxla::Expr::$make($($arg),*)).compiler(compiler);
            let traced = function.call(()).unwrap();
            assert_eq!((traced.dtype(), &traced.shape()[..]), (eager.dtype(), shape));
            crate::common::assert_close(&crate::common::numbers(&traced), &expected, stringify!($make));
        }
    }};
    (($($x:ident),*) => $body:expr, $shape:expr, $expected:expr) => {{
        let shape: &[usize] = &$shape;
        let expected: Vec<f64> = $expected.iter().map(|&number| f64::from(number)).collect();
        let eager: nxla::Result<nxla::Tensor> = {
            $(let $x: &nxla::Tensor = &$x;)*
            $body
        };
        let eager = eager.unwrap();
        assert_eq!(eager.shape()[..], *shape, "{} at once", stringify!($body));
        crate::common::assert_close(&crate::common::numbers(&eager), &expected, stringify!($body));
        for compiler in crate::common::compilers() {
            let function = nxla::jit(|[$($x),*]: [nxla::Expr; agree!(@count $($x)*)]| {
                $(let $x: &nxla::Expr = &$x;)*
                $body
            });
            let function = function.compiler(compiler);
            let traced = function.call([$(&$x),*]).unwrap();
            let what = format!("{} on {compiler}", stringify!($body));
            assert_eq!((traced.dtype(), &traced.shape()[..]), (eager.dtype(), shape), "{what}");
            crate::common::assert_close(&crate::common::numbers(&traced), &expected, &what);
        }
    }};
    (@count) => { 0 };
    (@count $x:ident $($rest:ident)*) => { 1 + agree!(@count $($rest)*) };
}

pub(crate) use agree;
