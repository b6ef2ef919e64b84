//! Tangents of element-wise ops. Operands without a tangent contribute nothing. A tangent with
//! fewer axes than the result is broadcast at the end, by the caller of all rules.

use nxla_expr::{BinaryOp, ExprId, Graph, UnaryOp};

use super::{Build, Mode, pow_base, pow_constant, pow_exponent, real_constant, remainder_divisor};
use crate::builder::{scalar, scale, select_or_zero, to_float};
use crate::error::{GradError, Result};
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

/// Returns the tangent of a binary op.
pub(in crate::rules) fn binary_tangent(
    step: &mut JvpStep<'_>,
    op: BinaryOp,
) -> Result<Option<ExprId>> {
    let (da, db) = (step.dx(0), step.dx(1));
    let (a, b) = (step.x(0)?, step.x(1)?);
    match op {
        BinaryOp::Add => add_optional(step.graph, da, db),
        BinaryOp::Subtract => {
            let db = db.map(|db| step.graph.negate(db)).transpose()?;
            add_optional(step.graph, da, db)
        }
        BinaryOp::Multiply => {
            let left = da.map(|da| step.graph.multiply(da, b)).transpose()?;
            let right = db.map(|db| step.graph.multiply(a, db)).transpose()?;
            add_optional(step.graph, left, right)
        }
        BinaryOp::Divide => divide(step, da, db, b),
        BinaryOp::Pow => pow(step, da, db, (a, b)),
        BinaryOp::Atan2 => atan2(step.graph, da, db, (a, b)),
        BinaryOp::Remainder => {
            let y = step.y()?;
            let right = db.map(|db| remainder_divisor(step.graph, db, (a, b), y)).transpose()?;
            add_optional(step.graph, da, right)
        }
        BinaryOp::Quotient => Err(GradError::no_rule(
            step.graph,
            step.node,
            "integer division has no derivative; divide instead, or mark it with stop_grad",
        )),
        BinaryOp::Max => extremum(step.graph, da, db, (a, b), BinaryOp::Greater),
        BinaryOp::Min => extremum(step.graph, da, db, (a, b), BinaryOp::Less),
        BinaryOp::Complex => {
            let (da, db) = (or_zero(step.graph, da, db)?, or_zero(step.graph, db, da)?);
            Ok(Some(step.graph.complex(da, db)?))
        }
        BinaryOp::BitwiseAnd
        | BinaryOp::BitwiseOr
        | BinaryOp::BitwiseXor
        | BinaryOp::LeftShift
        | BinaryOp::RightShift
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Greater
        | BinaryOp::Less
        | BinaryOp::GreaterEqual
        | BinaryOp::LessEqual
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor => Ok(None),
    }
}

/// Adds two tangents that may be missing.
fn add_optional(graph: &mut Graph, a: Option<ExprId>, b: Option<ExprId>) -> Result<Option<ExprId>> {
    Ok(match (a, b) {
        (Some(a), Some(b)) => Some(graph.add(a, b)?),
        (one, other) => one.or(other),
    })
}

/// Returns a tangent, or the constant 0 in the dtype of the other one.
fn or_zero(graph: &mut Graph, own: Option<ExprId>, other: Option<ExprId>) -> Build {
    match (own, other) {
        (Some(own), _) => Ok(own),
        (None, Some(other)) => scalar(graph, 0.0, graph.dtype(other)),
        (None, None) => unreachable!("rules run where an operand changes"),
    }
}

/// `d(a/b) = (da - y db) / b`.
fn divide(
    step: &mut JvpStep<'_>,
    da: Option<ExprId>,
    db: Option<ExprId>,
    b: ExprId,
) -> Result<Option<ExprId>> {
    let y = step.y()?;
    let graph = &mut *step.graph;
    let part = match db {
        None => da,
        Some(db) => {
            let drawn = graph.multiply(y, db)?;
            Some(match da {
                Some(da) => graph.subtract(da, drawn)?,
                None => graph.negate(drawn)?,
            })
        }
    };
    Ok(part.map(|part| graph.divide(part, b)).transpose()?)
}

/// `d(a^b) = b a^(b-1) da + log(a) y db`.
fn pow(
    step: &mut JvpStep<'_>,
    da: Option<ExprId>,
    db: Option<ExprId>,
    (a, b): (ExprId, ExprId),
) -> Result<Option<ExprId>> {
    let y = step.y()?;
    let graph = &mut *step.graph;
    let left = match (da, real_constant(graph, b)) {
        (None, _) | (_, Some(0.0)) => None,
        (Some(da), Some(exponent)) => Some(pow_constant(graph, da, a, exponent)?),
        (Some(da), None) => Some(pow_base(graph, da, a, b)?),
    };
    let right = db.map(|db| pow_exponent(graph, db, a, y)).transpose()?;
    add_optional(graph, left, right)
}

/// `d atan2(a, b) = (b da - a db) / (a^2 + b^2)`.
fn atan2(
    graph: &mut Graph,
    da: Option<ExprId>,
    db: Option<ExprId>,
    (a, b): (ExprId, ExprId),
) -> Result<Option<ExprId>> {
    let (a, b) = (to_float(graph, a)?, to_float(graph, b)?);
    let (a2, b2) = (graph.multiply(a, a)?, graph.multiply(b, b)?);
    let norm = graph.add(a2, b2)?;
    let left = da.map(|da| graph.multiply(b, da)).transpose()?;
    let right = match db {
        Some(db) => {
            let product = graph.multiply(a, db)?;
            Some(graph.negate(product)?)
        }
        None => None,
    };
    let part = add_optional(graph, left, right)?;
    Ok(part.map(|part| graph.divide(part, norm)).transpose()?)
}

/// The tangent of the selected operand; in a tie the mean of both tangents.
fn extremum(
    graph: &mut Graph,
    da: Option<ExprId>,
    db: Option<ExprId>,
    (a, b): (ExprId, ExprId),
    wins: BinaryOp,
) -> Result<Option<ExprId>> {
    let (da, db) = (or_zero(graph, da, db)?, or_zero(graph, db, da)?);
    let (won, tied) = (graph.binary(wins, a, b)?, graph.equal(a, b)?);
    let sum = graph.add(da, db)?;
    let half = scale(graph, sum, 0.5)?;
    let rest = graph.select(tied, half, db)?;
    Ok(Some(graph.select(won, da, rest)?))
}

/// Selects the tangent of the selected branch.
pub(in crate::rules) fn select_tangent(step: &mut JvpStep<'_>) -> Result<Option<ExprId>> {
    let predicate = step.x(0)?;
    let (da, db) = (step.dx(1), step.dx(2));
    let (da, db) = (or_zero(step.graph, da, db)?, or_zero(step.graph, db, da)?);
    Ok(Some(step.graph.select(predicate, da, db)?))
}

/// `min(max(x, low), high)`: the tangent of the operand that is the result. Where `x` equals a
/// bound, it is the tangent of `x`.
pub(in crate::rules) fn clip_tangent(step: &mut JvpStep<'_>) -> Result<Option<ExprId>> {
    let (x, low, high) = (step.x(0)?, step.x(1)?, step.x(2)?);
    let (dx, dlow, dhigh) = (step.dx(0), step.dx(1), step.dx(2));
    let graph = &mut *step.graph;
    let mut total = None;
    if let Some(dx) = dx {
        let above = graph.greater_equal(x, low)?;
        let below = graph.less_equal(x, high)?;
        let inside = graph.logical_and(above, below)?;
        total = Some(select_or_zero(graph, inside, dx)?);
    }
    if let Some(dlow) = dlow {
        let under = graph.less(x, low)?;
        let ordered = graph.less_equal(low, high)?;
        let taken = graph.logical_and(under, ordered)?;
        let part = select_or_zero(graph, taken, dlow)?;
        total = add_optional(graph, total, Some(part))?;
    }
    if let Some(dhigh) = dhigh {
        let raised = graph.max(x, low)?;
        let taken = graph.greater(raised, high)?;
        let part = select_or_zero(graph, taken, dhigh)?;
        total = add_optional(graph, total, Some(part))?;
    }
    Ok(total)
}

/// `as_type` and `bitcast`: the tangent is passed on and cast to the dtype of the result.
pub(in crate::rules) fn convert_tangent(step: &JvpStep<'_>) -> Option<ExprId> {
    step.dx(0)
}
