//! The tests of the expressions, in one binary, since linking takes longer than running them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod blocks;
mod common;
mod contract;
mod effects;
mod formula;
mod gathers;
mod index;
mod linalg;
mod movement;
mod products;
mod reduce;
mod trip_counts;
mod window;
