//! What can go wrong while a program runs.
//!
//! Shapes and dtypes were checked when the program was built, so little is left: inputs that do
//! not fit, listeners that refuse, results too large for memory, and a caller that wants to stop.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use nxla_expr::{ExprId, Graph, HostError, Line, TensorType};
use nxla_tensor::{DType, Shape, TensorError};

/// A run that did not finish.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
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
    /// An operation that failed.
    #[error("{op}: {fault}{}", at_line(line.as_ref()))]
    Op {
        /// The operation as expression text names it.
        op: String,
        /// What went wrong.
        fault: Fault,
        /// The user's line, where known.
        line: Option<Line>,
    },
    /// The caller asked the run to stop.
    #[error("the run was interrupted")]
    Interrupted,
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A host function returned an error.
    #[error("hook {} failed: {error}", name.as_deref().unwrap_or("without a name"))]
    Hook {
        /// The name of the hook.
        name: Option<String>,
        /// What the host function said.
        error: HookFailure,
    },
    /// The host function of a runtime call returned an error.
    #[error("the host function failed: {error}")]
    RuntimeCall {
        /// What the host function said.
        error: HookFailure,
    },
    /// A result that is not finite, of finite operands; found by plans that check.
    #[error(transparent)]
    NotFinite(Box<NotFinite>),
    /// A runtime call whose function is not at hand: programs that were stored or sent elsewhere
    /// have lost theirs.
    #[error("the function is not at hand; a program that was stored or sent has lost it")]
    NoFunction,
    /// A kernel that was left out when the crate was built.
    #[error("this needs the feature {name:?} of the crate nxla, which is off")]
    Feature {
        /// The name of the feature.
        name: &'static str,
    },
    /// A result of more bytes than memory can address.
    #[error("the result {dtype}{shape} is larger than the address space")]
    TooLarge {
        /// The dtype of the result.
        dtype: DType,
        /// The shape of the result.
        shape: Shape,
    },
    /// Memory that the operation needs for a while.
    #[error("it needs {bytes} bytes for a while, more memory than there is")]
    OutOfMemory {
        /// The bytes that were refused.
        bytes: usize,
    },
    /// Something that a host tensor refused.
    #[error(transparent)]
    Tensor(Box<TensorError>),
}

/// The error of a host function. Clones share it, and it can be taken out as what it was.
#[derive(Clone, Debug)]
pub struct HookFailure(Arc<Mutex<Option<HostError>>>, Arc<str>);

impl HookFailure {
    /// The error itself, for the first who asks.
    pub fn take(&self) -> Option<HostError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl From<HostError> for HookFailure {
    fn from(error: HostError) -> Self {
        let text = error.to_string().into();
        Self(Arc::new(Mutex::new(Some(error))), text)
    }
}

impl fmt::Display for HookFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.1)
    }
}

impl PartialEq for HookFailure {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}

/// A result that is not finite, of finite operands.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("made {value} at {index:?} of its result {dtype}{shape}, from finite operands")]
pub struct NotFinite {
    /// NaN or an infinity.
    pub value: String,
    /// Where it is.
    pub index: Vec<usize>,
    /// The dtype of the result.
    pub dtype: DType,
    /// The shape of the result.
    pub shape: Shape,
}

impl From<TensorError> for Fault {
    fn from(error: TensorError) -> Self {
        match error {
            TensorError::TooLarge { dtype, shape } => Fault::TooLarge { dtype, shape },
            error => Fault::Tensor(Box::new(error)),
        }
    }
}

/// Why a step ended a run: by its own fault, or because a run within it ended.
#[derive(Debug)]
pub(crate) enum Stop {
    Fault(Fault),
    Run(EvalError),
}

impl Stop {
    /// The error of the run, which names the operation and the line.
    pub(crate) fn at(self, graph: &Graph, id: ExprId) -> EvalError {
        match self {
            Stop::Fault(fault) => {
                EvalError::Op { op: graph.op(id).name().into(), fault, line: graph.line(id) }
            }
            Stop::Run(error) => error,
        }
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

impl From<EvalError> for Stop {
    fn from(error: EvalError) -> Self {
        Stop::Run(error)
    }
}

fn at_line(line: Option<&Line>) -> String {
    line.map(|line| format!(" ({line})")).unwrap_or_default()
}
