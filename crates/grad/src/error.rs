//! What can be wrong with a request for a gradient.

use nxla_expr::{Graph, Line, TensorType, Type};

/// A gradient that cannot be taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GradError {
    /// The output depends on an input through an op that has no derivative rule.
    #[error("{op}: {why}{}", at(line.as_ref()))]
    NotDifferentiable {
        /// The op as the user wrote it.
        op: &'static str,
        /// What is the matter, and what can be done.
        why: &'static str,
        /// The user's line, where known.
        line: Option<Line>,
    },
    /// An output or an input that is a tuple.
    #[error("grad: {argument} must be one tensor, got a {found}")]
    NotATensor {
        /// `output` or `input`.
        argument: &'static str,
        /// Its type.
        found: Box<Type>,
    },
    /// Not one cotangent for each output.
    #[error("grad: {cotangents} cotangents for {outputs} outputs")]
    Count {
        /// How many outputs there are.
        outputs: usize,
        /// How many cotangents came.
        cotangents: usize,
    },
    /// A cotangent whose shape is not that of what it belongs to.
    #[error("grad: a cotangent is {found}, expected the shape of {expected}")]
    Cotangent {
        /// The type of the cotangent.
        found: Box<TensorType>,
        /// The type of the value it belongs to.
        expected: Box<TensorType>,
    },
    /// Not one value and one tangent for each input of a program.
    #[error("jvp: {found} values or tangents for {expected} inputs")]
    Inputs {
        /// How many inputs there are.
        expected: usize,
        /// How many came.
        found: usize,
    },
    /// A tangent that does not fit what it belongs to.
    #[error("jvp: a tangent is {found}, expected the type of {expected}")]
    Tangent {
        /// The type of the tangent.
        found: Box<TensorType>,
        /// The type of the value it belongs to.
        expected: Box<TensorType>,
    },
    /// A user's rule that is not linear, in the direction that it was not written for.
    #[error(
        "{op}: the rule is not linear in what it is given, so it says nothing about \
         derivatives in the other direction{}",
        at(line.as_ref())
    )]
    NotLinear {
        /// Whose rule it is: `custom_grad` or `custom_jvp`.
        op: &'static str,
        /// The user's line, where known.
        line: Option<Line>,
    },
    /// A node of the derivative that cannot be built, which a user's own rule can cause.
    #[error(transparent)]
    Build(#[from] nxla_expr::Error),
}

fn at(line: Option<&Line>) -> String {
    line.map_or_else(String::new, |line| format!(" ({line})"))
}

impl GradError {
    /// The error of an op that has no rule.
    pub(crate) fn no_rule(graph: &Graph, id: nxla_expr::ExprId, why: &'static str) -> Self {
        GradError::NotDifferentiable { op: graph.op(id).name(), why, line: graph.line(id) }
    }
}

/// The result of differentiating.
pub(crate) type Result<T, E = GradError> = std::result::Result<T, E>;
