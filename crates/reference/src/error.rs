//! Errors of running a program.

use nxla_expr::{HostError, TensorType};
use nxla_tensor::TensorError;

/// An error that ended a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The number of inputs differs from the number that the program takes.
    #[error("inputs: expected {expected}; got {found}")]
    InputCount {
        /// The number that the program takes.
        expected: usize,
        /// The number of inputs.
        found: usize,
    },
    /// The dtype or shape of an input differs from the type that the program takes.
    #[error("input {index}: expected {expected}; got {found}")]
    InputType {
        /// The position among the inputs.
        index: usize,
        /// The type that the program takes.
        expected: Box<TensorType>,
        /// The type of the input.
        found: Box<TensorType>,
    },
    /// A host function returned an error.
    #[error("a host function failed: {0}")]
    Hook(HostError),
    /// A runtime call has no function.
    #[error("the function of a runtime call is not available")]
    NoFunction,
    /// A host tensor could not be created.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
