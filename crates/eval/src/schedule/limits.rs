//! The thresholds of scheduling, with costs in two units.
//!
//! Element-wise code has a cost per element in sixteenths of a nanosecond ([`BodyCode::cost`]), which is the unit of
//! [`CHEAP_COST`]. Steps and schedules have a cost in operations, which take some quarter of a nanosecond
//! ([`Schedule::cost`](super::Schedule::cost)); this is the unit of [`LONG`]. The function
//! `body_cost` converts costs of code to operations.
//!
//! [`BodyCode::cost`]: crate::kernels::elementwise::BodyCode::cost

/// Nodes of a body, so that the registers of long chains stay few, and parts of a nest, so that its tiles fit into a
/// second-level cache. Measured by the chains of `benches/python/kernels.py`.
pub(super) const MAX_NODES: usize = 64;

/// Results of a body, which writes each result to a separate stream of memory. Measured by the chains of
/// `benches/python/kernels.py`.
pub(super) const MAX_BODY_RESULTS: usize = 8;

/// Steps that move before the first step of a nest. Their results live longer than without the nest. Measured by the
/// peak memory of `benches/python/models.py`.
pub(super) const MAX_MOVED: usize = 4;

/// Columns of the longest rows in a nest: a tile of one row fits into a second-level cache. Measured by the softmax
/// cases of `benches/python/kernels.py`.
pub(super) const MAX_COLUMNS: usize = 1 << 15;

/// Rows from which all threads have work in a nest. Measured by the softmax cases of `benches/python/kernels.py`.
pub(super) const MANY_ROWS: usize = 16;

/// Elements that one thread computes as fast as several threads, so that a nest of few rows is fused. Measured by the
/// softmax cases of `benches/python/kernels.py`.
pub(super) const ONE_THREAD_ELEMENTS: usize = 1 << 14;

/// Cost per element (in sixteenths of a nanosecond) of a body that runs on one thread together with the reduction of
/// its result. Measured by the loss cases of `benches/python/models.py`.
pub(super) const CHEAP_COST: usize = 4;

/// Bytes of the largest tensor in the arena: a block of element-wise code. Measured by `benches/python/loops.py`.
pub(crate) const SMALL_BYTES: usize = 1 << 14;

/// Steps that cost as much as starting the arena, and as copying the operands and results of one call out of the arena
/// and back. A program on small tensors uses the arena if it has at least as many steps for each call. Measured by
/// `benches/python/loops.py`.
pub(super) const MIN_STEPS: usize = 4;

/// Cost in operations from which a step runs on a new thread if the caller may cancel it: some ten milliseconds.
/// Measured by `benches/python/models.py`.
pub(super) const LONG: f64 = (1 << 26) as f64;

/// Cost in operations from which a run moves to the thread pool, which takes 30 microseconds: half a millisecond.
/// Measured by `benches/python/models.py`.
pub(super) const POOL_COST: f64 = (1 << 21) as f64;
