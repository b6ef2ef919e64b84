//! Tangents of contractions. They are bilinear: the tangent is the sum of the products in which one
//! operand is replaced by its tangent.

use nxla_expr::{ExprId, Op};

use crate::builder::add_optional;
use crate::error::Result;
use crate::forward::JvpStep;

/// `dot` and `conv`.
pub(in crate::rules) fn bilinear_tangent(
    step: &mut JvpStep<'_>,
    op: &Op,
) -> Result<Option<ExprId>> {
    let (left, right) = (step.x(0)?, step.x(1)?);
    let (dleft, dright) = (step.dx(0), step.dx(1));
    let graph = &mut *step.graph;
    let first = dleft.map(|dleft| graph.make(op.clone(), &[dleft, right])).transpose()?;
    let second = dright.map(|dright| graph.make(op.clone(), &[left, dright])).transpose()?;
    Ok(add_optional(graph, first, second)?)
}
