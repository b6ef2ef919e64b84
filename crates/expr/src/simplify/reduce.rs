//! Reductions that are others: those that differ by the axes that they keep, and counts.

use nxla_tensor::DType;
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
    if let Some(counted) = count(graph, op, x) {
        let inner = (Op::Reduce(op, Box::new(attributes.clone())), smallvec![counted]);
        let op = Op::AsType(DType::S32);
        return Simplified::Nested { op, operands: smallvec![x], place: 0, inner };
    }
    let other = Reduce { keep_axes: !attributes.keep_axes, ..attributes.clone() };
    match (graph.find(&Op::Reduce(op, Box::new(other)), &[x]), graph.type_at(ty)) {
        (Some(known), Type::Tensor(ty)) => {
            let reshape = Reshape { shape: ty.shape.clone(), names: ty.names.clone() };
            Simplified::Node(Op::Reshape(Box::new(reshape)), smallvec![known])
        }
        _ => Simplified::Keep,
    }
}

/// The truth values of a sum that counts those that hold. They are added up as they are, without a copy of
/// four times their bytes.
fn count(graph: &Graph, op: ReduceOp, x: ExprId) -> Option<ExprId> {
    let counted = match (op, graph.op(x)) {
        (ReduceOp::Sum, Op::AsType(DType::S32)) => graph.operands(x)[0],
        _ => return None,
    };
    graph.dtype(counted).is_pred().then_some(counted)
}
