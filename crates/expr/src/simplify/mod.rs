//! Simplification of new nodes.
//!
//! A node is simplified once, when it is created. Every graph is therefore simplified, and
//! recreating a node returns the same node. Constants move to the left of sums and products,
//! adjacent slices are merged, and ops without effect are removed; users see these forms in printed
//! expressions. Laws of real arithmetic that do not hold for floats apply only if the options of the
//! graph enable them.
//!
//! A rule reads the graph and returns the replacement of a node. Rules create no nodes. `make`
//! rejects a replacement of another type, so no rule can change a dtype or a shape.

mod arithmetic;
mod fold;
mod identity;
mod movement;
mod outcome;
mod reduce;

use nxla_tensor::DType;

use crate::graph::{BinaryClass, BinaryOp, ExprId, Graph, Op, TypeId};

pub(crate) use outcome::Simplified;

/// Returns whether an op compares `u64` with a signed dtype. No integer dtype holds the values of
/// both, so converting the operands to the promoted dtype could change the result.
fn has_mixed_signs(graph: &Graph, op: &Op, operands: &[ExprId]) -> bool {
    let compares = match op {
        Op::Clip | Op::Binary(BinaryOp::Max | BinaryOp::Min) => true,
        Op::Binary(op) => matches!(op.class(), BinaryClass::Equality | BinaryClass::Order),
        _ => false,
    };
    let is = |found: fn(DType) -> bool| operands.iter().any(|&id| found(graph.dtype(id)));
    compares
        && is(|dtype| dtype == DType::U64)
        && is(DType::is_signed)
        && !is(|dtype| dtype.is_float() || dtype.is_complex())
}

/// Applies the first rule that matches.
pub(crate) fn simplify(graph: &Graph, op: &Op, operands: &[ExprId], ty: TypeId) -> Simplified {
    match (op, operands) {
        (Op::Binary(_) | Op::Clip, _) if has_mixed_signs(graph, op, operands) => {
            Simplified::MixedSigns
        }
        (Op::Constant(constant), _) => identity::round_constant(constant),
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
