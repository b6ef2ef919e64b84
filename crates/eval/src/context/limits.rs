//! The thresholds of threads. Costs are in sixteenths of a nanosecond. Measured by `benches/python/kernels.py`.

/// Cost of a step below which the step stays on its thread: 30 microseconds. Waking a thread for a part takes 5 to 10
/// microseconds. A task has a quarter of this cost.
pub(super) const MIN_COST: usize = 1 << 19;
