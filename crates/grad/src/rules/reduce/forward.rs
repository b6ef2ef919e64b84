//! How reductions change.

use nxla_expr::{BinaryOp, ExprId, Reduce, ReduceOp};

use super::{Group, Product};
use crate::emit::{keep_where, reduced_axes, reshape, sum};
use crate::error::Result;
use crate::push::{Dual, Step, push};

/// The rule of each uniform reduction.
pub(in crate::rules) fn reduce_tangent(
    step: &mut Step<'_>,
    op: ReduceOp,
    attributes: &Reduce,
) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    let x = step.x(0)?;
    let shape = step.graph.shape(x).clone();
    let axes = reduced_axes(attributes, shape.rank());
    let group = Group { shape: &shape, axes: &axes };
    let reduced = match op {
        ReduceOp::Sum => sum(step.graph, dx, axes.clone())?,
        ReduceOp::Product if shape.size() == 0 => return Ok(None),
        ReduceOp::Product => {
            let product = Product::new(step.graph, x, &axes, step.node)?;
            let x = Dual { value: x, tangent: Some(dx) };
            return Ok(push(step.graph, &product.program, &[x], &[true])?[0].tangent);
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

/// The mean change of the elements equal to the extremum.
fn extremum(
    step: &mut Step<'_>,
    group: &Group<'_>,
    dx: ExprId,
    (x, y): (ExprId, ExprId),
) -> Result<ExprId> {
    let graph = &mut *step.graph;
    let best = group.spread(graph, y)?;
    let wins = graph.binary(BinaryOp::Equal, x, best)?;
    let count = group.count(graph, wins, graph.dtype(dx))?;
    let changes = keep_where(graph, wins, dx)?;
    let total = sum(graph, changes, group.axes.into())?;
    Ok(graph.divide(total, count)?)
}
