//! The thresholds of execution.

/// Elements of a tile of a loop nest: the tiles that are alive at a time fit into a second-level cache. Measured by
/// the softmax cases of `benches/python/kernels.py`.
pub(super) const TILE_ELEMENTS: usize = 8192;

/// Bytes of a result from which memory is requested before a kernel, which may allocate temporary memory, begins. Measured by the tests of
/// refused memory.
pub(super) const LARGE_RESULT: usize = 1 << 30;
