//! The semantics of every op, in the simplest form.
//!
//! [`run()`] evaluates a program one element at a time, and its code is written to be read: for
//! example, `window_scatter_max` is a loop over the windows and a loop over the elements of a
//! window. It does not fuse, share, vectorize or parallelize. Tests compare the optimized evaluator
//! with this crate; only tests depend on it.
//!
//! Each family of ops has a file. Other files define the elements of tensors (`number`), tensors
//! (`array`), and the loop over the nodes of a program (`run`).
//!
//! # Numbers
//!
//! * Integers are exact during a computation and wrap at their width at its end.
//! * Real numbers are computed in `f64` and complex numbers in pairs of `f64`. Each op rounds its
//!   result once to its dtype, including sums and products of many elements.
//! * Operands of mixed dtypes are first converted to the dtype of the result, unless the op defines
//!   another conversion.
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
pub use run::{HostFnLookup, run, run_with};
