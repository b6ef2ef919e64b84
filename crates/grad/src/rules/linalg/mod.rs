//! Derivatives of Fourier transforms and matrix factorizations, batched over leading axes.
//!
//! Sources of the matrix formulas: M. Giles, "An extended collection of matrix derivative results
//! for forward and reverse mode automatic differentiation" (2008), and for Cholesky I. Murray,
//! "Differentiation of the Cholesky decomposition" (2016). The convention `df = Re(c dz)` replaces
//! conjugate transposes by transposes.

mod factorize;
mod forward;

use nxla_expr::{Axes, Dot, ExprId, Fft, Graph, Iota, Op, Padding, TensorType};
use nxla_expr::{Transform, TriangularSolve};
use nxla_tensor::{DType, Shape, to_i64};

use crate::builder::{pad_zeros, reshape, scale, select_or_zero, transpose};
use crate::error::Result;
use crate::reverse::{ReversePass, Visit};

pub(super) use factorize::{factorize, factorize_tangents};
pub(super) use forward::{cholesky_tangent, fft_tangent, triangular_solve_tangent};

/// The matrix of the transform is symmetric, so the transform is its own adjoint. If the input was
/// cut or padded along the transformed axis, the cotangent is padded or cut.
pub(super) fn fft(pass: &mut ReversePass<'_>, visit: &Visit, attributes: Fft) -> Result<()> {
    let dy = pass.dy(visit)?;
    let graph = &mut *pass.graph;
    let shape = graph.shape(visit.operands[0]).clone();
    let transformed = graph.make(Op::Fft(attributes), &[dy])?;
    let mut padding = vec![Padding::NONE; shape.rank()];
    padding[attributes.axis].high = to_i64(shape[attributes.axis]) - to_i64(attributes.length);
    let dx = pad_zeros(graph, transformed, &padding)?;
    pass.add_cotangent(visit, 0, dx)
}

/// With `t` for the transformed `a`: `t x = b` implies `t dx = db - dt x`, so `db = t^-T dy` and
/// `dt = -db x^T`. For `x t = b`, `db = dy t^-T` and `dt = -x^T db`. Only the triangle of `a` that
/// is read receives a cotangent.
pub(super) fn triangular_solve(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    attributes: TriangularSolve,
) -> Result<()> {
    let (dy, x) = (pass.dy(visit)?, pass.result(visit)?);
    let a = pass.operand(visit, 0)?;
    let graph = &mut *pass.graph;
    let batch = graph.shape(a).rank() - 2;
    let (matrix, transform) = match attributes.transform {
        Transform::None => (a, Transform::Transpose),
        Transform::Transpose => (a, Transform::None),
        Transform::Conjugate => (graph.conjugate(a)?, Transform::Transpose),
    };
    let solve = Op::TriangularSolve(TriangularSolve { transform, ..attributes });
    let db = graph.make(solve, &[matrix, dy])?;
    pass.add_cotangent(visit, 1, db)?;
    if !pass.needs_cotangent(visit, 0) {
        return Ok(());
    }

    let graph = &mut *pass.graph;
    let as_matrix = matrix_shape(graph.shape(x), batch, attributes.left_side);
    let db = reshape(graph, db, as_matrix.clone())?;
    let x = reshape(graph, x, as_matrix)?;
    // The rows of `dt` are the rows of `t`: `db x^T` or `x^T db`.
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
    let da = select_or_zero(graph, mask, outer)?;
    pass.add_cotangent(visit, 0, da)
}

/// With `P(m)` the lower triangle of `m` with half of its diagonal, `dl = l P(l^-1 da l^-H)`. The
/// adjoint in the convention above is `da = l^-T P(l^T dy) conj(l)^-1`. Only the Hermitian part of
/// `da` contributes, so the cotangent is made Hermitian.
pub(super) fn cholesky(pass: &mut ReversePass<'_>, visit: &Visit) -> Result<()> {
    let (dy, l) = (pass.dy(visit)?, pass.result(visit)?);
    let graph = &mut *pass.graph;
    let shape = graph.shape(l).clone();
    let batch = shape.rank() - 2;
    let lower = triangle(graph, shape[batch], true)?;
    let dy = select_or_zero(graph, lower, dy)?;
    let product = matmul(graph, (l, batch), (dy, batch), batch)?;
    let halved = scale(graph, product, 0.5)?;
    let strict = strict_triangle(graph, shape[batch])?;
    let product = graph.select(strict, product, halved)?;
    let product = select_or_zero(graph, lower, product)?;

    let left = TriangularSolve { lower: true, left_side: true, transform: Transform::Transpose };
    let inner = graph.make(Op::TriangularSolve(left), &[l, product])?;
    let conjugate = graph.conjugate_complex(l)?;
    let right = TriangularSolve { lower: true, left_side: false, transform: Transform::None };
    let da = graph.make(Op::TriangularSolve(right), &[conjugate, inner])?;
    let da = hermitian_part(graph, da, batch)?;
    pass.add_cotangent(visit, 0, da)
}

/// Returns the shape of the solutions as matrices. A vector is a column if the triangle is on its
/// left, and a row if it is on its right.
fn matrix_shape(solutions: &Shape, batch: usize, left_side: bool) -> Shape {
    let mut shape = solutions.clone();
    if shape.rank() == batch + 1 {
        shape.insert(if left_side { batch + 1 } else { batch }, 1);
    }
    shape
}

/// Returns the mean of a matrix and its conjugate transpose.
fn hermitian_part(graph: &mut Graph, x: ExprId, batch: usize) -> nxla_expr::Result<ExprId> {
    let mirrored = swap_last(graph, x, batch)?;
    let mirrored = graph.conjugate_complex(mirrored)?;
    let sum = graph.add(x, mirrored)?;
    scale(graph, sum, 0.5)
}

/// Multiplies batched matrices over one axis of each.
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

/// Returns a mask of the lower or upper triangle of a square matrix, including the diagonal.
fn triangle(graph: &mut Graph, size: usize, lower: bool) -> Result<ExprId> {
    let (row, column) = rows_and_columns(graph, size)?;
    Ok(if lower { graph.greater_equal(row, column)? } else { graph.less_equal(row, column)? })
}

/// Returns a mask of the elements below the diagonal.
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

/// Exchanges the last two axes.
fn swap_last(graph: &mut Graph, x: ExprId, batch: usize) -> nxla_expr::Result<ExprId> {
    let axes = (0..batch).chain([batch + 1, batch]).collect();
    transpose(graph, x, axes)
}
