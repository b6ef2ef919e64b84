//! LU factorization by Gaussian elimination with row exchanges, column by column.

use nxla_tensor::DType;

use super::parts::{positions, repeat};
use crate::build::{Formula, SliceStart};
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
    let formula = Formula::new(graph);
    let [rows, step, column] = formula.terms([rows, step, column]);
    let size = rows.greater_equal(step).select(column.abs(), -1.0);
    let pivot = size.apply(|graph, size| graph.argmax(size, Some(1), true, false, DType::S32));
    let places = rows.equal(pivot).select(step, rows);
    let places = rows.equal(step).select(pivot, places).id()?;
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
    let formula = Formula::new(graph);
    let [a, row, column, pivot] = formula.terms([a, row, column, pivot]);
    let [rows, columns, step] = formula.terms([rows, columns, step]);
    let (zero, below) = (a.zero(), rows.greater(step));
    let factors = below.select(column / pivot.equal(zero).select(pivot.one(), pivot), zero);
    let rest = a - factors * columns.greater(step).select(row, zero);
    (columns.equal(step) & below).select(factors, rest).id()
}
