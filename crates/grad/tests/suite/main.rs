//! The tests of the derivatives, in one binary, since linking takes longer than running them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod calls;
mod common;
mod control;
mod elementwise;
mod factorize;
mod forward;
mod modes;
mod residuals;
mod reverse;
mod structured;
mod transpose;
