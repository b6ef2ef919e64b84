//! How contractions change. They are linear in each operand: the change is that of one operand met
//! by the other, twice.

use nxla_expr::{ExprId, Op};

use crate::error::Result;
use crate::push::Step;

/// `dot` and `conv`.
pub(in crate::rules) fn bilinear_tangent(step: &mut Step<'_>, op: &Op) -> Result<Option<ExprId>> {
    let (left, right) = (step.x(0)?, step.x(1)?);
    let (dleft, dright) = (step.dx(0), step.dx(1));
    let graph = &mut *step.graph;
    let first = dleft.map(|dleft| graph.make(op.clone(), &[dleft, right])).transpose()?;
    let second = dright.map(|dright| graph.make(op.clone(), &[left, dright])).transpose()?;
    Ok(match (first, second) {
        (Some(first), Some(second)) => Some(graph.add(first, second)?),
        (one, other) => one.or(other),
    })
}
