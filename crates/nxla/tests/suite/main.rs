//! Tests of the public functions, in one binary, since linking takes longer than running them.
//! Tests that change settings of the process have binaries of their own.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod aliases;
mod arguments;
#[cfg(feature = "ndarray")]
mod arrays;
mod auto;
mod awaiting;
mod calls;
mod collectives;
#[path = "../common/mod.rs"]
mod common;
mod compiled;
mod containers;
mod control;
mod donation;
mod elementwise;
mod examples;
mod fallible;
#[cfg(feature = "import")]
mod import;
mod initializers;
#[cfg(feature = "io")]
mod io;
mod matrices;
mod messages;
mod numbers;
mod optim;
mod shapes;
mod sharding;
mod stage_bits;
mod stages;
mod stream;
mod user_errors;
mod vectors;
