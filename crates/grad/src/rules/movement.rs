//! Derivatives of movement ops: the inverse movement is applied to the cotangent. The cotangents of
//! repeated elements add up, and dropped elements receive zero.

mod forward;

use nxla_expr::{Axes, Broadcast, Padding};
use nxla_tensor::{DType, Scalar, inverse_permutation, to_i64};

use crate::builder::{self, dilated_size, pad_zeros, select_or_zero, sum, sum_all};
use crate::error::Result;
use crate::reverse::{ReversePass, Visit};

pub(super) use forward::{
    broadcast_tangent, concatenate_tangent, pad_tangent, reshape_tangent, same_tangent,
    stack_tangent,
};

/// `reshape` and `squeeze`.
pub(super) fn reshape(pass: &mut ReversePass<'_>, visit: &Visit) -> Result<()> {
    let dy = pass.dy(visit)?;
    let shape = pass.graph.shape(visit.operands[0]).clone();
    let dx = builder::reshape(pass.graph, dy, shape)?;
    pass.add_cotangent(visit, 0, dx)
}

pub(super) fn transpose(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    permutation: &[usize],
) -> Result<()> {
    let dy = pass.dy(visit)?;
    let dx = builder::transpose(pass.graph, dy, inverse_permutation(permutation))?;
    pass.add_cotangent(visit, 0, dx)
}

pub(super) fn reverse(pass: &mut ReversePass<'_>, visit: &Visit, axes: &Axes) -> Result<()> {
    let dy = pass.dy(visit)?;
    let dx = pass.graph.make(nxla_expr::Op::Reverse(axes.clone()), &[dy])?;
    pass.add_cotangent(visit, 0, dx)
}

/// The cotangents of the copies of an element add up.
pub(super) fn broadcast(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    attributes: &Broadcast,
) -> Result<()> {
    let dy = pass.dy(visit)?;
    let from = pass.graph.shape(visit.operands[0]).clone();
    let to = &attributes.shape;
    let kept = |axis: usize| {
        attributes.axes.iter().position(|&kept| kept == axis).is_some_and(|at| from[at] == to[axis])
    };
    let repeated: Axes = (0..to.rank()).filter(|&axis| !kept(axis)).collect();
    let summed = sum(pass.graph, dy, repeated)?;
    let dx = builder::reshape(pass.graph, summed, from)?;
    pass.add_cotangent(visit, 0, dx)
}

/// Element `i` of an axis was moved to `low + i (interior + 1)`. Trimming the margins and taking
/// every `(interior + 1)`-th element moves it back. The padding value receives the sum of all other
/// elements.
pub(super) fn pad(pass: &mut ReversePass<'_>, visit: &Visit, padding: &[Padding]) -> Result<()> {
    let dy = pass.dy(visit)?;
    let shape = pass.graph.shape(visit.operands[0]).clone();
    if pass.needs_cotangent(visit, 0) && shape.size() > 0 {
        let margins: Vec<Padding> = padding
            .iter()
            .map(|axis| Padding { low: -axis.low, high: -axis.high, interior: 0 })
            .collect();
        let trimmed = pad_zeros(pass.graph, dy, &margins)?;
        let strides: Axes = padding.iter().map(|axis| axis.interior + 1).collect();
        let dx = if strides.iter().all(|&stride| stride == 1) {
            trimmed
        } else {
            let lengths = shape
                .iter()
                .zip(&strides)
                .map(|(&size, &stride)| dilated_size(size, stride))
                .collect();
            builder::slice(pass.graph, trimmed, &vec![0; shape.rank()], lengths, strides)?
        };
        pass.add_cotangent(visit, 0, dx)?;
    }
    if pass.needs_cotangent(visit, 1) {
        // A mask avoids the cancellation in the difference of the sum of all and the sum of the
        // interior.
        let graph = &mut *pass.graph;
        let zero = graph
            .constant(Scalar::zero(DType::Pred), nxla_expr::TensorType::new(DType::Pred, shape))?;
        let one = graph.scalar_constant(Scalar::one(DType::Pred), DType::Pred)?;
        let outside = graph.make(nxla_expr::Op::Pad(padding.into()), &[zero, one])?;
        let outside = select_or_zero(graph, outside, dy)?;
        let value = sum_all(graph, outside)?;
        pass.add_cotangent(visit, 1, value)?;
    }
    Ok(())
}

/// Each operand receives its range of the cotangent.
pub(super) fn concatenate(pass: &mut ReversePass<'_>, visit: &Visit, axis: usize) -> Result<()> {
    let dy = pass.dy(visit)?;
    let mut starts = vec![0; pass.graph.shape(dy).rank()];
    for position in 0..visit.operands.len() {
        let shape = pass.graph.shape(visit.operands[position]).clone();
        if pass.needs_cotangent(visit, position) {
            let (lengths, strides) = (shape.as_slice().into(), vec![1; shape.rank()].into());
            let part = builder::slice(pass.graph, dy, &starts, lengths, strides)?;
            pass.add_cotangent(visit, position, part)?;
        }
        starts[axis] += shape[axis];
    }
    Ok(())
}

/// Each operand receives its index of the cotangent.
pub(super) fn stack(pass: &mut ReversePass<'_>, visit: &Visit, axis: usize) -> Result<()> {
    let dy = pass.dy(visit)?;
    let mut lengths = pass.graph.shape(dy).as_slice().to_vec();
    lengths[axis] = 1;
    let mut starts = vec![0; lengths.len()];
    for position in 0..visit.operands.len() {
        if pass.needs_cotangent(visit, position) {
            starts[axis] = position;
            let strides = vec![1; lengths.len()].into();
            let part = builder::slice(pass.graph, dy, &starts, lengths.clone().into(), strides)?;
            let shape = pass.graph.shape(visit.operands[position]).clone();
            let part = builder::reshape(pass.graph, part, shape)?;
            pass.add_cotangent(visit, position, part)?;
        }
    }
    Ok(())
}

/// Returns the padding that inverts a strided slice and fills the other elements with zeros:
/// element `j` of `count` is moved to `start + j stride` of an axis of `size`.
pub(super) fn put_back(start: i64, count: usize, stride: usize, size: usize) -> Padding {
    let high = to_i64(size) - start - to_i64(dilated_size(count, stride));
    Padding { low: start, high, interior: stride - 1 }
}
