//! Errors of differentiation.

use nxla_expr::{AtLine, Graph, Line, TensorType, Type};

/// An error of a request for a derivative.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GradError {
    /// An output depends on an input through an op that has no derivative rule.
    #[error("{op}: {why}{}", AtLine(line.as_ref()))]
    NotDifferentiable {
        /// The name of the op in the user's program.
        op: &'static str,
        /// The reason, and a way to avoid the error.
        why: &'static str,
        /// The source line of the op, if known.
        line: Option<Line>,
    },
    /// An argument is a tuple instead of a tensor.
    #[error("grad: {argument}: must be a tensor; got {found}")]
    NotATensor {
        /// The argument: `output`, `cotangent` or `input`.
        argument: &'static str,
        /// The type of the argument.
        found: Box<Type>,
    },
    /// The number of cotangents differs from the number of outputs.
    #[error("grad: cotangents: must be one for each of the {outputs} outputs; got {cotangents}")]
    Count {
        /// The number of outputs.
        outputs: usize,
        /// The number of cotangents.
        cotangents: usize,
    },
    /// The shape of a cotangent differs from the shape of its output.
    #[error("grad: cotangent: must have the shape of the output {expected}; got {found}")]
    Cotangent {
        /// The type of the cotangent.
        found: Box<TensorType>,
        /// The type of the output.
        expected: Box<TensorType>,
    },
    /// The number of values or tangents differs from the number of inputs of the program.
    #[error(
        "jvp: inputs: must be one value and one tangent for each of the {expected} inputs; got {found}"
    )]
    Inputs {
        /// The number of inputs.
        expected: usize,
        /// The number of values or tangents.
        found: usize,
    },
    /// The shape or dtype of a tangent does not fit its input.
    #[error("jvp: tangent: must have the type of the input {expected}; got {found}")]
    Tangent {
        /// The type of the tangent.
        found: Box<TensorType>,
        /// The type of the input.
        expected: Box<TensorType>,
    },
    /// A custom rule that is not linear is needed in the mode for which it was not written.
    #[error(
        "{op}: rule: must be linear to be used in the other mode of differentiation; got a \
         nonlinear rule{}",
        AtLine(line.as_ref())
    )]
    NotLinear {
        /// The function that registered the rule: `custom_grad` or `custom_jvp`.
        op: &'static str,
        /// The source line of the op, if known.
        line: Option<Line>,
    },
    /// A node of the derivative is invalid, which a custom rule can cause.
    #[error(transparent)]
    Build(#[from] nxla_expr::Error),
}

impl GradError {
    /// Returns the error for an op without a derivative rule.
    pub(crate) fn no_rule(graph: &Graph, id: nxla_expr::ExprId, why: &'static str) -> Self {
        GradError::NotDifferentiable { op: graph.op(id).name(), why, line: graph.line(id) }
    }
}

/// The result type of this crate.
pub(crate) type Result<T, E = GradError> = std::result::Result<T, E>;
