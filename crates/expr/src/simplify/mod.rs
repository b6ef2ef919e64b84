//! Simplification at construction.
//!
//! A node is simplified once, when it is made, so every graph is always in simplified form and
//! making a node again gives the same one. The rules are Nx's, in its directions, because users
//! read the result: constants move to the left of sums and products, neighbouring slices merge,
//! what changes nothing leaves no node. Laws that hold for real numbers but change the rounding
//! of floats apply only when the graph's options ask for them.

mod arithmetic;
mod fold;
mod identity;
mod movement;

use crate::error::Result;
use crate::graph::{ExprId, Graph, Operands};
use crate::op::{Constant, Op};
use crate::types::{Type, TypeId};

/// What becomes of a node that is about to be made.
pub(crate) enum Simplified {
    /// It is in simplified form.
    Keep,
    /// It is this node.
    Is(ExprId),
    /// It is that node instead, which is simplified in turn.
    Node(Op, Operands),
}

/// Applies the first rule that matches.
pub(crate) fn simplify(
    graph: &mut Graph,
    op: &Op,
    operands: &[ExprId],
    ty: TypeId,
) -> Result<Simplified> {
    match (op, operands) {
        (Op::Unary(op), &[x]) => Ok(identity::unary(graph, *op, x, ty)),
        (Op::Binary(op), &[x, y]) => arithmetic::binary(graph, *op, x, y, ty),
        (Op::AsType(dtype), &[x]) => Ok(identity::as_type(graph, *dtype, x, ty)),
        (Op::Reshape(_), &[x]) => Ok(identity::unchanged(graph, x, ty)),
        (Op::Broadcast(broadcast), &[x]) => Ok(movement::broadcast(graph, broadcast, x, ty)),
        (Op::Squeeze(axes), &[x]) => Ok(movement::squeeze(graph, axes, x)),
        (Op::Transpose(axes), &[x]) => Ok(movement::transpose(axes, x)),
        (Op::Reverse(axes), &[x]) if axes.is_empty() => Ok(Simplified::Is(x)),
        (Op::Concatenate(_), &[x]) => Ok(Simplified::Is(x)),
        (Op::Slice(slice), &[x, ..]) => movement::slice(graph, slice, x, &operands[1..]),
        _ => Ok(Simplified::Keep),
    }
}

/// The number behind a constant node.
fn constant(graph: &Graph, id: ExprId) -> Option<&Constant> {
    match graph.op(id) {
        Op::Constant(constant) => Some(constant),
        _ => None,
    }
}

/// `x` with the dtype, shape and names of a result that it broadcasts to.
fn adjust(graph: &mut Graph, x: ExprId, ty: TypeId) -> Result<ExprId> {
    let Type::Tensor(target) = graph.type_at(ty).clone() else { return Ok(x) };
    let x = graph.as_type(x, target.dtype)?;
    if graph.tensor_type(x) == &target {
        return Ok(x);
    }
    graph.broadcast_named(x, target.shape, target.names)
}
