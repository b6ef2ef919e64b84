//! Tangents of movement ops: the same movement of the tangent.

use nxla_expr::{Broadcast, ExprId, Op, Padding, Stack};

use crate::builder;
use crate::error::Result;
use crate::forward::JvpStep;

/// `reshape` and `squeeze`.
pub(in crate::rules) fn reshape_tangent(step: &mut JvpStep<'_>) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    let shape = step.graph.shape(step.node).clone();
    Ok(Some(builder::reshape(step.graph, dx, shape)?))
}

/// `transpose` and `reverse`: the same op on the tangent.
pub(in crate::rules) fn same_tangent(step: &mut JvpStep<'_>, op: &Op) -> Result<Option<ExprId>> {
    let dx = step.dx(0);
    Ok(dx.map(|dx| step.graph.make(op.clone(), &[dx])).transpose()?)
}

pub(in crate::rules) fn broadcast_tangent(
    step: &mut JvpStep<'_>,
    attributes: &Broadcast,
) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    let (shape, axes) = (attributes.shape.clone(), attributes.axes.clone());
    Ok(Some(builder::broadcast(step.graph, dx, shape, axes)?))
}

/// Pads the tangent of the tensor with the tangent of the padding value.
pub(in crate::rules) fn pad_tangent(
    step: &mut JvpStep<'_>,
    padding: &[Padding],
) -> Result<Option<ExprId>> {
    let dtype = step.tangent_dtype();
    let (dx, margin) = (step.dx_or_zeros(0, dtype)?, step.dx_or_zeros(1, dtype)?);
    Ok(Some(step.graph.make(Op::Pad(padding.into()), &[dx, margin])?))
}

pub(in crate::rules) fn concatenate_tangent(
    step: &mut JvpStep<'_>,
    axis: usize,
) -> Result<Option<ExprId>> {
    let parts = all_tangents(step)?;
    Ok(Some(step.graph.make(Op::Concatenate(axis), &parts)?))
}

pub(in crate::rules) fn stack_tangent(
    step: &mut JvpStep<'_>,
    axis: usize,
) -> Result<Option<ExprId>> {
    let parts = all_tangents(step)?;
    let stack = Stack { axis, name: None };
    Ok(Some(step.graph.make(Op::Stack(Box::new(stack)), &parts)?))
}

/// Returns the tangents of all operands.
fn all_tangents(step: &mut JvpStep<'_>) -> Result<Vec<ExprId>> {
    let dtype = step.tangent_dtype();
    (0..step.count()).map(|position| step.dx_or_zeros(position, dtype)).collect()
}
