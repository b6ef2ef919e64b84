//! The tests of the stages, in one binary, since linking takes longer than running them.

mod boundaries;
mod common;
mod formats;
mod hooks;
mod policies;
mod random;
mod schedule;
mod stages;
mod structured;
