//! Tangents of Fourier transforms, triangular solves and the Cholesky factorization. The
//! reverse-mode rules name the sources.

use nxla_expr::{ExprId, Fft, Graph, Op, Transform, TriangularSolve};

use super::{hermitian_part, matmul, matrix_shape, strict_triangle, swap_last, triangle};
use crate::builder::{reshape, scale, select_or_zero};
use crate::error::Result;
use crate::forward::JvpStep;

/// The transform is linear.
pub(in crate::rules) fn fft_tangent(
    step: &mut JvpStep<'_>,
    attributes: Fft,
) -> Result<Option<ExprId>> {
    let dx = step.dx(0);
    Ok(dx.map(|dx| step.graph.make(Op::Fft(attributes), &[dx])).transpose()?)
}

/// With `t` for the transformed `a`: `t x = b` has the tangent `t dx = db - dt x`, and `x t = b`
/// has `dx t = db - x dt`. Only the triangle of `da` that is read contributes.
pub(in crate::rules) fn triangular_solve_tangent(
    step: &mut JvpStep<'_>,
    attributes: TriangularSolve,
) -> Result<Option<ExprId>> {
    let (da, db) = (step.dx(0), step.dx(1));
    let (a, x) = (step.x(0)?, step.y()?);
    let graph = &mut *step.graph;
    let mut right_side = db;
    if let Some(da) = da {
        let drawn = multiply_triangle(graph, attributes, da, x)?;
        right_side = Some(match db {
            Some(db) => graph.subtract(db, drawn)?,
            None => graph.negate(drawn)?,
        });
    }
    let solve = Op::TriangularSolve(attributes);
    Ok(right_side.map(|side| graph.make(solve, &[a, side])).transpose()?)
}

/// Computes `dt x`, or `x dt`, in the shape of `x`.
fn multiply_triangle(
    graph: &mut Graph,
    attributes: TriangularSolve,
    da: ExprId,
    x: ExprId,
) -> Result<ExprId> {
    let batch = graph.shape(da).rank() - 2;
    let mask = triangle(graph, graph.shape(da)[batch], attributes.lower)?;
    let da = select_or_zero(graph, mask, da)?;
    let dt = match attributes.transform {
        Transform::None => da,
        Transform::Transpose => swap_last(graph, da, batch)?,
        Transform::Conjugate => graph.conjugate_complex(da)?,
    };
    let shape = graph.shape(x).clone();
    let x = reshape(graph, x, matrix_shape(&shape, batch, attributes.left_side))?;
    let product = if attributes.left_side {
        matmul(graph, (dt, batch + 1), (x, batch), batch)?
    } else {
        matmul(graph, (x, batch + 1), (dt, batch), batch)?
    };
    Ok(reshape(graph, product, shape)?)
}

/// With `P(m)` the lower triangle of `m` with half of its diagonal, `dl = l P(l^-1 da l^-H)`.
pub(in crate::rules) fn cholesky_tangent(step: &mut JvpStep<'_>) -> Result<Option<ExprId>> {
    let Some(da) = step.dx(0) else { return Ok(None) };
    let l = step.y()?;
    let graph = &mut *step.graph;
    let batch = graph.shape(l).rank() - 2;
    let da = hermitian_part(graph, da, batch)?;
    let left = TriangularSolve { lower: true, left_side: true, transform: Transform::None };
    let inner = graph.make(Op::TriangularSolve(left), &[l, da])?;
    let conjugate = graph.conjugate_complex(l)?;
    let right = TriangularSolve { lower: true, left_side: false, transform: Transform::Transpose };
    let inner = graph.make(Op::TriangularSolve(right), &[conjugate, inner])?;
    let side = graph.shape(l)[batch];
    let halved = scale(graph, inner, 0.5)?;
    let strict = strict_triangle(graph, side)?;
    let inner = graph.select(strict, inner, halved)?;
    let lower = triangle(graph, side, true)?;
    let inner = select_or_zero(graph, lower, inner)?;
    Ok(Some(matmul(graph, (l, batch + 1), (inner, batch), batch)?))
}
