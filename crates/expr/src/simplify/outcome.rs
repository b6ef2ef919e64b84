//! Results of simplification rules, and helpers for matching operands.

use nxla_tensor::Scalar;

use crate::graph::{Constant, ExprId, Graph, Op, Operands, TensorType};

/// The replacement of a node that is being created.
pub(crate) enum Simplified {
    /// The node is already simplified.
    Keep,
    /// An existing node.
    Is(ExprId),
    /// An existing node, to be cast and broadcast to the inferred type.
    Fitted(ExprId),
    /// A comparison of `u64` with a signed dtype, which takes several nodes.
    MixedSigns,
    /// A different node, which is simplified in turn.
    Node(Op, Operands),
    /// A different node whose operand at `operand_index` is created first.
    Nested { op: Op, operands: Operands, operand_index: usize, inner: (Op, Operands) },
}

impl Simplified {
    /// Returns a constant of a type as the different node.
    pub(super) fn constant(value: Scalar, ty: TensorType) -> Self {
        let constant = Constant { value, ty };
        Self::Node(Op::Constant(Box::new(constant)), Operands::default())
    }
}

/// Returns the constant of a node.
pub(super) fn constant(graph: &Graph, id: ExprId) -> Option<&Constant> {
    match graph.op(id) {
        Op::Constant(constant) => Some(constant),
        _ => None,
    }
}
