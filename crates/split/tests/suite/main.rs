//! The tests of the stages, in one binary, since linking takes longer than running them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod boundaries;
mod common;
mod formats;
mod hooks;
mod policies;
mod random;
mod schedule;
mod stages;
mod structured;
