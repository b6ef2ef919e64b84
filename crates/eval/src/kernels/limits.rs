//! The thresholds of kernels, measured by `benches/python/kernels.py`.

/// Elements of a block that stays in the first-level cache between two passes. Fusing two passes over fewer elements
/// saves no access to memory.
pub(crate) const BLOCK_ELEMENTS: usize = 1 << 12;

/// Bytes of the inputs and registers of a block of element-wise code, which stay in the first-level cache. More than
/// eight share a larger cache, because small blocks cost more to start than they save.
pub(super) const BLOCK_BYTES: usize = 1 << 15;

/// Bytes of a part. Two parts fit into a second-level cache.
pub(super) const CACHE_BYTES: usize = 1 << 18;

/// Elements of a partial result of a long reduction.
pub(super) const PART_ELEMENTS: usize = 1 << 16;

/// Elements of a task that several threads share.
pub(super) const TASK_ELEMENTS: usize = 1 << 15;

/// Multiplications below which setting up a blocked product does not pay.
pub(super) const SMALL_PRODUCT: usize = 1 << 14;

/// Multiplications between two checks for cancellation: a quarter of a second.
pub(super) const CHECKED_PRODUCT: u64 = 1 << 33;
