//! QR factorization by Householder reflections. Each reflection clears a column below the diagonal.

use nxla_tensor::to_i64;

use super::parts::{adjoint_product, integer, lengths, number, phase, positions, product, repeat};
use crate::build::{Formula, SliceStart};
use crate::graph::{ExprId, Graph, Padding, Result};

/// Returns `q` with `inner` columns and `r` with `inner` rows, of `[batch][rows][columns]`.
pub(super) fn qr(graph: &mut Graph, a: ExprId, inner: usize) -> Result<[ExprId; 2]> {
    let &[batch, rows, columns] = graph.shape(a).as_slice() else { unreachable!("three axes") };
    let steps = rows.min(columns);
    let zero = number(graph, 0.0, a)?;
    let mirrors = graph.broadcast(zero, [batch, rows, steps], None)?;
    let state = repeat(graph, steps, &[a, mirrors], |graph, step, state| {
        let mirror = mirror(graph, step, state[0])?;
        let reflected = reflect(graph, mirror, state[0])?;
        let places = positions(graph, steps, 2)?;
        let is_step = graph.equal(places, step)?;
        Ok(vec![reflected, graph.select(is_step, mirror, state[1])?])
    })?;
    let (reflected, mirrors) = (state[0], state[1]);

    let eye = graph.eye([rows, inner], graph.dtype(a))?;
    let eye = graph.broadcast(eye, [batch, rows, inner], None)?;
    let q = repeat(graph, steps, &[eye], |graph, step, state| {
        let last = integer(graph, steps - 1)?;
        let step = graph.subtract(last, step)?;
        let mirror = graph.slice_along_axis(mirrors, SliceStart::Dynamic(step), 1, 2, 1)?;
        Ok(vec![reflect(graph, mirror, state[0])?])
    })?[0];
    let r = graph.slice_along_axis(reflected, 0, inner, 1, 1)?;
    let r = graph.triu(r, 0)?;
    turn(graph, q, r, steps)
}

/// Returns the unit vector whose reflection maps column `step`, from row `step` on, to the
/// diagonal, or 0 for a column of zeros.
fn mirror(graph: &mut Graph, step: ExprId, a: ExprId) -> Result<ExprId> {
    let rows = positions(graph, graph.shape(a)[1], 1)?;
    let column = graph.slice_along_axis(a, SliceStart::Dynamic(step), 1, 2, 1)?;
    let formula = Formula::new(graph);
    let [rows, at, column] = formula.terms([rows, step, column]);
    let column = rows.greater_equal(at).select(column, column.zero());
    let top =
        column.apply(|graph, x| graph.slice_along_axis(x, SliceStart::Dynamic(step), 1, 1, 1));
    let moved = phase(top) * lengths(column);
    let mirror = column + rows.equal(at).select(moved, moved.zero());
    let length = lengths(mirror);
    (mirror / length.equal(0.0).select(1.0, length)).id()
}

/// `x - 2 m m^H x`.
fn reflect(graph: &mut Graph, mirror: ExprId, x: ExprId) -> Result<ExprId> {
    let along = adjoint_product(graph, mirror, x)?;
    let part = product(graph, mirror, along)?;
    let two = number(graph, 2.0, x)?;
    let part = graph.multiply(two, part)?;
    graph.subtract(x, part)
}

/// Makes the diagonal of `r` real and nonnegative.
fn turn(graph: &mut Graph, q: ExprId, r: ExprId, steps: usize) -> Result<[ExprId; 2]> {
    let inner = graph.shape(q)[2];
    let diagonal = graph.take_diagonal(r, 0)?;
    let mut phases = phase(Formula::new(graph).term(diagonal)).id()?;
    if inner > steps {
        let high = to_i64(inner - steps);
        let one = number(graph, 1.0, r)?;
        phases = graph.pad(phases, one, &[Padding::NONE, Padding { high, ..Padding::NONE }])?;
    }
    let columns = graph.new_axis(phases, 1, None)?;
    let q = graph.multiply(q, columns)?;
    let rows = graph.conjugate_complex(phases)?;
    let rows = graph.new_axis(rows, 2, None)?;
    Ok([q, graph.multiply(rows, r)?])
}
