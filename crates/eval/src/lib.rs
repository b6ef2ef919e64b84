//! The evaluator: runs programs on host tensors, in-process, in pure Rust.
//!
//! A [`Plan`] is created once per program and runs many times. The crate `nxla-reference` implements every op in a
//! simple form, with which tests compare the evaluator.
//!
//! # From a program to kernels
//!
//! * `schedule` turns the program into an ordered list of steps: dead nodes get no step, element-wise nodes form
//!   bodies, and bodies and reductions form loop nests.
//! * `lower` turns the steps into instructions and assigns memory to each value: an offset in the
//!   arena for a small value of a loop, a slot for any other value. A result takes the memory of an
//!   operand that dies with the step, even if the operand is an input of [`Plan::run`].
//! * `execute` runs the instructions. Large steps share the threads of one pool. A long step runs on its own thread
//!   if the caller may cancel it.
//! * `kernels` compute on slices, with vector code for the instruction set of the processor.
//!
//! # Features
//!
//! `linalg` adds kernels for matrix products and factorizations, `fft` adds Fourier transforms, `parallel` uses
//! several threads, and `simd` adds code for AVX2 and AVX-512. All are on by default. Without them, products and
//! factorizations are slower, transforms are errors, one thread runs all steps, and vectors have the width of the
//! target's baseline.
//!
//! # Numbers
//!
//! * Integers wrap. Floats narrower than `f32` compute in `f32` and are rounded once per op.
//! * Sums, products and means of `f32` accumulate in `f64`.
//! * Maxima, minima and `clip` propagate NaN; `argmax` and `argmin` return the index of NaN; NaN sorts last.
//! * The quotient of an integer and zero is -1 (all bits set), and the remainder is the dividend.
//! * Slices that exceed the tensor move back; indices of `gather` are clamped; updates of `indexed_add` and
//!   `indexed_put` outside of the tensor are dropped. Updates are applied in order.
#![forbid(unsafe_code)]

mod context;
mod execute;
mod kernels;
mod lower;
mod plan;
mod schedule;

pub use context::{EvalError, Fault, HookFailure, Hooks, Interrupt, NotFinite};
pub use kernels::finite::{first_nan, first_not_finite};
#[cfg(feature = "linalg")]
pub use kernels::linalg::eigen;
pub use plan::{Plan, evaluate};
