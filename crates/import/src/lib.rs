//! Readers of programs of other systems: StableHLO modules and ONNX models become nodes of a graph.
//!
//! The readers accept untrusted files. Damaged input is an error with a position, unsupported input is one
//! error that lists all unsupported operations, and memory is proportional to the size of the input
//! and of the tensors that the imported program computes.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a panic is how a test fails"))]

mod error;
mod float8;
mod numbers;
pub mod onnx;
pub mod stablehlo;

pub use error::{ImportError, ImportErrorKind, Place, Result, Unsupported};
