//! Eigenvalues and singular values by Jacobi rotations.
//!
//! A rotation makes two columns orthogonal. Rotating all pairs repeatedly converges, eventually
//! quadratically. The pairs `(i, i + n/2)` are disjoint and are rotated in one round. Between
//! rounds, the columns are permuted as in a round-robin tournament: after `n - 1` rounds, a sweep,
//! all columns have been paired and are back in their places. An odd number of columns is padded
//! with a column of zeros, which rotations do not change.

use nxla_tensor::{DType, HostTensor, to_i64};

use super::parts::{integer, lengths, number, phase, repeat, scale};
use super::qr::qr;
use crate::build::{Formula, Term};
use crate::graph::{ExprId, Graph, Padding, Replay, Result};

/// An upper bound on the sweeps that any matrix needs; the loop also ends at NaN.
const MOST_SWEEPS: usize = 30;

/// Returns the eigenvalues, in increasing order, and the eigenvectors of `[batch][n][n]`.
pub(super) fn eigh(graph: &mut Graph, a: ExprId) -> Result<[ExprId; 2]> {
    let &[batch, side, _] = graph.shape(a).as_slice() else { unreachable!("three axes") };
    let scale = scale(graph, a)?;
    let a = graph.divide(a, scale)?;
    let a = hermitian(graph, a)?;
    let all = side.next_multiple_of(2);
    let padded = grow(graph, a, all, all)?;
    let formula = Formula::new(graph);
    let norm = total(formula.term(padded));
    let allowed = (norm * epsilon(norm.dtype(), all)).id()?;
    let off = off_diagonal(graph, padded)?;
    let v = unit(graph, batch, all, a)?;
    let zero = integer(graph, 0)?;
    let going = |graph: &mut Graph, state: &[ExprId]| {
        let off = graph.greater(state[3], allowed)?;
        let off = graph.any(off, None, false)?;
        let most = integer(graph, MOST_SWEEPS)?;
        let early = graph.less(state[0], most)?;
        graph.logical_and(off, early)
    };
    let sweep = |graph: &mut Graph, state: &[ExprId]| {
        let swept = repeat(graph, all - 1, &state[1..3], |graph, _, state| {
            let rotation = Rotation::of_matrix(graph, state[0])?;
            let turned = rotation.columns(graph, state[0])?;
            let turned = graph.adjoint(turned)?;
            // The matrix is Hermitian, so rotating the columns of the adjoint rotates the rows.
            let turned = rotation.columns(graph, turned)?;
            let v = rotation.columns(graph, state[1])?;
            let turned = advance(graph, turned, 1)?;
            Ok(vec![advance(graph, turned, 2)?, advance(graph, v, 2)?])
        })?;
        let one = integer(graph, 1)?;
        let count = graph.add(state[0], one)?;
        let off = off_diagonal(graph, swept[0])?;
        Ok(vec![count, swept[0], swept[1], off])
    };
    let state = graph.repeat_while(&[zero, padded, v, off], Replay::default(), going, sweep)?;
    let w = graph.take_diagonal(state[1], 0)?;
    let w = graph.real(w)?;
    let w = graph.slice_along_axis(w, 0, side, 1, 1)?;
    let v = shrink(graph, state[2], side, side)?;
    let order = graph.argsort(w, 1, false, true, DType::S32)?;
    let w = graph.take_along_axis(w, order, 1)?;
    let v = reorder(graph, v, order)?;
    Ok([scale_rows(graph, w, scale)?, v])
}

/// Returns `u`, the singular values and `v^H` of `[batch][rows][columns]`.
pub(super) fn svd(graph: &mut Graph, a: ExprId, full: bool) -> Result<[ExprId; 3]> {
    let &[_, rows, columns] = graph.shape(a).as_slice() else { unreachable!("three axes") };
    if rows < columns {
        let a = graph.adjoint(a)?;
        let [v, s, uh] = svd(graph, a, full)?;
        return Ok([graph.adjoint(uh)?, s, graph.adjoint(v)?]);
    }
    let scale = scale(graph, a)?;
    let a = graph.divide(a, scale)?;
    let (turned, v) = orthogonal_columns(graph, a)?;
    let length = lengths(Formula::new(graph).term(turned)).id()?;
    let length = graph.squeeze(length, Some(&[1]))?;
    let order = graph.argsort(length, 1, true, true, DType::S32)?;
    let (turned, v) = (reorder(graph, turned, order)?, reorder(graph, v, order)?);
    let s = graph.sort(length, 1, true, true)?;
    // The columns are orthogonal, so their QR factorization normalizes them, and adds orthonormal
    // columns for zero or missing columns.
    let [u, _] = qr(graph, turned, if full { rows } else { columns })?;
    Ok([u, scale_rows(graph, s, scale)?, graph.adjoint(v)?])
}

/// Multiplies the values of `[batch][n]` by the scale of each matrix.
fn scale_rows(graph: &mut Graph, values: ExprId, scale: ExprId) -> Result<ExprId> {
    let scale = graph.squeeze(scale, Some(&[1]))?;
    graph.multiply(values, scale)
}

/// Returns `a v` with orthogonal columns, and the unitary `v`.
fn orthogonal_columns(graph: &mut Graph, a: ExprId) -> Result<(ExprId, ExprId)> {
    let &[batch, rows, columns] = graph.shape(a).as_slice() else { unreachable!("three axes") };
    let all = columns.next_multiple_of(2);
    let padded = grow(graph, a, rows, all)?;
    let formula = Formula::new(graph);
    let norm = total(formula.term(padded));
    let allowed = norm.number(epsilon(norm.dtype(), rows));
    let [norm, allowed, negligible] = formula.ids([norm, allowed, norm * allowed])?;
    let v = unit(graph, batch, all, a)?;
    let zero = integer(graph, 0)?;
    let one = number(graph, 1.0, norm)?;
    let going = |graph: &mut Graph, state: &[ExprId]| {
        let apart = graph.greater(state[3], allowed)?;
        let most = integer(graph, MOST_SWEEPS)?;
        let early = graph.less(state[0], most)?;
        graph.logical_and(apart, early)
    };
    let sweep = |graph: &mut Graph, state: &[ExprId]| {
        let none = number(graph, 0.0, norm)?;
        let swept = repeat(graph, all - 1, &[state[1], state[2], none], |graph, _, state| {
            let (rotation, cosine) = Rotation::of_columns(graph, state[0], negligible)?;
            let a = rotation.columns(graph, state[0])?;
            let v = rotation.columns(graph, state[1])?;
            let worst = graph.max(state[2], cosine)?;
            Ok(vec![advance(graph, a, 2)?, advance(graph, v, 2)?, worst])
        })?;
        let one = integer(graph, 1)?;
        let count = graph.add(state[0], one)?;
        Ok(vec![count, swept[0], swept[1], swept[2]])
    };
    let state = graph.repeat_while(&[zero, padded, v, one], Replay::default(), going, sweep)?;
    Ok((shrink(graph, state[1], rows, columns)?, shrink(graph, state[2], columns, columns)?))
}

/// The rotations of one round: `p` becomes `e c p - s q`, and `q` becomes `e s p + c q`.
struct Rotation {
    cosine: ExprId,
    sine: ExprId,
    /// The phase `e` of the inner product that the rotation eliminates.
    phase: ExprId,
}

impl Rotation {
    /// Computes the rotations from the diagonal and the paired elements of a Hermitian matrix.
    fn of_matrix(graph: &mut Graph, a: ExprId) -> Result<Self> {
        let half = graph.shape(a)[1] / 2;
        let squares = graph.take_diagonal(a, 0)?;
        let squares = graph.real(squares)?;
        let (p, q) = graph.split(squares, to_i64(half), 1)?;
        let products = graph.take_diagonal(a, to_i64(half))?;
        let spread = |graph: &mut Graph, x| graph.new_axis(x, 1, None);
        let (p, q, products) = (spread(graph, p)?, spread(graph, q)?, spread(graph, products)?);
        let formula = Formula::new(graph);
        let [p, q, products] = formula.terms([p, q, products]);
        Self::new(&formula, p, q, products)
    }

    /// Computes the rotations from the columns, whose squared norms are the diagonal of `a^H a`.
    /// Also returns the largest cosine between two non-negligible columns, as a scalar.
    fn of_columns(graph: &mut Graph, a: ExprId, negligible: ExprId) -> Result<(Self, ExprId)> {
        let (p, q) = halves(graph, a)?;
        let other = graph.conjugate_complex(p)?;
        let formula = Formula::new(graph);
        let [p, q, other, negligible] = formula.terms([p, q, other, negligible]);
        let [pp, qq] = [p, q].map(|x| x.abs()).map(|size| (size * size).sum(Some(&[1]), true));
        let products = (other * q).sum(Some(&[1]), true);
        let (p_length, q_length) = (pp.sqrt(), qq.sqrt());
        let counts = p_length.min(q_length).greater(negligible);
        let lengths = counts.select(p_length * q_length, 1.0);
        let cosine = counts.select(products.abs() / lengths, 0.0);
        let cosine = cosine.apply(|graph, cosine| graph.reduce_max(cosine, None, false));
        Ok((Self::new(&formula, pp, qq, products)?, cosine.id()?))
    }

    /// Computes the smaller angle that diagonalizes `[[p, x], [x^H, q]]`.
    fn new<'f>(
        formula: &'f Formula<'f>,
        p: Term<'f>,
        q: Term<'f>,
        products: Term<'f>,
    ) -> Result<Self> {
        let size = products.abs();
        let is_zero = size.equal(0.0);
        let safe = is_zero.select(1.0, size);
        let ratio = (q - p) / (safe + safe);
        // The root of `t^2 + 2 ratio t = 1` of smaller magnitude.
        let tangent = 1.0 / (ratio.abs() + (1.0 + ratio * ratio).sqrt());
        let tangent = ratio.less(0.0).select(-tangent, tangent);
        let tangent = is_zero.select(0.0, tangent);
        let cosine = (1.0 + tangent * tangent).rsqrt();
        let [cosine, sine, phase] = formula.ids([cosine, tangent * cosine, phase(products)])?;
        Ok(Self { cosine, sine, phase })
    }

    /// Rotates the paired columns.
    fn columns(&self, graph: &mut Graph, x: ExprId) -> Result<ExprId> {
        let (p, q) = halves(graph, x)?;
        let formula = Formula::new(graph);
        let [p, q, phase] = formula.terms([p, q, self.phase]);
        let [cosine, sine] = formula.terms([self.cosine, self.sine]);
        let p = phase * p;
        let [first, second] = formula.ids([cosine * p - sine * q, sine * p + cosine * q])?;
        graph.concatenate(&[first, second], 2)
    }
}

fn halves(graph: &mut Graph, x: ExprId) -> Result<(ExprId, ExprId)> {
    let half = to_i64(graph.shape(x)[2] / 2);
    graph.split(x, half, 2)
}

/// Permutes the columns for the next round: the first stays, the others rotate by one place.
fn advance(graph: &mut Graph, x: ExprId, axis: usize) -> Result<ExprId> {
    let half = graph.shape(x)[axis] / 2;
    if half == 1 {
        return Ok(x);
    }
    let upper = [0, half].into_iter().chain(1..half - 1);
    let lower = (half + 1..2 * half).chain([half - 1]);
    let places: Vec<i32> = upper
        .chain(lower)
        .map(|place| i32::try_from(place).expect("a matrix has fewer than 2^31 columns"))
        .collect();
    let places = HostTensor::from_slice(&places, [2 * half])
        .map_err(|error| graph.invalid("factorize", "operand", error.to_string()))?;
    let places = graph.tensor(places)?;
    graph.take(x, places, to_i64(axis))
}

/// Returns the Hermitian matrix with this lower triangle.
fn hermitian(graph: &mut Graph, a: ExprId) -> Result<ExprId> {
    let strict = graph.tril(a, -1)?;
    let mirrored = graph.adjoint(strict)?;
    let side = graph.shape(a)[1];
    let eye = graph.eye([side, side], DType::Pred)?;
    let formula = Formula::new(graph);
    let [a, eye, strict, mirrored] = formula.terms([a, eye, strict, mirrored]);
    (strict + mirrored + eye.select(a.real(), 0.0)).id()
}

/// Appends rows and columns of zeros.
fn grow(graph: &mut Graph, a: ExprId, rows: usize, columns: usize) -> Result<ExprId> {
    let shape = graph.shape(a).clone();
    let by = |more: usize| Padding { low: 0, high: to_i64(more), interior: 0 };
    let padding = [by(0), by(rows - shape[1]), by(columns - shape[2])];
    let zero = number(graph, 0.0, a)?;
    graph.pad(a, zero, &padding)
}

/// Returns the first rows and columns.
fn shrink(graph: &mut Graph, a: ExprId, rows: usize, columns: usize) -> Result<ExprId> {
    let a = graph.slice_along_axis(a, 0, rows, 1, 1)?;
    graph.slice_along_axis(a, 0, columns, 2, 1)
}

/// Reorders columns by the indices `[batch][columns]`.
fn reorder(graph: &mut Graph, x: ExprId, order: ExprId) -> Result<ExprId> {
    let order = graph.new_axis(order, 1, None)?;
    let shape = graph.shape(x).clone();
    let order = graph.broadcast(order, shape, None)?;
    graph.take_along_axis(x, order, 2)
}

/// Creates a batch of identity matrices.
fn unit(graph: &mut Graph, batch: usize, side: usize, like: ExprId) -> Result<ExprId> {
    let eye = graph.eye([side, side], graph.dtype(like))?;
    graph.broadcast(eye, [batch, side, side], None)
}

/// Returns the Frobenius norm of each matrix, as `[batch][1][1]` of a real dtype.
fn total(a: Term<'_>) -> Term<'_> {
    let columns = lengths(a);
    lengths(columns.apply(|graph, x| graph.transpose(x, Some(&[0, 2, 1]))))
}

/// Returns the norm of the off-diagonal elements.
fn off_diagonal(graph: &mut Graph, a: ExprId) -> Result<ExprId> {
    let side = graph.shape(a)[1];
    let eye = graph.eye([side, side], DType::Pred)?;
    let formula = Formula::new(graph);
    let [eye, a] = formula.terms([eye, a]);
    total(eye.select(a.zero(), a)).id()
}

/// Returns the relative rounding error of sums of this length.
fn epsilon(real: DType, length: usize) -> f64 {
    let unit = real.float_limits().expect("norms are floats").epsilon;
    unit * (length as f64)
}
