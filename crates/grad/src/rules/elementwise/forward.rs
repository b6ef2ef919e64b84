//! Tangents of element-wise ops. Operands without a tangent contribute nothing. A tangent with
//! fewer axes than the result is broadcast at the end, by the caller of all rules.

use nxla_expr::{BinaryOp, ExprId, Graph, UnaryOp};

use super::{Build, Mode};
use crate::builder::{add_optional, scalar};
use crate::error::Result;
use crate::forward::JvpStep;

/// Returns the tangent of a unary op by the rule that reverse mode uses too.
pub(in crate::rules) fn unary_tangent(
    step: &mut JvpStep<'_>,
    op: UnaryOp,
) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    let (x, y) = (step.x(0)?, step.y()?);
    super::unary_part(step.graph, op, Mode::Forward, dx, (x, y))
}

/// Returns the tangent of a binary op by the rules that reverse mode uses too.
pub(in crate::rules) fn binary_tangent(
    step: &mut JvpStep<'_>,
    op: BinaryOp,
) -> Result<Option<ExprId>> {
    super::check_quotient(step.graph, step.node, op)?;
    let operands = [step.x(0)?, step.x(1)?];
    let y = step.y()?;
    sum_parts(step, 2, |graph, position, d| {
        super::binary_part(graph, op, Mode::Forward, (position, d), (operands, y))
    })
}

/// Returns the sum of the parts of a tangent, one for each operand that has a tangent.
fn sum_parts(
    step: &mut JvpStep<'_>,
    count: usize,
    part: impl Fn(&mut Graph, usize, ExprId) -> Result<Option<ExprId>>,
) -> Result<Option<ExprId>> {
    let mut total = None;
    for position in 0..count {
        if let Some(d) = step.dx(position) {
            let part = part(step.graph, position, d)?;
            total = add_optional(step.graph, total, part)?;
        }
    }
    Ok(total)
}

/// Returns a tangent, or the constant 0 in the dtype of the other one.
fn or_zero(graph: &mut Graph, own: Option<ExprId>, other: Option<ExprId>) -> Build {
    match (own, other) {
        (Some(own), _) => Ok(own),
        (None, Some(other)) => scalar(graph, 0.0, graph.dtype(other)),
        (None, None) => unreachable!("rules run where an operand changes"),
    }
}

/// Selects the tangent of the selected branch.
pub(in crate::rules) fn select_tangent(step: &mut JvpStep<'_>) -> Result<Option<ExprId>> {
    let predicate = step.x(0)?;
    let (da, db) = (step.dx(1), step.dx(2));
    let (da, db) = (or_zero(step.graph, da, db)?, or_zero(step.graph, db, da)?);
    Ok(Some(step.graph.select(predicate, da, db)?))
}

/// Returns the tangent of `clip` by the rule that reverse mode uses too.
pub(in crate::rules) fn clip_tangent(step: &mut JvpStep<'_>) -> Result<Option<ExprId>> {
    let operands = [step.x(0)?, step.x(1)?, step.x(2)?];
    sum_parts(step, 3, |graph, position, d| {
        Ok(Some(super::clip_part(graph, position, d, operands)?))
    })
}

/// `as_type` and `bitcast`: the tangent is passed on and cast to the dtype of the result.
pub(in crate::rules) fn convert_tangent(step: &JvpStep<'_>) -> Option<ExprId> {
    step.dx(0)
}
