//! What a compiler tells of an executable.

use crate::pjrt::MemoryStats;

/// What a compiler tells of an executable; nothing where it does not know.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Analysis {
    /// Estimates by name, such as `flops` and `bytes accessed`.
    pub cost: Option<Vec<(String, f64)>>,
    /// The memory that a run takes.
    pub memory: Option<MemoryStats>,
}
