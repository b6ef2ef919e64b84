//! Execution: one executor for all programs, with its instruction set and its calls of kernels.

pub(crate) mod code;
mod dispatch;
mod fold;
mod limits;
mod machine;
pub(crate) mod nest;

pub(crate) use dispatch::with_names;
