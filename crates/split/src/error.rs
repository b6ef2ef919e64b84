//! What can go wrong with stages before any of them runs.

use nxla_expr::serialize::SerializeError;

use crate::stage::StageId;

/// Stages that cannot be made, read or trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// A stage whose program cannot be built. Nodes of a verified program never cause it.
    #[error("{stage} cannot be built: {error}")]
    Build {
        /// The stage.
        stage: StageId,
        /// What the graph says.
        error: Box<nxla_expr::Error>,
    },
    /// Stages that do not fit together.
    #[error("{stage}: {why}")]
    Structure {
        /// The stage.
        stage: StageId,
        /// What does not fit.
        why: String,
    },
    /// Outputs that no stage gives.
    #[error("output {output} is {why}")]
    Output {
        /// The position among the outputs.
        output: usize,
        /// What does not fit.
        why: String,
    },
    /// A policy that cannot cut the program.
    #[error("{0}")]
    Policy(String),
    /// Bytes that are no stage, or no graph of stages.
    #[error("the bytes are no {expected}: at byte {at}, {why}")]
    Bytes {
        /// Where reading had come to.
        at: usize,
        /// What was to be read.
        expected: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// Bytes of another version.
    #[error("the {kind} has format {found}, this version reads format {expected}")]
    Format {
        /// What was to be read.
        kind: &'static str,
        /// The version in the header.
        found: u32,
        /// The one that is read.
        expected: u32,
    },
    /// The program inside the bytes of a stage cannot be read.
    #[error("the program of a stage cannot be read: {0}")]
    Program(#[from] SerializeError),
}

impl SplitError {
    pub(crate) fn structure(stage: StageId, why: impl Into<String>) -> Self {
        SplitError::Structure { stage, why: why.into() }
    }
}
