//! Errors of splitting and of serialized stages.

use nxla_expr::serialize::SerializeError;

use crate::stage::StageId;

/// Stages that cannot be built or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The program of a stage cannot be built. Verified programs never cause this error.
    #[error("{stage} cannot be built: {error}")]
    Build {
        /// The stage.
        stage: StageId,
        /// The error of the graph.
        error: Box<nxla_expr::Error>,
    },
    /// Stages that do not fit together.
    #[error("{stage}: {why}")]
    Structure {
        /// The stage.
        stage: StageId,
        /// The violated requirement.
        why: String,
    },
    /// Outputs that no stage computes.
    #[error("output {output} is {why}")]
    Output {
        /// The index of the output.
        output: usize,
        /// The violated requirement.
        why: String,
    },
    /// A policy that cannot cut the program.
    #[error("{0}")]
    Policy(String),
    /// Bytes that are not a stage or a graph of stages.
    #[error("bytes: expected a {expected}; at byte {at}, {why}")]
    Bytes {
        /// The position at which reading failed.
        at: usize,
        /// The expected object.
        expected: &'static str,
        /// The violated requirement.
        why: &'static str,
    },
    /// Bytes of an unsupported version.
    #[error("the {kind} has format {found}, this version reads format {expected}")]
    Format {
        /// The expected object.
        kind: &'static str,
        /// The version in the header.
        found: u32,
        /// The supported version.
        expected: u32,
    },
    /// The program inside the bytes of a stage cannot be read.
    #[error("the program of a stage cannot be read: {0}")]
    Program(SerializeError),
}

impl SplitError {
    pub(crate) fn structure(stage: StageId, why: impl Into<String>) -> Self {
        SplitError::Structure { stage, why: why.into() }
    }
}

// Not derived: a derived conversion makes the error a source, whose message would be printed twice.
impl From<SerializeError> for SplitError {
    fn from(error: SerializeError) -> Self {
        SplitError::Program(error)
    }
}
