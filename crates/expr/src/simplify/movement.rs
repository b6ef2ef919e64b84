//! Rewrites of movement ops that invert each other, repeat, or can be merged.

use smallvec::smallvec;

use super::outcome::{Simplified, constant};
use crate::graph::{Broadcast, ExprId, Graph, Op, Operands, SliceAttributes, Start, Type, TypeId};

pub(super) fn broadcast(graph: &Graph, broadcast: &Broadcast, x: ExprId, ty: TypeId) -> Simplified {
    if graph.type_id(x) == ty {
        return Simplified::Is(x);
    }
    // broadcast(c) = c of the new shape
    if let (Some(constant), Type::Tensor(ty)) = (constant(graph, x), graph.type_at(ty)) {
        return Simplified::constant(constant.value, ty.clone());
    }
    // broadcast(broadcast(x)) = one broadcast, when both add axes on the same side
    if let Op::Broadcast(inner) = graph.op(x) {
        let same_side = (is_leading(&inner.axes) && is_leading(&broadcast.axes))
            || (is_trailing(inner) && is_trailing(broadcast));
        if same_side {
            let axes = inner.axes.iter().map(|&axis| broadcast.axes[axis]).collect();
            let merged = Broadcast { axes, ..broadcast.clone() };
            let operand = graph.operands(x)[0];
            return Simplified::Node(Op::Broadcast(Box::new(merged)), smallvec![operand]);
        }
    }
    Simplified::Keep
}

fn is_leading(axes: &[usize]) -> bool {
    axes.iter().enumerate().all(|(index, &axis)| index == axis)
}

fn is_trailing(broadcast: &Broadcast) -> bool {
    let added = broadcast.shape.rank() - broadcast.axes.len();
    broadcast.axes.iter().enumerate().all(|(index, &axis)| index + added == axis)
}

pub(super) fn squeeze(graph: &Graph, axes: &[usize], x: ExprId) -> Simplified {
    if axes.is_empty() {
        return Simplified::Is(x);
    }
    // squeeze(squeeze(x)) = one squeeze of all their axes
    let Op::Squeeze(inner) = graph.op(x) else { return Simplified::Keep };
    let operand = graph.operands(x)[0];
    let kept: Vec<usize> =
        (0..graph.shape(operand).rank()).filter(|axis| !inner.contains(axis)).collect();
    let mut merged: Vec<usize> =
        inner.iter().copied().chain(axes.iter().map(|&axis| kept[axis])).collect();
    merged.sort_unstable();
    Simplified::Node(Op::Squeeze(merged.into()), smallvec![operand])
}

/// transpose by the identity permutation = nothing
pub(super) fn transpose(permutation: &[usize], x: ExprId) -> Simplified {
    if is_leading(permutation) { Simplified::Is(x) } else { Simplified::Keep }
}

/// slice(slice(x)) = one slice, and slice(squeeze(slice(x))) = squeeze of one slice, when no
/// stride skips elements.
pub(super) fn slice(
    graph: &Graph,
    outer: &SliceAttributes,
    x: ExprId,
    outer_starts: &[ExprId],
) -> Simplified {
    let (inner_id, squeezed) = match graph.op(x) {
        Op::Squeeze(axes) => (graph.operands(x)[0], axes.clone()),
        _ => (x, Box::default()),
    };
    let Op::Slice(inner) = graph.op(inner_id) else { return Simplified::Keep };
    let unit = |slice: &SliceAttributes| slice.strides.iter().all(|&stride| stride == 1);
    if !unit(inner) || !unit(outer) {
        return Simplified::Keep;
    }
    let operands = graph.operands(inner_id);
    let dims = graph.shape(operands[0]);
    let merged = merge(dims, (inner, &operands[1..]), (outer, outer_starts), &squeezed);
    let Some((merged, starts)) = merged else { return Simplified::Keep };
    let operands: Operands = std::iter::once(operands[0]).chain(starts).collect();
    if squeezed.is_empty() {
        return Simplified::Node(Op::Slice(Box::new(merged)), operands);
    }
    let operand = smallvec![operands[0]];
    let inner = (Op::Slice(Box::new(merged)), operands);
    Simplified::Nested { op: Op::Squeeze(squeezed), operands: operand, operand_index: 0, inner }
}

/// Merges `inner`, a squeeze of the axes `squeezed`, and `outer` into one slice with its dynamic
/// starts. The result still has the squeezed axes.
///
/// Every start is clamped separately, so a dynamic start can be merged only with the start of a
/// slice that keeps the whole axis.
fn merge(
    dims: &[usize],
    inner: (&SliceAttributes, &[ExprId]),
    outer: (&SliceAttributes, &[ExprId]),
    squeezed: &[usize],
) -> Option<(SliceAttributes, Vec<ExprId>)> {
    let (inner, mut inner_dynamic) = (inner.0, inner.1.iter().copied());
    let mut outer_dynamic = outer.1.iter().copied();
    let mut outer_axes = outer.0.starts.iter().zip(&outer.0.lengths);
    let (mut starts, mut lengths, mut operands) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, (&start, &available)) in inner.starts.iter().zip(&inner.lengths).enumerate() {
        let (next, length) = if squeezed.contains(&axis) {
            (Start::Static(0), available)
        } else {
            outer_axes.next().map(|(&start, &length)| (start, length))?
        };
        let merged = match (start, next) {
            (Start::Static(first), Start::Static(second)) => Start::Static(
                clamp_start(first, dims[axis], available) + clamp_start(second, available, length),
            ),
            (Start::Dynamic, Start::Static(_)) if length == available => {
                operands.extend(inner_dynamic.next());
                Start::Dynamic
            }
            (Start::Static(_), Start::Dynamic) if available == dims[axis] => {
                operands.extend(outer_dynamic.next());
                Start::Dynamic
            }
            _ => return None,
        };
        starts.push(merged);
        lengths.push(length);
    }
    let strides = vec![1; lengths.len()].into();
    Some((SliceAttributes { starts: starts.into(), lengths: lengths.into(), strides }, operands))
}

/// Returns the clamped start of a slice of `length` elements out of `size`.
fn clamp_start(start: i64, size: usize, length: usize) -> i64 {
    let last = i64::try_from(size.saturating_sub(length)).unwrap_or(i64::MAX);
    start.clamp(0, last)
}
