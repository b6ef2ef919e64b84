//! Tangents of slices, gathers, scatters and sorts: the same op with the same indices on the
//! tangents.

use nxla_expr::{Axes, ExprId, Op, SliceAttributes, SortAttributes, Start};

use super::sorted_places;
use crate::error::Result;
use crate::forward::JvpStep;

pub(in crate::rules) fn slice_tangent(
    step: &mut JvpStep<'_>,
    attributes: &SliceAttributes,
) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    let operands: Vec<ExprId> = std::iter::once(dx).chain(step.rest(1)).collect();
    Ok(Some(step.graph.make(Op::Slice(Box::new(attributes.clone())), &operands)?))
}

/// Overwrites the tangent of the tensor with the tangent of the update.
pub(in crate::rules) fn put_slice_tangent(
    step: &mut JvpStep<'_>,
    starts: &[Start],
) -> Result<Option<ExprId>> {
    let dtype = step.tangent_dtype();
    let (dx, update) = (step.dx_or_zeros(0, dtype)?, step.dx_or_zeros(1, dtype)?);
    let operands: Vec<ExprId> = [dx, update].into_iter().chain(step.rest(2)).collect();
    Ok(Some(step.graph.make(Op::PutSlice(starts.into()), &operands)?))
}

pub(in crate::rules) fn gather_tangent(
    step: &mut JvpStep<'_>,
    axes: &Axes,
) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    let indices = step.x(1)?;
    Ok(Some(step.graph.make(Op::Gather(axes.clone()), &[dx, indices])?))
}

pub(in crate::rules) fn indexed_add_tangent(
    step: &mut JvpStep<'_>,
    axes: &Axes,
) -> Result<Option<ExprId>> {
    let Some(updates) = step.dx(2) else { return Ok(step.dx(0)) };
    let dtype = step.tangent_dtype();
    let (dx, indices) = (step.dx_or_zeros(0, dtype)?, step.x(1)?);
    Ok(Some(step.graph.make(Op::IndexedAdd(axes.clone()), &[dx, indices, updates])?))
}

/// If several updates write the same element, the backend keeps the same update in values and
/// tangents.
pub(in crate::rules) fn indexed_put_tangent(
    step: &mut JvpStep<'_>,
    axes: &Axes,
) -> Result<Option<ExprId>> {
    let dtype = step.tangent_dtype();
    let (dx, updates) = (step.dx_or_zeros(0, dtype)?, step.dx_or_zeros(2, dtype)?);
    let indices = step.x(1)?;
    Ok(Some(step.graph.make(Op::IndexedPut(axes.clone()), &[dx, indices, updates])?))
}

/// Element `j` of the sorted axis came from index `argsort[j]`, and so does its tangent.
pub(in crate::rules) fn sort_tangent(
    step: &mut JvpStep<'_>,
    attributes: SortAttributes,
) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    let x = step.x(0)?;
    let shape = step.graph.shape(x).clone();
    if shape.size() == 0 {
        return Ok(None);
    }
    let indices = sorted_places(step.graph, x, attributes)?;
    let axes: Axes = (0..shape.rank()).collect();
    Ok(Some(step.graph.make(Op::Gather(axes), &[dx, indices])?))
}
