//! What can be wrong with an expression as the user wrote it.
//!
//! The text names the operation, the argument, the shapes or dtypes, and the user's line:
//! `dot: axis 1 of left has size 3, axis 0 of right has size 4 (train.py:31)`.

use std::fmt;

use nxla_tensor::{DType, ShapeError};

use super::source::Line;
use super::types::{TensorType, Type};

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
#[non_exhaustive]
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
    Misfit(Box<Misfit>),
    #[error("{0}")]
    Trace(String),
}

/// A result of a branch, or of the body of a loop, that does not fit its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Misfit {
    /// What gave it.
    pub region: Region,
    /// Which of the results it is, containers being flat.
    pub result: usize,
    /// Where it is in the user's container. The graph knows no containers; who does fills it in,
    /// see [`Error::locate`].
    pub path: Option<String>,
    /// Its type.
    pub found: String,
    /// The type that it does not fit.
    pub expected: String,
    /// In what it does not fit.
    pub difference: Difference,
}

/// The parts of conditionals and loops that give results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// A branch of a conditional, counted from 0. Its results are compared with those of the
    /// branches before it.
    Branch(usize),
    /// The body of a loop. Its results are compared with the state that it was given.
    Body,
}

/// In what two types differ first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The shapes.
    Shape,
    /// The dtypes; the shapes are the same.
    DType,
    /// Only the names of axes.
    Names,
}

impl Difference {
    /// How two types differ; `None` if they are the same.
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
            (Region::Body, _) => write!(f, " is {found} after the body, {expected} before"),
            (Region::Branch(_), Difference::Names) => {
                write!(f, " is {found}, with other names than {expected} of the branches before")
            }
            (Region::Branch(_), Difference::Shape | Difference::DType) => write!(
                f,
                " is {found}, which does not broadcast with {expected} of the branches before"
            ),
        }
    }
}

impl Error {
    /// Tells of a [`Misfit`] in the user's terms: the function that was called, the branch as the
    /// user counts, and where the result is. Other errors stay as they are, and so does one that
    /// comes out of a branch or body in which its place has been told already.
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
