//! The thresholds of execution.

/// Elements of a tile of a loop nest: the tiles that are alive at a time fit into a second-level cache. Measured by
/// the softmax cases of `benches/python/kernels.py`.
pub(super) const TILE_ELEMENTS: usize = 8192;

/// Bytes of a result above which memory is requested before the kernel begins, because the kernel
/// may allocate temporary memory. Measured by the tests of refused memory.
pub(super) const LARGE_RESULT: usize = 1 << 30;
