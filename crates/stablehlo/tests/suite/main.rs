//! The tests of the lowering to StableHLO, in one binary, since linking takes longer than running them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;
mod contract;
mod control;
mod elementwise;
mod index;
mod materialize;
mod module;
mod movement;
mod partition;
mod reduce;
