//! The thresholds of lowering.

/// Bytes of an arena that fits into a second-level cache. Measured by `benches/python/loops.py`.
pub(super) const ARENA_BYTES: usize = 1 << 20;

/// Bytes of the largest tensor in an arena that would otherwise exceed [`ARENA_BYTES`]. Measured by
/// `benches/python/loops.py`.
pub(super) const REDUCED_SMALL_BYTES: usize = 1 << 10;

/// The number of instructions of a program, or of separate code, from which its steps with regions become separate
/// code. A region that is used twice at each level would otherwise be inlined a number of times that doubles with each
/// level. Measured by `benches/python/compile_times.py`.
pub(super) const MAX_INLINED: usize = 1 << 12;

/// Columns from which rows are computed one by one, so that operands that are repeated need no copy. Rows of four times
/// as many columns are reduced block by block. Measured by the layer norms of `benches/python/kernels.py`.
pub(super) const WIDE_ROW: usize = 512;
