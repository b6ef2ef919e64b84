//! The evaluator: runs programs on host tensors, in-process, in pure Rust.
//!
//! A [`Plan`] is made once per program and run many times. What each op means is said in plain form
//! by the crate `nxla-reference`, to which tests hold the evaluator.
//!
//! # How a program runs
//!
//! * Nodes that nobody needs get no step. Annotations and tuple parts are other names of values.
//! * Element-wise nodes that only serve one another become one step ([`Plan::step_count`] shows
//!   it), which computes a cache-sized block at a time with vector code for the machine at hand.
//! * Each value dies with the last step that reads it. If nobody else holds its memory, that step
//!   may write its result there; the inputs of [`Plan::run`] are no exception.
//! * Loops, and programs over small tensors, are written as code over one piece of memory, in which
//!   each value has its place: a step takes a few nanoseconds then, beside what its kernel takes.
//! * Large steps share the threads of one pool of rayon's, which a forked process makes anew.
//! * Long steps are done on a thread of their own where the caller may want to stop them.
//!
//! # Features
//!
//! `linalg` has kernels for products and factorisations of matrices, `fft` for Fourier transforms,
//! `parallel` spreads work over threads, and `simd` has code for AVX2 and AVX-512 beside that for the
//! target's baseline. All are on by default. Without them products and factorisations take longer,
//! transforms are errors, one thread does the work, and vectors are as wide as the target's.
//!
//! # Numbers
//!
//! * Integers wrap. Floats narrower than `f32` compute in `f32` and are rounded once per op.
//! * Sums, products and means of `f32` accumulate in `f64`.
//! * NaN comes out of maxima, minima and `clip`, wins in `argmax` and `argmin`, and sorts last.
//! * Integer division by zero gives -1 (all bits set), and the dividend as remainder.
//! * Slices that reach over the end are moved back; indices of `gather` are clamped; updates of
//!   `indexed_add` and `indexed_put` that fall outside are dropped. Updates are applied in order.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a panic is how a test fails"))]

mod args;
mod block;
mod bytecode;
mod check;
mod contract;
mod control;
mod create;
mod elementwise;
mod error;
mod family;
mod fold;
mod hooks;
mod index;
mod into;
mod kernels;
mod layout;
mod linalg;
mod long;
mod memory;
mod movement;
mod parallel;
mod plan;
mod reduce;
mod rows;
mod run;
mod threads;
mod totals;
mod value;
mod window;

pub use check::{first_nan, first_not_finite};
pub use error::{EvalError, Fault, HookFailure, NotFinite};
pub use hooks::Hooks;
#[cfg(feature = "linalg")]
pub use linalg::eigen;
pub use plan::Plan;
pub use run::{Interrupt, evaluate};
