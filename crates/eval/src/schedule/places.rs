//! Index maps of nodes that only move elements, and sizes of types.

use nxla_expr::{ExprId, Graph, Op, TensorType};

use crate::kernels::index::known_slice;
use crate::kernels::movement::{Places, broadcast, reversed};
use crate::kernels::strided::Strided;

/// The index map of a node into its operand.
pub(crate) fn index_map(graph: &Graph, id: ExprId) -> Places {
    let x = graph.shape(graph.operands(id)[0]);
    match graph.op(id) {
        Op::Reshape(_) | Op::Squeeze(_) => {
            Places { offset: 0, steps: Strided::row_major(graph.shape(id)) }
        }
        Op::Broadcast(attributes) => broadcast(x, attributes),
        Op::Reverse(axes) => reversed(x, axes),
        Op::Slice(attributes) => known_slice(x, attributes),
        op => unreachable!("{} is not an index map", op.name()),
    }
}

/// Returns true if a tensor has at most this many bytes.
pub(crate) fn is_at_most(ty: &TensorType, bytes: usize) -> bool {
    let size = ty.shape.checked_size().and_then(|size| size.checked_mul(ty.dtype.size()));
    size.is_some_and(|size| size <= bytes)
}
