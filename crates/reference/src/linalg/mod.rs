//! Fourier transforms, triangular systems and factorizations, batched over leading axes.
//!
//! All computations use complex numbers; for real matrices, the imaginary parts are zero.

mod eigen;
mod factorize;

use std::f64::consts::TAU;

use nxla_expr::{Factorization, Fft, Op, TensorType, Transform, TriangularSolve};

use crate::array::{Array, indices, position};
use crate::number::{C, Number};

pub(crate) fn evaluate(op: &Op, types: &[TensorType], x: &[&Array]) -> Vec<Array> {
    let ty = &types[0];
    match op {
        Op::Fft(attributes) => vec![fft(*attributes, x[0], ty)],
        Op::TriangularSolve(attributes) => vec![triangular_solve(*attributes, x[0], x[1], ty)],
        Op::Cholesky => for_each_matrix(x[0], types, |a| vec![factorize::cholesky(a)]),
        Op::Factorize(Factorization::Lu) => for_each_matrix(x[0], types, factorize::lu),
        Op::Factorize(Factorization::Qr { complete }) => {
            for_each_matrix(x[0], types, |a| factorize::qr(a, *complete))
        }
        Op::Factorize(Factorization::Eigh) => for_each_matrix(x[0], types, eigen::eigh),
        Op::Factorize(Factorization::Svd { full }) => {
            for_each_matrix(x[0], types, |a| eigen::svd(a, *full))
        }
        op @ nxla_expr::outside!(linalg) => unreachable!("{} is of another family", op.name()),
    }
}

/// `y[k] = Σ over j of x[j] e^(-2πi j k / n)` along the axis. The inverse has the opposite sign and
/// divides by `n`. The axis is cut to `n` elements or padded with zeros.
fn fft(attributes: Fft, x: &Array, ty: &TensorType) -> Array {
    let Fft { inverse, length, axis } = attributes;
    let turn = if inverse { TAU } else { -TAU } / length as f64;
    Array::from_fn(ty, |index| {
        let mut place = index.to_vec();
        let terms = (0..length.min(x.shape[axis])).map(|j| {
            place[axis] = j;
            // Full rotations are removed, which makes the angle more accurate.
            let steps = (j as u128 * index[axis] as u128 % length as u128) as f64;
            x.at(&place).complex() * C::from_polar(1.0, turn * steps)
        });
        let sum: C = terms.sum();
        Number::Complex(if inverse { sum / length as f64 } else { sum })
    })
}

/// A matrix as a list of rows.
type Matrix = Vec<Vec<C>>;

fn zeros(rows: usize, columns: usize) -> Matrix {
    vec![vec![C::ZERO; columns]; rows]
}

/// Returns `a^H`: the transposed matrix with conjugated elements.
fn adjoint(a: &Matrix, columns: usize) -> Matrix {
    (0..columns).map(|column| a.iter().map(|row| row[column].conj()).collect()).collect()
}

/// Returns the matrix in the last two axes at an index of the leading axes.
fn matrix(a: &Array, batch: &[usize]) -> Matrix {
    let [.., rows, columns] = a.shape[..] else { unreachable!("there are matrices") };
    let at = |row, column| a.at(&[batch, &[row, column]].concat()).complex();
    (0..rows).map(|row| (0..columns).map(|column| at(row, column)).collect()).collect()
}

/// Computes the factors of each matrix. A vector is a matrix with one row. The factors of a matrix
/// with NaN or infinities are NaN.
fn for_each_matrix(
    a: &Array,
    types: &[TensorType],
    parts: impl Fn(&Matrix) -> Vec<Matrix>,
) -> Vec<Array> {
    let a = a.cast(a.dtype.to_floating());
    let mut found: Vec<Vec<Number>> = vec![Vec::new(); types.len()];
    for batch in indices(&a.shape[..a.rank() - 2]) {
        let matrix = matrix(&a, &batch);
        if matrix.iter().flatten().all(|x| x.is_finite()) {
            for (found, part) in found.iter_mut().zip(parts(&matrix)) {
                found.extend(part.into_iter().flatten().map(Number::Complex));
            }
            continue;
        }
        for (found, ty) in found.iter_mut().zip(types) {
            let size: usize = ty.shape[batch.len()..].iter().product();
            found.extend(vec![Number::Complex(NAN); size]);
        }
    }
    types.iter().zip(found).map(|(ty, found)| Array::new(ty.dtype, &ty.shape, found)).collect()
}

const NAN: C = C::new(f64::NAN, f64::NAN);

/// Solves `t x = b`, or `x t = b`, where `t` is a triangle of `a`, transposed or conjugated. The
/// other triangle is not read.
fn triangular_solve(attributes: TriangularSolve, a: &Array, b: &Array, ty: &TensorType) -> Array {
    let TriangularSolve { lower, left_side, transform } = attributes;
    let (a, b) = (a.cast(ty.dtype), b.cast(ty.dtype));
    let batches = a.rank() - 2;
    let side = a.shape[batches];
    let mut solved = b.elements.clone();
    for batch in indices(&a.shape[..batches]) {
        let a = matrix(&a, &batch);
        let element = |row: usize, column: usize| match transform {
            Transform::None => a[row][column],
            Transform::Transpose => a[column][row],
            Transform::Conjugate => a[row][column].conj(),
        };
        let is_lower = lower != (transform == Transform::Transpose);
        // `x t = b` means that the transpose of `t` times the column `x^T` is `b^T`.
        let system: Matrix = (0..side)
            .map(|row| {
                let at =
                    |column| if left_side { element(row, column) } else { element(column, row) };
                (0..side).map(at).collect()
            })
            .collect();
        // The axis of the unknowns among the matrix axes; a vector has only one.
        let unknowns = if left_side || b.rank() == batches + 1 { 0 } else { 1 };
        let others: Vec<usize> = b.shape[batches..]
            .iter()
            .enumerate()
            .map(|(axis, &size)| if axis == unknowns { 1 } else { size })
            .collect();
        for other in indices(&others) {
            let place = |unknown: usize| {
                let mut index = other.clone();
                index[unknowns] = unknown;
                position(&[&batch[..], &index].concat(), &b.shape)
            };
            let right: Vec<C> = (0..side).map(|row| b.elements[place(row)].complex()).collect();
            let x = substitute(&system, is_lower == left_side, right);
            x.iter().enumerate().for_each(|(row, &x)| solved[place(row)] = Number::Complex(x));
        }
    }
    Array::new(ty.dtype, &ty.shape, solved)
}

/// Solves a triangular system by substitution, starting with the equation that has one unknown:
/// `x[i] = (b[i] - Σ over the known x[j] of t[i][j] x[j]) / t[i][i]`.
fn substitute(t: &Matrix, lower: bool, mut x: Vec<C>) -> Vec<C> {
    let side = x.len();
    for step in 0..side {
        let row = if lower { step } else { side - 1 - step };
        let known = if lower { 0..row } else { row + 1..side };
        let rest: C = known.map(|column| t[row][column] * x[column]).sum();
        x[row] = divide(x[row] - rest, t[row][row]);
    }
    x
}

/// Returns the quotient, as a quotient of real numbers if both are real.
fn divide(x: C, y: C) -> C {
    if y.im == 0.0 {
        C::new(x.re / y.re, if x.im == 0.0 { 0.0 } else { x.im / y.re })
    } else {
        x / y
    }
}
