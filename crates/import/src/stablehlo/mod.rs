//! The reader of StableHLO modules.
