//! Errors of programs that cannot be written as StableHLO.

use nxla_expr::{AtLine, Line};
use nxla_tensor::{DType, Shape};

/// A program that cannot be lowered, or options that do not fit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A list of donated inputs that does not have one entry per input.
    #[error("donated: must have one entry for each of {expected} inputs; got {found}")]
    Donated {
        /// Inputs of the program.
        expected: usize,
        /// Entries given.
        found: usize,
    },
    /// An active hook, on a plugin that cannot call the host.
    #[error("io_call: {hook} requires a plugin that supports host calls{}", AtLine(line.as_ref()))]
    HostCalls {
        /// `hook "loss"`, `a hook without a name`, or a runtime call.
        hook: String,
        /// The user's line, where known.
        line: Option<Line>,
    },
    /// An active hook in a module that other processes can run.
    #[error(
        "io_call: must not call a function of this process in a portable module; got {hook}{}; \
         omit the function, or return the value",
        AtLine(line.as_ref())
    )]
    PortableHook {
        /// `hook "loss"`, `a hook without a name`, or a runtime call.
        hook: String,
        /// The user's line, where known.
        line: Option<Line>,
    },
    /// A value whose bytes XLA cannot count.
    #[error("{dtype}{shape} is larger than the address space")]
    TooLarge {
        /// The element type.
        dtype: DType,
        /// The shape.
        shape: Shape,
    },
}

/// The result of lowering.
pub(crate) type Result<T> = std::result::Result<T, LowerError>;
