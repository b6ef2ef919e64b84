//! What every op means, in its plainest form.
//!
//! [`run()`] computes what a program does, one element at a time, and is meant to be read: who wants
//! to know what `window_scatter_max` is finds a loop over the windows and a loop over each window's
//! elements. Nothing is fused, shared, vectorized or parallel. The evaluator, which is all of that,
//! is tested against it; nothing but tests depends on this crate.
//!
//! Each family of ops has the file of its name. Besides those there are the numbers that elements
//! are (`number`), tensors of them (`array`), and the loop over the nodes of a program (`run`).
//!
//! # Numbers
//!
//! * Integers are exact while an op computes, and wrap at their width at its end.
//! * Real numbers are computed in `f64`, complex ones in pairs of it, and each op rounds its result
//!   once to the dtype that it has. Sums and products of many elements round once as well.
//! * Operands of mixed dtypes are converted first, to the dtype of the result where the op does
//!   not say otherwise.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a panic is how a test fails"))]

mod array;
mod contract;
mod control;
mod create;
mod elementwise;
mod error;
mod index;
mod linalg;
mod movement;
mod number;
mod reduce;
mod run;
mod window;

pub use error::Error;
pub use run::{Listener, run, run_with};
