//! Rewrites of reductions: sharing sums with and without kept axes, and sums of booleans.

use nxla_tensor::DType;
use smallvec::smallvec;

use super::outcome::Simplified;
use crate::graph::{ExprId, Graph, Op, Reduce, ReduceOp, Reshape, Type, TypeId};

/// Rewrites a sum that keeps its axes as a reshape of an existing sum that does not, or vice versa.
/// Computing a mean and then a variance thus computes the sum once.
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
        return Simplified::Nested { op, operands: smallvec![x], operand_index: 0, inner };
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

/// Returns the boolean operand of a sum that counts true elements. Backends add booleans directly,
/// without a converted copy of four times the size.
fn count(graph: &Graph, op: ReduceOp, x: ExprId) -> Option<ExprId> {
    let counted = match (op, graph.op(x)) {
        (ReduceOp::Sum, Op::AsType(DType::S32)) => graph.operands(x)[0],
        _ => return None,
    };
    graph.dtype(counted).is_pred().then_some(counted)
}
