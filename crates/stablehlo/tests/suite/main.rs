//! The tests of the lowering to StableHLO, in one binary, since linking takes longer than running them.

mod common;
mod contract;
mod control;
mod create;
mod elementwise;
mod index;
mod materialize;
mod module;
mod movement;
mod partition;
mod reduce;
