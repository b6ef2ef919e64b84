//! Derivatives of Fourier transforms and matrix factorisations, batched over leading axes.
//!
//! The formulas for matrices are those of M. Giles, "An extended collection of matrix derivative
//! results for forward and reverse mode automatic differentiation" (2008), and for Cholesky of
//! I. Murray, "Differentiation of the Cholesky decomposition" (2016). They are written with
//! transposes instead of conjugate transposes, which is what `df = Re(c dz)` asks for.

mod factorize;
mod forward;

use nxla_expr::{Axes, Dot, ExprId, Fft, Graph, Iota, Op, Padding, TensorType};
use nxla_expr::{Transform, TriangularSolve};
use nxla_tensor::{DType, Shape};

use crate::emit::{keep_where, pad_zeros, reshape, scale, signed, transpose};
use crate::error::Result;
use crate::sweep::{Sweep, Visit};

pub(super) use factorize::{factorize, factorize_tangents};
pub(super) use forward::{cholesky_tangent, fft_tangent, triangular_solve_tangent};

/// The matrix of the transform is symmetric, so it is its own adjoint. The input was cut or
/// padded along the transformed axis, and the cotangent is padded or cut back.
pub(super) fn fft(sweep: &mut Sweep<'_>, visit: &Visit, attributes: Fft) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let graph = &mut *sweep.graph;
    let shape = graph.shape(visit.operands[0]).clone();
    let transformed = graph.make(Op::Fft(attributes), &[dy])?;
    let mut padding = vec![Padding { low: 0, high: 0, interior: 0 }; shape.rank()];
    padding[attributes.axis].high = signed(shape[attributes.axis]) - signed(attributes.length);
    let dx = pad_zeros(graph, transformed, &padding)?;
    sweep.give(visit, 0, dx)
}

/// With `t` for the transformed `a`: from `t x = b` follows `t dx = db - dt x`, so
/// `db = t^-T dy` and `dt = -db x^T`. From `x t = b`, `db = dy t^-T` and `dt = -x^T db`.
/// Only the triangle of `a` that is read gets a cotangent.
pub(super) fn triangular_solve(
    sweep: &mut Sweep<'_>,
    visit: &Visit,
    attributes: TriangularSolve,
) -> Result<()> {
    let (dy, x) = (sweep.dy(visit)?, sweep.answer(visit)?);
    let a = sweep.operand(visit, 0)?;
    let graph = &mut *sweep.graph;
    let batch = graph.shape(a).rank() - 2;
    let is_vector = graph.shape(x).rank() == batch + 1;
    let b_shape = graph.shape(x).clone();

    let (matrix, transform) = match attributes.transform {
        Transform::None => (a, Transform::Transpose),
        Transform::Transpose => (a, Transform::None),
        Transform::Conjugate => (graph.conjugate(a)?, Transform::Transpose),
    };
    let solve = Op::TriangularSolve(TriangularSolve { transform, ..attributes });
    let db = graph.make(solve, &[matrix, dy])?;
    sweep.give(visit, 1, db)?;
    if !sweep.wants(visit, 0) {
        return Ok(());
    }

    let graph = &mut *sweep.graph;
    let mut as_matrix = b_shape.clone();
    if is_vector {
        // A column where `a` is on the left, a row where it is on the right.
        as_matrix.insert(if attributes.left_side { batch + 1 } else { batch }, 1);
    }
    let db = reshape(graph, db, as_matrix.clone())?;
    let x = reshape(graph, x, as_matrix)?;
    // The rows of `dt` belong to `t`: db x^T, or x^T db.
    let outer = if attributes.left_side {
        matmul(graph, (db, batch + 1), (x, batch + 1), batch)?
    } else {
        matmul(graph, (x, batch), (db, batch), batch)?
    };
    let outer = match attributes.transform {
        Transform::None => outer,
        Transform::Transpose => swap_last(graph, outer, batch)?,
        Transform::Conjugate => graph.conjugate(outer)?,
    };
    let outer = graph.negate(outer)?;
    let mask = triangle(graph, graph.shape(a)[batch], attributes.lower)?;
    let da = keep_where(graph, mask, outer)?;
    sweep.give(visit, 0, da)
}

/// With `P(m)` the lower triangle of `m` with half of its diagonal, `dl = l P(l^-1 da l^-H)`.
/// Its adjoint in the convention above is `da = l^-T P(l^T dy) conj(l)^-1`. Of a change of `a` only
/// the Hermitian part counts, so the cotangent is made Hermitian.
pub(super) fn cholesky(sweep: &mut Sweep<'_>, visit: &Visit) -> Result<()> {
    let (dy, l) = (sweep.dy(visit)?, sweep.answer(visit)?);
    let graph = &mut *sweep.graph;
    let shape = graph.shape(l).clone();
    let batch = shape.rank() - 2;
    let lower = triangle(graph, shape[batch], true)?;
    let dy = keep_where(graph, lower, dy)?;
    let product = matmul(graph, (l, batch), (dy, batch), batch)?;
    let halved = scale(graph, product, 0.5)?;
    let strict = strict_triangle(graph, shape[batch])?;
    let product = graph.select(strict, product, halved)?;
    let product = keep_where(graph, lower, product)?;

    let left = TriangularSolve { lower: true, left_side: true, transform: Transform::Transpose };
    let inner = graph.make(Op::TriangularSolve(left), &[l, product])?;
    let conjugate = if graph.dtype(l).is_complex() { graph.conjugate(l)? } else { l };
    let right = TriangularSolve { lower: true, left_side: false, transform: Transform::None };
    let da = graph.make(Op::TriangularSolve(right), &[conjugate, inner])?;
    let da = hermitian_part(graph, da, batch)?;
    sweep.give(visit, 0, da)
}

/// The mean of a matrix and its conjugate transpose.
fn hermitian_part(graph: &mut Graph, x: ExprId, batch: usize) -> nxla_expr::Result<ExprId> {
    let mirrored = swap_last(graph, x, batch)?;
    let mirrored = if graph.dtype(x).is_complex() { graph.conjugate(mirrored)? } else { mirrored };
    let sum = graph.add(x, mirrored)?;
    scale(graph, sum, 0.5)
}

/// The batched product of two matrices over one axis of each.
fn matmul(
    graph: &mut Graph,
    (left, left_axis): (ExprId, usize),
    (right, right_axis): (ExprId, usize),
    batch: usize,
) -> nxla_expr::Result<ExprId> {
    let batch: Axes = (0..batch).collect();
    let dot = Dot {
        left_contract: [left_axis].into(),
        left_batch: batch.clone(),
        right_contract: [right_axis].into(),
        right_batch: batch,
    };
    graph.make(Op::Dot(Box::new(dot)), &[left, right])
}

/// A mask of the lower or upper triangle of a square matrix, diagonal included.
fn triangle(graph: &mut Graph, size: usize, lower: bool) -> Result<ExprId> {
    let (row, column) = rows_and_columns(graph, size)?;
    Ok(if lower { graph.greater_equal(row, column)? } else { graph.less_equal(row, column)? })
}

/// A mask of the part below the diagonal.
fn strict_triangle(graph: &mut Graph, size: usize) -> Result<ExprId> {
    let (row, column) = rows_and_columns(graph, size)?;
    Ok(graph.greater(row, column)?)
}

fn rows_and_columns(graph: &mut Graph, size: usize) -> Result<(ExprId, ExprId)> {
    let mut count = |axis| {
        let ty = TensorType::new(DType::S32, Shape::from([size, size]));
        graph.make(Op::Iota(Box::new(Iota { axis: Some(axis), ty })), &[])
    };
    Ok((count(0)?, count(1)?))
}

/// The last two axes exchanged.
fn swap_last(graph: &mut Graph, x: ExprId, batch: usize) -> nxla_expr::Result<ExprId> {
    let axes = (0..batch).chain([batch + 1, batch]).collect();
    transpose(graph, x, axes)
}
