//! Errors of ONNX import. Each message names its place: a byte of the file, a node, or a value.

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

/// Creates the error that lists operators.
pub(super) fn unsupported(list: Vec<Unsupported>) -> ImportError {
    ImportError { format: FORMAT, kind: ImportErrorKind::Unsupported(list) }
}

/// A violated requirement inside a node, without the place, which the caller adds.
#[derive(Clone, Debug)]
pub(super) struct Fault(pub(super) String);

impl From<nxla_expr::Error> for Fault {
    fn from(error: nxla_expr::Error) -> Self {
        Fault(error.to_string())
    }
}

impl From<nxla_tensor::TensorError> for Fault {
    fn from(error: nxla_tensor::TensorError) -> Self {
        Fault(error.to_string())
    }
}

impl From<ImportError> for Fault {
    fn from(error: ImportError) -> Self {
        Fault(match error.kind {
            ImportErrorKind::Malformed { place, why } => format!("{place}: {why}"),
            ImportErrorKind::Unsupported(_) | ImportErrorKind::Build { .. } => error.to_string(),
        })
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Fault(why)
    }
}

impl From<&str> for Fault {
    fn from(why: &str) -> Self {
        Fault(why.into())
    }
}

/// The result of building a node.
pub(super) type Built<T> = std::result::Result<T, Fault>;
