//! How the results of ops that move elements change: the changes are moved along.

use nxla_expr::{Broadcast, ExprId, Op, Padding, Stack};

use crate::emit;
use crate::error::Result;
use crate::push::Step;

/// `reshape` and `squeeze`.
pub(in crate::rules) fn reshape_tangent(step: &mut Step<'_>) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    let shape = step.graph.shape(step.node).clone();
    Ok(Some(emit::reshape(step.graph, dx, shape)?))
}

/// `transpose` and `reverse`: the same op.
pub(in crate::rules) fn same_tangent(step: &mut Step<'_>, op: &Op) -> Result<Option<ExprId>> {
    let dx = step.dx(0);
    Ok(dx.map(|dx| step.graph.make(op.clone(), &[dx])).transpose()?)
}

pub(in crate::rules) fn broadcast_tangent(
    step: &mut Step<'_>,
    attributes: &Broadcast,
) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    let (shape, axes) = (attributes.shape.clone(), attributes.axes.clone());
    Ok(Some(emit::broadcast(step.graph, dx, shape, axes)?))
}

/// The change of the tensor surrounded by that of the margin.
pub(in crate::rules) fn pad_tangent(
    step: &mut Step<'_>,
    padding: &[Padding],
) -> Result<Option<ExprId>> {
    let dtype = step.tangent_dtype();
    let (dx, margin) = (step.dx_or_zeros(0, dtype)?, step.dx_or_zeros(1, dtype)?);
    Ok(Some(step.graph.make(Op::Pad(padding.into()), &[dx, margin])?))
}

pub(in crate::rules) fn concatenate_tangent(
    step: &mut Step<'_>,
    axis: usize,
) -> Result<Option<ExprId>> {
    let parts = all(step)?;
    Ok(Some(step.graph.make(Op::Concatenate(axis), &parts)?))
}

pub(in crate::rules) fn stack_tangent(step: &mut Step<'_>, axis: usize) -> Result<Option<ExprId>> {
    let parts = all(step)?;
    let stack = Stack { axis, name: None };
    Ok(Some(step.graph.make(Op::Stack(Box::new(stack)), &parts)?))
}

/// The changes of all operands.
fn all(step: &mut Step<'_>) -> Result<Vec<ExprId>> {
    let dtype = step.tangent_dtype();
    (0..step.count()).map(|position| step.dx_or_zeros(position, dtype)).collect()
}
