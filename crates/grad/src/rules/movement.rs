//! Derivatives of ops that move elements: the cotangent is moved back. Where elements were
//! repeated their cotangents add up, and where they were dropped there is zero.

mod forward;

use nxla_expr::{Axes, Broadcast, Padding};
use nxla_tensor::{DType, Scalar};

use crate::emit::{self, inverse, keep_where, pad_zeros, signed, spread, sum, total};
use crate::error::Result;
use crate::sweep::{Sweep, Visit};

pub(super) use forward::{
    broadcast_tangent, concatenate_tangent, pad_tangent, reshape_tangent, same_tangent,
    stack_tangent,
};

/// `reshape` and `squeeze`.
pub(super) fn reshape(sweep: &mut Sweep<'_>, visit: &Visit) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let shape = sweep.graph.shape(visit.operands[0]).clone();
    let dx = emit::reshape(sweep.graph, dy, shape)?;
    sweep.give(visit, 0, dx)
}

pub(super) fn transpose(sweep: &mut Sweep<'_>, visit: &Visit, permutation: &[usize]) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let dx = emit::transpose(sweep.graph, dy, inverse(permutation))?;
    sweep.give(visit, 0, dx)
}

pub(super) fn reverse(sweep: &mut Sweep<'_>, visit: &Visit, axes: &Axes) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let dx = sweep.graph.make(nxla_expr::Op::Reverse(axes.clone()), &[dy])?;
    sweep.give(visit, 0, dx)
}

/// The copies of an element add up.
pub(super) fn broadcast(
    sweep: &mut Sweep<'_>,
    visit: &Visit,
    attributes: &Broadcast,
) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let from = sweep.graph.shape(visit.operands[0]).clone();
    let to = &attributes.shape;
    let kept = |axis: usize| {
        attributes.axes.iter().position(|&kept| kept == axis).is_some_and(|at| from[at] == to[axis])
    };
    let repeated: Axes = (0..to.rank()).filter(|&axis| !kept(axis)).collect();
    let summed = sum(sweep.graph, dy, repeated)?;
    let dx = emit::reshape(sweep.graph, summed, from)?;
    sweep.give(visit, 0, dx)
}

/// Element `i` of an axis went to `low + i (interior + 1)`: trimming the margins and taking every
/// `interior + 1`-th element brings it back. The margin value gets everything else.
pub(super) fn pad(sweep: &mut Sweep<'_>, visit: &Visit, padding: &[Padding]) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let shape = sweep.graph.shape(visit.operands[0]).clone();
    if sweep.wants(visit, 0) && shape.size() > 0 {
        let margins: Vec<Padding> = padding
            .iter()
            .map(|axis| Padding { low: -axis.low, high: -axis.high, interior: 0 })
            .collect();
        let trimmed = pad_zeros(sweep.graph, dy, &margins)?;
        let strides: Axes = padding.iter().map(|axis| axis.interior + 1).collect();
        let dx = if strides.iter().all(|&stride| stride == 1) {
            trimmed
        } else {
            let lengths =
                shape.iter().zip(&strides).map(|(&size, &stride)| spread(size, stride)).collect();
            emit::slice(sweep.graph, trimmed, &vec![0; shape.rank()], lengths, strides)?
        };
        sweep.give(visit, 0, dx)?;
    }
    if sweep.wants(visit, 1) {
        // A mask, because the sum of all less the sum of the inside would cancel.
        let graph = &mut *sweep.graph;
        let zero = graph
            .constant(Scalar::zero(DType::Pred), nxla_expr::TensorType::new(DType::Pred, shape))?;
        let one = graph.scalar_constant(Scalar::one(DType::Pred), DType::Pred)?;
        let outside = graph.make(nxla_expr::Op::Pad(padding.into()), &[zero, one])?;
        let outside = keep_where(graph, outside, dy)?;
        let value = total(graph, outside)?;
        sweep.give(visit, 1, value)?;
    }
    Ok(())
}

/// Each part gets its range of the cotangent.
pub(super) fn concatenate(sweep: &mut Sweep<'_>, visit: &Visit, axis: usize) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let mut starts = vec![0; sweep.graph.shape(dy).rank()];
    for position in 0..visit.operands.len() {
        let shape = sweep.graph.shape(visit.operands[position]).clone();
        if sweep.wants(visit, position) {
            let (lengths, strides) = (shape.as_slice().into(), vec![1; shape.rank()].into());
            let part = emit::slice(sweep.graph, dy, &starts, lengths, strides)?;
            sweep.give(visit, position, part)?;
        }
        starts[axis] += shape[axis];
    }
    Ok(())
}

/// Each part gets its index of the cotangent.
pub(super) fn stack(sweep: &mut Sweep<'_>, visit: &Visit, axis: usize) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let mut lengths = sweep.graph.shape(dy).as_slice().to_vec();
    lengths[axis] = 1;
    let mut starts = vec![0; lengths.len()];
    for position in 0..visit.operands.len() {
        if sweep.wants(visit, position) {
            starts[axis] = position;
            let strides = vec![1; lengths.len()].into();
            let part = emit::slice(sweep.graph, dy, &starts, lengths.clone().into(), strides)?;
            let shape = sweep.graph.shape(visit.operands[position]).clone();
            let part = emit::reshape(sweep.graph, part, shape)?;
            sweep.give(visit, position, part)?;
        }
    }
    Ok(())
}

/// Padding that puts a strided range back where it came from, with zeros elsewhere: element `j`
/// of `count` goes to `start + j stride` of an axis of `size`.
pub(super) fn put_back(start: i64, count: usize, stride: usize, size: usize) -> Padding {
    let high = signed(size) - start - signed(spread(count, stride));
    Padding { low: start, high, interior: stride - 1 }
}
