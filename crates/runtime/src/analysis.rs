//! A compiler's figures for an executable.

use crate::pjrt::MemoryStats;

/// A compiler's figures for an executable; `None` for unknown figures.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Analysis {
    /// Estimates by name, such as `flops` and `bytes accessed`.
    pub cost: Option<Vec<(String, f64)>>,
    /// The memory that a run takes.
    pub memory: Option<MemoryStats>,
}
