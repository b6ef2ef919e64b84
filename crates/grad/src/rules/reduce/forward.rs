//! Tangents of reductions.

use nxla_expr::{BinaryOp, ExprId, Reduce, ReduceOp};

use super::{Group, ProductTree};
use crate::builder::{reshape, select_or_zero, sum};
use crate::error::Result;
use crate::forward::{Dual, JvpStep, jvp_program};

/// Returns the tangent of a reduction.
pub(in crate::rules) fn reduce_tangent(
    step: &mut JvpStep<'_>,
    op: ReduceOp,
    attributes: &Reduce,
) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    let x = step.x(0)?;
    let shape = step.graph.shape(x).clone();
    if shape.size() == 0 {
        // The extremum of nothing would divide by the number of its elements.
        return Ok(None);
    }
    let axes = attributes.axes_of(shape.rank());
    let group = Group { shape: &shape, axes: &axes };
    let reduced = match op {
        ReduceOp::Sum => sum(step.graph, dx, axes.clone())?,
        ReduceOp::Product => {
            let product = ProductTree::new(step.graph, x, &axes, step.node)?;
            let x = Dual { value: x, tangent: Some(dx) };
            return Ok(jvp_program(step.graph, &product.program, &[x], &[true])?[0].tangent);
        }
        ReduceOp::Max | ReduceOp::Min => {
            let y = step.y()?;
            extremum(step, &group, dx, (x, y))?
        }
        ReduceOp::All | ReduceOp::Any => return Ok(None),
    };
    let shape = step.graph.shape(step.node).clone();
    Ok(Some(reshape(step.graph, reduced, shape)?))
}

/// Returns the mean tangent of the elements that equal the extremum.
fn extremum(
    step: &mut JvpStep<'_>,
    group: &Group<'_>,
    dx: ExprId,
    (x, y): (ExprId, ExprId),
) -> Result<ExprId> {
    let graph = &mut *step.graph;
    let best = group.spread(graph, y)?;
    let wins = graph.binary(BinaryOp::Equal, x, best)?;
    let count = group.count(graph, wins, graph.dtype(dx))?;
    let changes = select_or_zero(graph, wins, dx)?;
    let total = sum(graph, changes, group.axes.into())?;
    Ok(graph.divide(total, count)?)
}
