//! Helpers for decompositions: batches of matrices with three axes `[batch][rows][columns]`.

use nxla_tensor::{DType, Scalar, to_i64};

use crate::build::Term;
use crate::graph::{ExprId, Graph, Replay, Result};

/// Repeats `body` with a counter (`s32`) from 0 to `count - 1`.
pub(super) fn repeat(
    graph: &mut Graph,
    count: usize,
    initial: &[ExprId],
    body: impl FnOnce(&mut Graph, ExprId, &[ExprId]) -> Result<Vec<ExprId>>,
) -> Result<Vec<ExprId>> {
    let zero = integer(graph, 0)?;
    let count = integer(graph, count)?;
    let start: Vec<ExprId> = std::iter::once(zero).chain(initial.iter().copied()).collect();
    let going = |graph: &mut Graph, state: &[ExprId]| graph.less(state[0], count);
    let next = |graph: &mut Graph, state: &[ExprId]| {
        let one = integer(graph, 1)?;
        let results = body(graph, state[0], &state[1..])?;
        let counter = graph.add(state[0], one)?;
        Ok(std::iter::once(counter).chain(results).collect())
    };
    let mut state = graph.repeat_while(&start, Replay::default(), going, next)?;
    state.remove(0);
    Ok(state)
}

pub(super) fn integer(graph: &mut Graph, value: usize) -> Result<ExprId> {
    let value = to_i64(value);
    graph.scalar_constant(Scalar::Int(value), DType::S32)
}

/// Creates a scalar constant of the dtype of `like`.
pub(super) fn number(graph: &mut Graph, value: f64, like: ExprId) -> Result<ExprId> {
    let dtype = graph.dtype(like);
    graph.scalar_constant(Scalar::Float(value), dtype)
}

/// Returns the index of each row (axis 1) or column (axis 2), in a shape that broadcasts.
pub(super) fn positions(graph: &mut Graph, size: usize, axis: usize) -> Result<ExprId> {
    let mut shape = [1; 3];
    shape[axis] = size;
    let axis = to_i64(axis);
    graph.iota(shape, Some(axis), DType::S32)
}

/// `x y`.
pub(super) fn product(graph: &mut Graph, x: ExprId, y: ExprId) -> Result<ExprId> {
    graph.dot_general(x, &[2], &[0], y, &[1], &[0])
}

/// `x^H y`.
pub(super) fn adjoint_product(graph: &mut Graph, x: ExprId, y: ExprId) -> Result<ExprId> {
    let x = graph.conjugate_complex(x)?;
    graph.dot_general(x, &[1], &[0], y, &[1], &[0])
}

/// `x / |x|`, and 1 for 0, in the dtype of `x`.
pub(super) fn phase(x: Term<'_>) -> Term<'_> {
    let size = x.abs();
    let is_zero = size.equal(0.0);
    is_zero.select(x.one(), x / is_zero.select(1.0, size))
}

/// Returns the norm of each column, as rows of size 1 in a real dtype. Columns are first divided by
/// their largest element, which avoids overflow and underflow of the squares.
pub(super) fn lengths(x: Term<'_>) -> Term<'_> {
    let size = x.abs();
    let largest = size.apply(|graph, size| graph.reduce_max(size, Some(&[1]), true));
    let scaled = size / largest.equal(0.0).select(1.0, largest);
    (scaled * scaled).sum(Some(&[1]), true).sqrt() * largest
}

/// Returns a power of two near the largest element of each matrix, as `[batch][1][1]` in a real
/// dtype. Dividing by it is exact and avoids overflow and underflow of squares and products.
pub(super) fn scale(graph: &mut Graph, a: ExprId) -> Result<ExprId> {
    let size = graph.abs(a)?;
    let largest = graph.reduce_max(size, Some(&[1, 2]), true)?;
    graph.power_of_two(largest)
}
