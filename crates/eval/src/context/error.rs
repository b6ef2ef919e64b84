//! Errors of runs.
//!
//! Shapes and dtypes are checked when a program is built. Errors of runs are inputs that do not fit, failures of
//! host functions, results too large for memory, and cancellation.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use nxla_expr::{AtLine, ExprId, Graph, HostError, Line, TensorType};
use nxla_tensor::{DType, Shape, TensorError};

/// The error of a run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The program has another number of inputs.
    #[error("inputs: must be {expected}; got {found}")]
    InputCount {
        /// The number of inputs of the program.
        expected: usize,
        /// The number of inputs that were passed.
        found: usize,
    },
    /// The program expects another dtype or shape of an input.
    #[error("input {index}: must be {expected}; got {found}")]
    InputType {
        /// Position among the inputs.
        index: usize,
        /// The type in the program.
        expected: Box<TensorType>,
        /// The type of the input.
        found: Box<TensorType>,
    },
    /// An operation failed.
    #[error("{op}: {fault}{}", AtLine(line.as_ref()))]
    Op {
        /// The name of the operation in printed expressions.
        op: String,
        /// The reason.
        fault: Fault,
        /// The line of the user, if it is known.
        line: Option<Line>,
    },
    /// The caller cancelled the run.
    #[error("the run was interrupted")]
    Interrupted,
}

/// The reason why an operation failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A host function returned an error.
    #[error("hook {} failed: {error}", name.as_deref().unwrap_or("without a name"))]
    Hook {
        /// The name of the hook.
        name: Option<String>,
        /// The error of the host function.
        error: HookFailure,
    },
    /// The host function of a runtime call returned an error.
    #[error("the host function failed: {error}")]
    RuntimeCall {
        /// The error of the host function.
        error: HookFailure,
    },
    /// A checked plan found a result that is not finite although the operands are.
    #[error(transparent)]
    NotFinite(Box<NotFinite>),
    /// A runtime call has no function: serialized programs do not contain host functions.
    #[error(
        "the program has no host function{}; serialized programs do not contain host functions",
        name.as_ref().map(|name| format!(" for {name}")).unwrap_or_default()
    )]
    NoFunction {
        /// The name of the runtime call.
        name: Option<String>,
    },
    /// The kernel needs a feature with which the crate was not built.
    #[error("requires the feature {name:?} of the crate nxla, which is off")]
    Feature {
        /// The name of the feature.
        name: &'static str,
    },
    /// The result has more bytes than memory can address.
    #[error("the result {dtype}{shape} is larger than the address space")]
    TooLarge {
        /// The dtype of the result.
        dtype: DType,
        /// The shape of the result.
        shape: Shape,
    },
    /// The temporary memory of the operation could not be allocated.
    #[error("cannot allocate {bytes} bytes of temporary memory")]
    OutOfMemory {
        /// The number of bytes.
        bytes: usize,
    },
    /// An error of a host tensor.
    #[error(transparent)]
    Tensor(Box<TensorError>),
}

/// The error of a host function. Clones share the error, and one caller can take it out.
#[derive(Clone, Debug)]
pub struct HookFailure(Arc<Mutex<Option<HostError>>>, Arc<str>);

impl HookFailure {
    /// Takes the error out; later calls return `None`.
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

/// A result that is not finite although the operands are.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("produced {value} at {index:?} of its result {dtype}{shape}, from finite operands")]
pub struct NotFinite {
    /// NaN or an infinity, printed.
    pub value: String,
    /// The index of the element.
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

/// The reason why a step ended a run: its own fault, or the error of a run within it.
#[derive(Debug)]
pub(crate) enum Stop {
    Fault(Fault),
    Run(EvalError),
}

impl Stop {
    /// The error of the run, with the operation and the line.
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
