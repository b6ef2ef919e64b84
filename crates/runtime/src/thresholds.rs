//! The thresholds of `runtime`, `stablehlo` and `pjrt`: sizes, counts and durations above which a
//! program, a transfer or a cache is handled differently, each with the benchmark or the reason
//! that produced it.
//!
//! `pjrt` cannot use this crate and holds one threshold itself: tensors of at least 4 KiB are lent
//! to a device instead of copied (`LENT_BYTES` in `crates/pjrt/src/transfer.rs`;
//! `benches/python/worker.py`, transfers).

use nxla_split::Speed;

/// The speed of the evaluator for the cost model, to the order of magnitude. The model assumes that
/// no ops are fused, so most estimates exceed the measured times. `benches/python/kernels.py`, all
/// lines.
pub(crate) const EVALUATOR: Speed = Speed { flops: 1e10, bytes: 3e10, overhead: 1e-7 };

/// Default of `compile_above` in microseconds: the evaluator runs programs up to this estimate.
/// Loops of small steps with this estimate take it up to 0.1 ms, and the first call on XLA 50 ms.
/// `benches/python/loops.py`.
pub(crate) const COMPILE_ABOVE: usize = 500;

/// Default of `compile_after`: the number of calls that run on the evaluator. XLA compiles during
/// the last one, so that a function that is called once is never compiled.
/// `benches/python/loops.py`.
pub(crate) const COMPILE_AFTER: u64 = 2;

/// Seconds of estimated work above which XLA runs every call of a program with loops of small steps:
/// the compilation takes less. `benches/python/loops.py`.
pub(crate) const XLA_FROM_FIRST_CALL_SECONDS: f64 = 0.25;

/// Seconds of estimated work above which a compiled program with loops runs on a separate thread,
/// so that its caller can be interrupted. Compiled loops take up to ten times the estimate; callers
/// check for interrupts every 50 ms.
#[cfg(feature = "xla")]
pub(crate) const WATCHED_SECONDS: f64 = 0.005;

/// Elements from which on sorts and cumulative reductions are custom calls.
/// `benches/python/kernels.py`, lines `sort` and `cumulative_sum`.
#[cfg(feature = "xla")]
pub(crate) const MIN_SORT_ELEMENTS: usize = 1 << 7;

/// Elements between which Fourier transforms are custom calls: below, the call costs more than it
/// saves; above, copying the result does. `benches/python/kernels.py`, lines `fft`.
#[cfg(feature = "xla")]
pub(crate) const FFT_ELEMENTS: std::ops::RangeInclusive<usize> = 1 << 9..=1 << 16;

/// Bytes above which a tensor that a function mentions becomes an input of its program instead of a
/// literal: beyond a few kilobytes, writing a literal costs more than passing an argument.
pub const LITERAL_LIMIT_BYTES: usize = 16 << 10;

/// Nodes of eager operations that a thread keeps: some hundred operations.
pub(crate) const EAGER_NODES: usize = 1 << 12;

/// Default limit of the executable cache in bytes: thousands of ordinary programs.
pub(crate) const CACHE_BYTES: u64 = 512 << 20;

/// Default limit of the cache on disk in bytes: some hundred large programs, or a hundred thousand
/// small ones.
#[cfg(feature = "xla")]
pub(crate) const DISK_CACHE_BYTES: u64 = 2 << 30;

/// The number of queued calls to the host, and the bytes of their values, above which a program waits.
#[cfg(feature = "xla")]
pub(crate) const PENDING_CALLS: crate::xla::Room = crate::xla::Room { calls: 256, bytes: 64 << 20 };
