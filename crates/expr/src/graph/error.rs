//! Errors in the expression that a user wrote.
//!
//! A message names the operation, the argument, the shapes or dtypes, and the user's source line.

use std::fmt;

use nxla_tensor::{DType, Shape, ShapeError};

use super::source::{AtLine, Line};
use super::types::{TensorType, Type};

/// An operation that cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The operation in the user's program.
    pub op: String,
    /// The violated requirement.
    pub kind: ErrorKind,
    /// The user's source line, if known.
    pub line: Option<Line>,
}

/// The kinds of [`Error`] with their data.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's text names its fields")]
pub enum ErrorKind {
    #[error("operands: expected shapes that broadcast; got {left} and {right}")]
    Broadcast { left: Box<TensorType>, right: Box<TensorType> },
    #[error("{argument}: expected {expected}; got {found}")]
    Shape { argument: &'static str, found: String, expected: String },
    #[error(
        "axis {left_axis} of left and axis {right_axis} of right: must have equal \
         sizes; got {left_size} and {right_size} (left is {left}, right is {right})"
    )]
    AxisSizes {
        left_axis: usize,
        left_size: usize,
        right_axis: usize,
        right_size: usize,
        left: Box<TensorType>,
        right: Box<TensorType>,
    },
    #[error("{argument}: expected {expected}; got {found}")]
    DType { argument: &'static str, found: DType, expected: &'static str },
    #[error("{argument}: must be in range for {ty}; got {axis}")]
    Axis { argument: &'static str, axis: i64, ty: Box<TensorType> },
    #[error("{argument}: must be an axis of {ty}; got {name:?}")]
    AxisName { argument: &'static str, name: String, ty: Box<TensorType> },
    #[error("{argument}: must be distinct; got axis {axis} twice")]
    DuplicateAxis { argument: &'static str, axis: usize },
    #[error(
        "{argument}: expected {expected} {} for {ty}; got {found}",
        if *expected == 1 { "entry" } else { "entries" }
    )]
    Count { argument: &'static str, expected: usize, found: usize, ty: Box<TensorType> },
    #[error("operands: expected {expected}; got {found}")]
    Arity { expected: String, found: usize },
    #[error("{argument}: expected a tensor; got {found}")]
    NotATensor { argument: &'static str, found: Box<Type> },
    #[error("{argument}: {why}")]
    Invalid { argument: &'static str, why: String },
    #[error("axis names: {0}")]
    Names(String),
    #[error("{0}")]
    Misfit(Box<Misfit>),
    #[error("{0}")]
    Trace(String),
}

/// A result of a branch, or of the body of a loop, whose type does not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Misfit {
    /// The branch or body.
    pub region: Region,
    /// The index of the result among the leaves.
    pub result: usize,
    /// The path of the result in the user's container. Graphs have no containers, so a layer above
    /// sets it with [`Error::locate`].
    pub path: Option<String>,
    /// The type of the result.
    pub found: String,
    /// The required type.
    pub expected: String,
    /// The property that differs.
    pub difference: Difference,
}

/// The parts of conditionals and loops that return results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// A branch of a conditional, starting at 0. Its results are compared with the results of
    /// earlier branches.
    Branch(usize),
    /// The body of a loop. Its results are compared with the initial state.
    Body,
}

/// The first difference between two types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The shapes differ.
    Shape,
    /// The dtypes differ and the shapes are equal.
    DType,
    /// Only the axis names differ.
    Names,
}

impl Difference {
    /// Returns the difference between two types, or `None` if they are equal.
    pub fn between(found: &TensorType, expected: &TensorType) -> Option<Difference> {
        if found.shape != expected.shape {
            Some(Difference::Shape)
        } else if found.dtype != expected.dtype {
            Some(Difference::DType)
        } else {
            (found != expected).then_some(Difference::Names)
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfit { region, result, path, found, expected, difference } = self;
        if let Region::Branch(branch) = region {
            write!(f, "branch {branch}, ")?;
        }
        match path {
            Some(path) => f.write_str(path)?,
            None => write!(f, "result {result}")?,
        }
        match (region, difference) {
            (Region::Body, _) => {
                write!(f, ": must keep the type {expected}; got {found} after the body")
            }
            (Region::Branch(_), Difference::Names) => {
                write!(f, ": must have the names of {expected} in earlier branches; got {found}")
            }
            (Region::Branch(_), Difference::Shape | Difference::DType) => {
                write!(f, ": must broadcast with {expected} in earlier branches; got {found}")
            }
        }
    }
}

impl Error {
    /// Adds the user's terms to a [`Misfit`]: the called function, the number of the branch and the
    /// path of the result. Other errors are unchanged, and so is an error of a nested branch or
    /// body whose path is set already.
    #[must_use]
    pub fn locate(
        mut self,
        function: &str,
        place: impl FnOnce(Region, usize) -> (Region, Option<String>),
    ) -> Self {
        if let ErrorKind::Misfit(misfit) = &mut self.kind
            && misfit.path.is_none()
        {
            (misfit.region, misfit.path) = place(misfit.region, misfit.result);
            self.op = function.to_owned();
        }
        self
    }
}

/// Returns a shape for an error. The display of the shape of a scalar is empty.
pub(crate) fn shape_text(shape: &Shape) -> String {
    if shape.rank() == 0 { "[] (a scalar)".into() } else { shape.to_string() }
}

impl ErrorKind {
    /// Creates an error for an operation; the graph adds the source line.
    pub fn of(self, op: impl Into<String>) -> Error {
        Error { op: op.into(), kind: self, line: None }
    }

    /// Creates an error for an argument with an invalid value.
    pub fn invalid(argument: &'static str, why: impl Into<String>) -> Self {
        ErrorKind::Invalid { argument, why: why.into() }
    }
}

impl Error {
    /// Replaces the name of the argument by its name in the function that the user called.
    #[must_use]
    pub fn rename_argument(
        mut self,
        new_name: impl FnOnce(&str, &str) -> Option<&'static str>,
    ) -> Self {
        match &mut self.kind {
            ErrorKind::Shape { argument, .. }
            | ErrorKind::DType { argument, .. }
            | ErrorKind::Axis { argument, .. }
            | ErrorKind::AxisName { argument, .. }
            | ErrorKind::DuplicateAxis { argument, .. }
            | ErrorKind::Count { argument, .. }
            | ErrorKind::NotATensor { argument, .. }
            | ErrorKind::Invalid { argument, .. } => {
                *argument = new_name(&self.op, argument).unwrap_or(argument);
            }
            ErrorKind::Broadcast { .. }
            | ErrorKind::AxisSizes { .. }
            | ErrorKind::Arity { .. }
            | ErrorKind::Names(_)
            | ErrorKind::Misfit(_)
            | ErrorKind::Trace(_) => {}
        }
        self
    }

    /// Names the function that the user called, which uses the operation of the error.
    #[must_use]
    pub fn in_function(self, function: impl Into<String>) -> Self {
        Error { op: function.into(), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.op, self.kind, AtLine(self.line.as_ref()))
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
