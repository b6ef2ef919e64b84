//! Simplification at construction.
//!
//! A node is simplified once, when it is made, so every graph is always in simplified form and
//! making a node again gives the same one. The rules are Nx's, in its directions, because users
//! read the result: constants move to the left of sums and products, neighbouring slices merge,
//! what changes nothing leaves no node. Laws that hold for real numbers but change the rounding
//! of floats apply only when the graph's options ask for them.
//!
//! A rule reads the graph and says what the node becomes; it makes nothing itself.

mod arithmetic;
mod fold;
mod identity;
mod movement;
mod outcome;
mod reduce;

use crate::graph::{ExprId, Graph, Op, TypeId};

pub(crate) use outcome::Simplified;

/// Applies the first rule that matches.
pub(crate) fn simplify(graph: &Graph, op: &Op, operands: &[ExprId], ty: TypeId) -> Simplified {
    match (op, operands) {
        (Op::Unary(op), &[x]) => identity::unary(graph, *op, x, ty),
        (Op::Binary(op), &[x, y]) => arithmetic::binary(graph, *op, x, y, ty),
        (Op::AsType(dtype), &[x]) => identity::as_type(graph, *dtype, x, ty),
        (Op::Reshape(_), &[x]) => identity::unchanged(graph, x, ty),
        (Op::Broadcast(broadcast), &[x]) => movement::broadcast(graph, broadcast, x, ty),
        (Op::Squeeze(axes), &[x]) => movement::squeeze(graph, axes, x),
        (Op::Transpose(axes), &[x]) => movement::transpose(axes, x),
        (Op::Reverse(axes), &[x]) if axes.is_empty() => Simplified::Is(x),
        (Op::Concatenate(_), &[x]) => Simplified::Is(x),
        (Op::Reduce(op, attributes), &[x]) => reduce::reduce(graph, *op, attributes, x, ty),
        (Op::Slice(slice), &[x, ..]) => movement::slice(graph, slice, x, &operands[1..]),
        _ => Simplified::Keep,
    }
}
