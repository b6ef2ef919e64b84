//! Reductions that differ by the axes that they keep.

use smallvec::smallvec;

use super::outcome::Simplified;
use crate::graph::{ExprId, Graph, Op, Reduce, ReduceOp, Reshape, Type, TypeId};

/// A sum that keeps its axes is the reshaped sum that does not, and the other way round, if there is that
/// one: who asks for a mean, and then for a variance, adds everything up once.
pub(super) fn reduce(
    graph: &Graph,
    op: ReduceOp,
    attributes: &Reduce,
    x: ExprId,
    ty: TypeId,
) -> Simplified {
    let other = Reduce { keep_axes: !attributes.keep_axes, ..attributes.clone() };
    match (graph.find(&Op::Reduce(op, Box::new(other)), &[x]), graph.type_at(ty)) {
        (Some(known), Type::Tensor(ty)) => {
            let reshape = Reshape { shape: ty.shape.clone(), names: ty.names.clone() };
            Simplified::Node(Op::Reshape(Box::new(reshape)), smallvec![known])
        }
        _ => Simplified::Keep,
    }
}
