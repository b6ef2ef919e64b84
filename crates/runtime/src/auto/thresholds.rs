//! Every size, count and duration above which `runtime`, `stablehlo` and `pjrt` do something differently,
//! with the benchmark that produced it.
//!
//! One limit stands where it is used, since `pjrt` cannot know this crate: host memory of 16 KiB and more
//! is shared with a device instead of copied (`SHARED_FROM` in `crates/pjrt/src/mapped.rs`;
//! `benches/python/worker.py`, transfers).

use nxla_split::Speed;

/// The speed of the evaluator for the cost model, to the order of magnitude. The model assumes that
/// nothing is fused, so most estimates exceed what is measured. `benches/python/kernels.py`, all lines.
pub(crate) const EVALUATOR: Speed = Speed { flops: 1e10, bytes: 3e10, overhead: 1e-7 };

/// The speed of compiled loops that XLA handles badly. `benches/python/kernels.py`, lines with loops.
#[cfg(feature = "xla")]
pub(crate) const SLOW_LOOPS: Speed = Speed { flops: 1e9, bytes: 2e9, overhead: 1e-6 };

/// Default of `compile_above` in microseconds: programs estimated at no more run on the evaluator.
/// `benches/python/kernels.py`: of the lines that are estimated at up to 500 µs, the evaluator takes 0.91
/// of XLA's time in the geometric mean, of those at up to 1,000 µs 1.02.
pub(crate) const COMPILE_ABOVE: u64 = 500;

/// Default of `compile_after`: the number of calls that run on the evaluator. XLA compiles during the last
/// one, so that a function that is called once is never compiled. `benches/python/models.py`, first
/// results.
pub(crate) const COMPILE_AFTER: u64 = 2;

/// Seconds of estimated work above which XLA runs every call: the compilation of a model takes a
/// quarter of a second to two. `benches/python/compile_times.py`.
pub(crate) const EVALUATED_FIRST: f64 = 0.25;

/// Seconds of estimated work above which a program with loops runs on a thread of its own, so that its
/// caller can be interrupted: the interval at which callers look for interrupts.
#[cfg(feature = "xla")]
pub(crate) const WATCHED_ABOVE: f64 = 0.05;

/// Elements from which on sorts and cumulative reductions are custom calls.
/// `benches/python/kernels.py`, lines `sort` and `cumulative_sum`.
#[cfg(feature = "xla")]
pub(crate) const LEAST_SORTED: usize = 1 << 7;

/// Elements between which Fourier transforms are custom calls: below, the call costs more than it saves;
/// above, copying the result does. `benches/python/kernels.py`, lines `fft`.
#[cfg(feature = "xla")]
pub(crate) const TRANSFORMED: std::ops::RangeInclusive<usize> = 1 << 9..=1 << 16;

/// Limits of XLA's compiler for CPUs: rows of 32 to 512 elements and 64 columns of a transposed matrix,
/// which its libraries handle, and windows of 16 elements whose scatter is unrolled.
/// `benches/python/kernels.py`, lines `sum` along the last axis and gradients of pooling, and
/// `benches/python/kernel_linalg.py`, transposed matrices by vectors.
#[cfg(feature = "xla")]
pub(crate) const CPU_SHAPES: nxla_stablehlo::ShapeLimits = nxla_stablehlo::ShapeLimits {
    least_row: 32,
    most_row: 512,
    least_columns: 64,
    most_unrolled: 16,
};
