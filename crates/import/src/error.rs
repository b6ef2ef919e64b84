//! Errors of the readers: damaged input, unsupported operations, operations that cannot be built.

use std::fmt;

use nxla_expr::Difference;

/// The position of an element of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text, starting at 1.
    Line(usize),
    /// An offset in bytes, starting at 0.
    Byte(usize),
    /// A named node, tensor or function.
    Named(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Byte(byte) => write!(f, "byte {byte}"),
            Place::Named(name) => write!(f, "{name:?}"),
        }
    }
}

/// An operation without a counterpart in graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The name of the operation in the file.
    pub op: String,
    /// The position of the operation.
    pub place: Place,
    /// The property that is not supported.
    pub why: String,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.op, self.place, self.why)
    }
}

/// The reason why an import failed.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportErrorKind {
    /// The input is damaged or incomplete.
    Malformed {
        /// The position of the mistake.
        place: Place,
        /// The requirement, and the actual value.
        why: String,
    },
    /// An option does not fit the input.
    Option {
        /// The name of the option.
        name: &'static str,
        /// The requirement, and the actual value.
        why: String,
    },
    /// An argument of an imported function does not have the declared type.
    Argument {
        /// The name of the input.
        name: String,
        /// The property that differs.
        difference: Difference,
        /// The requirement, and the actual value.
        why: String,
    },
    /// All operations of the input that are not supported.
    Unsupported(Vec<Unsupported>),
    /// An operation has operands or attributes that the graph refuses.
    Build {
        /// The name of the operation in the file.
        op: String,
        /// The position of the operation.
        place: Place,
        /// The error of the graph.
        error: Box<nxla_expr::Error>,
    },
}

/// The error of the readers.
#[derive(Clone, PartialEq)]
pub struct ImportError {
    /// The name of the format, such as `StableHLO`.
    pub format: &'static str,
    /// The reason.
    pub kind: ImportErrorKind,
}

nxla_tensor::debug_as_message!(ImportError);

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = self.format;
        match &self.kind {
            ImportErrorKind::Malformed { place, why } => write!(f, "{format}: {place}: {why}"),
            ImportErrorKind::Option { name, why } => write!(f, "{format}: {name}: {why}"),
            ImportErrorKind::Argument { name, why, .. } => write!(f, "{format}: {name:?}: {why}"),
            ImportErrorKind::Build { op, place, error } => {
                write!(f, "{format}: {place}: {op}: {error}")
            }
            ImportErrorKind::Unsupported(ops) => {
                let count = ops.len();
                let noun = if count == 1 { "operation" } else { "operations" };
                write!(f, "{format}: {count} unsupported {noun}")?;
                ops.iter().try_for_each(|op| write!(f, "\n  {op}"))
            }
        }
    }
}

impl std::error::Error for ImportError {}

/// The result of the readers.
pub type Result<T, E = ImportError> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_operations_are_listed_together() {
        let op = |op: &str, line| Unsupported {
            op: op.into(),
            place: Place::Line(line),
            why: "dynamic shapes are not supported".into(),
        };
        let kind = ImportErrorKind::Unsupported(vec![op("real_dynamic_slice", 3), op("foo", 9)]);
        let error = ImportError { format: "StableHLO", kind };
        assert_eq!(
            error.to_string(),
            "StableHLO: 2 unsupported operations\n  \
             real_dynamic_slice (line 3): dynamic shapes are not supported\n  \
             foo (line 9): dynamic shapes are not supported"
        );
    }
}
