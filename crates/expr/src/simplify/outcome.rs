//! What a rule says of a node, and what rules look for in its operands.

use crate::graph::{Constant, ExprId, Graph, Op, Operands};

/// What becomes of a node that is about to be made.
pub(crate) enum Simplified {
    /// It is in simplified form.
    Keep,
    /// It is this node.
    Is(ExprId),
    /// It is this node, cast and broadcast to the type that was inferred.
    Fitted(ExprId),
    /// It compares `u64` with a signed dtype, which takes several nodes.
    MixedSigns,
    /// It is that node instead, which is simplified in turn.
    Node(Op, Operands),
    /// It is that node instead, of which the operand at `place` is made first.
    Nested { op: Op, operands: Operands, place: usize, inner: (Op, Operands) },
}

/// The number behind a constant node.
pub(super) fn constant(graph: &Graph, id: ExprId) -> Option<&Constant> {
    match graph.op(id) {
        Op::Constant(constant) => Some(constant),
        _ => None,
    }
}
