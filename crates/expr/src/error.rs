//! What can be wrong with an expression as the user wrote it.
//!
//! The text names the operation, the argument, the shapes or dtypes, and the user's line:
//! `dot: axis 1 of left has size 3, axis 0 of right has size 4 (train.py:31)`.

use std::fmt;

use nxla_tensor::{DType, ShapeError};

use crate::source::Line;
use crate::types::{TensorType, Type};

/// An operation that cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The operation as the user wrote it.
    pub op: String,
    /// What is wrong.
    pub kind: ErrorKind,
    /// The user's line, where known.
    pub line: Option<Line>,
}

/// The kinds of [`Error`], with their facts.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's text names its fields")]
pub enum ErrorKind {
    #[error("cannot broadcast {left} with {right}")]
    Broadcast { left: Box<TensorType>, right: Box<TensorType> },
    #[error("{argument} has shape {found}, expected {expected}")]
    Shape { argument: &'static str, found: String, expected: String },
    #[error(
        "axis {left_axis} of left has size {left_size}, axis {right_axis} of right has size \
         {right_size} (left is {left}, right is {right})"
    )]
    AxisSizes {
        left_axis: usize,
        left_size: usize,
        right_axis: usize,
        right_size: usize,
        left: Box<TensorType>,
        right: Box<TensorType>,
    },
    #[error("{argument} has dtype {found}, expected {expected}")]
    DType { argument: &'static str, found: DType, expected: &'static str },
    #[error("axis {axis} is out of range for {ty}")]
    Axis { axis: i64, ty: Box<TensorType> },
    #[error("axis {axis} is given twice in {argument}")]
    DuplicateAxis { argument: &'static str, axis: usize },
    #[error("{argument} needs {expected} entries for {ty}, got {found}")]
    Count { argument: &'static str, expected: usize, found: usize, ty: Box<TensorType> },
    #[error("takes {expected} operands, got {found}")]
    Arity { expected: String, found: usize },
    #[error("{argument} must be a tensor, got a {found}")]
    NotATensor { argument: &'static str, found: Box<Type> },
    #[error("{argument}: {why}")]
    Invalid { argument: &'static str, why: String },
    #[error("axis names: {0}")]
    Names(String),
    #[error("{0}")]
    Trace(String),
}

impl ErrorKind {
    /// Wraps the facts with the operation's name; the line is added by the graph.
    pub fn of(self, op: impl Into<String>) -> Error {
        Error { op: op.into(), kind: self, line: None }
    }

    /// An argument whose value (not its shape or dtype) is wrong.
    pub fn invalid(argument: &'static str, why: impl Into<String>) -> Self {
        ErrorKind::Invalid { argument, why: why.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.op, self.kind)?;
        match &self.line {
            Some(line) => write!(f, " ({line})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<ShapeError> for ErrorKind {
    fn from(error: ShapeError) -> Self {
        ErrorKind::Invalid { argument: "shape", why: error.to_string() }
    }
}

/// The result of building an expression.
pub type Result<T, E = Error> = std::result::Result<T, E>;
