//! LU factorization by Gaussian elimination with row exchanges, column by column.

use nxla_tensor::DType;

use super::parts::{number, positions, repeat};
use crate::build::SliceStart;
use crate::graph::{ExprId, Graph, Result};

/// Returns the factors of `[batch][n][n]` in one matrix, and the order of the rows.
pub(super) fn lu(graph: &mut Graph, a: ExprId) -> Result<[ExprId; 2]> {
    let &[batch, side, _] = graph.shape(a).as_slice() else { unreachable!("three axes") };
    let order = graph.iota([batch, side], Some(1), DType::S32)?;
    let state = repeat(graph, side, &[a, order], |graph, step, state| {
        let (a, order) = exchange(graph, step, state[0], state[1])?;
        Ok(vec![eliminate(graph, step, a)?, order])
    })?;
    Ok([state[0], state[1]])
}

/// Exchanges row `step` with the row, from `step` on, that has the largest element in column
/// `step`.
fn exchange(graph: &mut Graph, step: ExprId, a: ExprId, order: ExprId) -> Result<(ExprId, ExprId)> {
    let shape = graph.shape(a).clone();
    let rows = positions(graph, shape[1], 1)?;
    let column = graph.slice_along_axis(a, SliceStart::Dynamic(step), 1, 2, 1)?;
    let size = graph.abs(column)?;
    let open = graph.greater_equal(rows, step)?;
    let none = number(graph, -1.0, size)?;
    let size = graph.select(open, size, none)?;
    let pivot = graph.argmax(size, Some(1), true, false, DType::S32)?;
    let is_pivot = graph.equal(rows, pivot)?;
    let is_step = graph.equal(rows, step)?;
    let places = graph.select(is_pivot, step, rows)?;
    let places = graph.select(is_step, pivot, places)?;
    let everywhere = graph.broadcast(places, shape.clone(), None)?;
    let a = graph.take_along_axis(a, everywhere, 1)?;
    let places = graph.reshape(places, [shape[0], shape[1]])?;
    let order = graph.take_along_axis(order, places, 1)?;
    Ok((a, order))
}

/// Subtracts multiples of row `step` from the rows below, and stores the multiples in the
/// eliminated column. A column without a pivot is unchanged.
fn eliminate(graph: &mut Graph, step: ExprId, a: ExprId) -> Result<ExprId> {
    let side = graph.shape(a)[1];
    let (rows, columns) = (positions(graph, side, 1)?, positions(graph, side, 2)?);
    let row = graph.slice_along_axis(a, SliceStart::Dynamic(step), 1, 1, 1)?;
    let column = graph.slice_along_axis(a, SliceStart::Dynamic(step), 1, 2, 1)?;
    let pivot = graph.slice_along_axis(row, SliceStart::Dynamic(step), 1, 2, 1)?;
    let (zero, one) = (number(graph, 0.0, a)?, number(graph, 1.0, a)?);
    let is_zero = graph.equal(pivot, zero)?;
    let safe = graph.select(is_zero, one, pivot)?;
    let factors = graph.divide(column, safe)?;
    let below = graph.greater(rows, step)?;
    let factors = graph.select(below, factors, zero)?;
    let right = graph.greater(columns, step)?;
    let row = graph.select(right, row, zero)?;
    let taken = graph.multiply(factors, row)?;
    let rest = graph.subtract(a, taken)?;
    let is_step = graph.equal(columns, step)?;
    let cleared = graph.logical_and(is_step, below)?;
    graph.select(cleared, factors, rest)
}
