//! The thresholds of scheduling, with costs in two units.
//!
//! Element-wise code has a cost per element in sixteenths of a nanosecond ([`Code::cost`]), which is the unit of
//! [`CHEAP_COST`]. Steps and schedules have a cost in operations, which take some quarter of a nanosecond
//! ([`Schedule::cost`](super::Schedule::cost)); this is the unit of [`LONG`]. The function `body_cost` converts costs of
//! code to operations.
//!
//! [`Code::cost`]: crate::kernels::elementwise::Code::cost

/// Nodes of a group of element-wise ops, so that the registers of long chains stay few. A body has at most an eighth as
/// many results, and a nest half as many parts. Measured by the chains of `benches/python/kernels.py`.
pub(super) const MAX_NODES: usize = 64;

/// Steps that move before the first step of a nest. Their results live longer than without the nest. Measured by the
/// peak memory of `benches/python/models.py`.
pub(super) const MAX_MOVED: usize = 4;

/// Columns of the longest rows in a nest: a tile of one row fits into a second-level cache. Measured by the softmax
/// cases of `benches/python/kernels.py`.
pub(super) const MAX_COLUMNS: usize = 1 << 15;

/// Rows from which all threads have work in a nest; fewer rows are fused if they have few elements. Measured by the
/// softmax cases of `benches/python/kernels.py`.
pub(super) const MANY_ROWS: usize = 16;

/// Cost per element (in sixteenths of a nanosecond) of a body that runs on one thread together with the reduction of its result. Measured by the loss
/// cases of `benches/python/models.py`.
pub(super) const CHEAP_COST: usize = 4;

/// Elements from which a total is cheaper if its operand is not stored, and from which fusion pays next to the
/// arena. One thread computes four times as many elements as fast as several threads. Measured by the loss cases of
/// `benches/python/models.py`.
pub(super) const MIN_FUSED: usize = 1 << 12;

/// Bytes of the largest tensor in the arena: a block of element-wise code. Measured by `benches/python/loops.py`.
pub(crate) const SMALL_BYTES: usize = 1 << 14;

/// Steps from which a program on small tensors uses the arena: starting the arena costs as much as a few steps.
/// Measured by `benches/python/loops.py`.
pub(super) const MIN_STEPS: usize = 4;

/// Cost in operations from which a step runs on a new thread if the caller may cancel it: some ten milliseconds. A run of a
/// thirty-second of it moves to the thread pool, which costs 30 microseconds. Measured by `benches/python/models.py`.
pub(super) const LONG: f64 = (1 << 26) as f64;

/// Assumed iterations of a loop whose trip count is unknown. Measured by `benches/python/loops.py`.
pub(super) const UNKNOWN_TRIPS: f64 = 64.0;
