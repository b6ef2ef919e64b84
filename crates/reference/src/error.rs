//! What can go wrong while a program runs.

use nxla_expr::{HostError, TensorType};
use nxla_tensor::TensorError;

/// A run that did not finish.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another number of inputs than the program takes.
    #[error("the program takes {expected} inputs, got {found}")]
    InputCount {
        /// How many it takes.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// An input of another dtype or shape than the program was built for.
    #[error("input {index} is {found}, the program takes {expected}")]
    InputType {
        /// Position among the inputs.
        index: usize,
        /// What the program takes.
        expected: Box<TensorType>,
        /// What was given.
        found: Box<TensorType>,
    },
    /// A host function returned an error.
    #[error("a host function failed: {0}")]
    Hook(HostError),
    /// A runtime call whose function is not at hand.
    #[error("the function of a runtime call is not at hand")]
    NoFunction,
    /// Something that a host tensor refused.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
