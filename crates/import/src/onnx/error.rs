//! Errors of ONNX import. Each message names its place: a byte of the file, a node, or a value.

use nxla_expr::Difference;

use super::proto::Node;
use crate::error::{ImportError, ImportErrorKind, Place, Unsupported};

const FORMAT: &str = "ONNX";

/// Creates an error at a byte of the file.
pub(super) fn at_byte(offset: usize, why: impl Into<String>) -> ImportError {
    let kind = ImportErrorKind::Malformed { place: Place::Byte(offset), why: why.into() };
    ImportError { format: FORMAT, kind }
}

/// Creates an error at a node, a value or a function.
pub(super) fn at_name(name: &str, why: impl Into<String>) -> ImportError {
    let kind = ImportErrorKind::Malformed { place: Place::Named(name.into()), why: why.into() };
    ImportError { format: FORMAT, kind }
}

/// Creates an error for an argument whose type is not the declared type of an input.
pub(super) fn argument_error(name: &str, difference: Difference, why: String) -> ImportError {
    let kind = ImportErrorKind::Argument { name: name.into(), difference, why };
    ImportError { format: FORMAT, kind }
}

/// Creates the error that lists operators.
pub(super) fn unsupported_operators(list: Vec<Unsupported>) -> ImportError {
    ImportError { format: FORMAT, kind: ImportErrorKind::Unsupported(list) }
}

/// The reason why a node cannot be built, without the place, which the importer adds.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// A violated requirement.
    Invalid(String),
    /// A property of the operator that has no counterpart.
    Unsupported(String),
    /// Unsupported operators of a graph inside the node, with their places.
    Inner(Vec<Unsupported>),
}

impl Fault {
    /// Adds the node.
    pub(super) fn at(self, node: &Node) -> ImportError {
        self.at_value(&node.qualified_name(), &node.label())
    }

    /// Adds a named value or function.
    pub(super) fn at_value(self, noun: &str, name: &str) -> ImportError {
        match self {
            Fault::Invalid(why) => at_name(name, format!("{noun}: {why}")),
            Fault::Unsupported(why) => {
                let place = Place::Named(name.into());
                unsupported_operators(vec![Unsupported { op: noun.into(), place, why }])
            }
            Fault::Inner(list) => unsupported_operators(list),
        }
    }

    /// Adds the attribute or input at fault.
    pub(super) fn of(self, argument: &str) -> Self {
        match self {
            Fault::Invalid(why) => Fault::Invalid(format!("{argument}: {why}")),
            Fault::Unsupported(why) => Fault::Unsupported(format!("{argument}: {why}")),
            Fault::Inner(list) => Fault::Inner(list),
        }
    }
}

impl From<nxla_expr::Error> for Fault {
    fn from(error: nxla_expr::Error) -> Self {
        Fault::Invalid(error.to_string())
    }
}

impl From<nxla_tensor::TensorError> for Fault {
    fn from(error: nxla_tensor::TensorError) -> Self {
        Fault::Invalid(error.to_string())
    }
}

impl From<ImportError> for Fault {
    fn from(error: ImportError) -> Self {
        match error.kind {
            ImportErrorKind::Malformed { place, why } => Fault::Invalid(format!("{place}: {why}")),
            ImportErrorKind::Unsupported(list) => Fault::Inner(list),
            ImportErrorKind::Build { .. }
            | ImportErrorKind::Option { .. }
            | ImportErrorKind::Argument { .. } => Fault::Invalid(error.to_string()),
        }
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Fault::Invalid(why)
    }
}

impl From<&str> for Fault {
    fn from(why: &str) -> Self {
        Fault::Invalid(why.into())
    }
}

/// The result of building a node.
pub(super) type Built<T> = std::result::Result<T, Fault>;

/// Returns an error about a violated requirement.
pub(super) fn invalid<T>(why: impl Into<String>) -> Built<T> {
    Err(Fault::Invalid(why.into()))
}

/// Returns an error about a property that has no counterpart.
pub(super) fn unsupported<T>(why: impl Into<String>) -> Built<T> {
    Err(Fault::Unsupported(why.into()))
}
