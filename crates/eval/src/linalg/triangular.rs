//! Triangular systems and the Cholesky factorisation.
//!
//! Both read one triangle of their matrix only. They compute in `f64` or complex `f64`.

use nxla_expr::{TensorType, Transform, TriangularSolve};
use nxla_tensor::{Complex, HostTensor};

use super::field::{Field, wide};
use crate::elementwise::convert;
use crate::error::Fault;
use crate::{parallel, value};

/// The lower-triangular `l` with `l l^H = a`. A matrix that is not positive definite gives NaN
/// everywhere, as in XLA. Only the lower triangle of `a` is read.
pub(super) fn cholesky(a: &HostTensor, ty: &TensorType) -> Result<HostTensor, Fault> {
    let a = convert(&convert(a, ty.dtype)?, wide(ty.dtype))?;
    let side = ty.shape[ty.shape.rank() - 1];
    let factor = if ty.dtype.is_complex() {
        factors::<Complex<f64>>(&a, side)?
    } else {
        factors::<f64>(&a, side)?
    };
    convert(&factor, ty.dtype)
}

/// The size from which a blocked factorisation is faster than going row by row.
const BLOCKED: usize = 48;

fn factors<T: Field>(a: &HostTensor, side: usize) -> Result<HostTensor, Fault> {
    let elements = value::slice::<T>(a);
    let size = side * side;
    value::build(a.dtype(), a.shape(), |out: &mut [T]| {
        parallel::rows(out, size, size * side, |first, out| {
            let matrices = elements[first * size..].chunks_exact(size);
            for (l, a) in out.chunks_exact_mut(size).zip(matrices) {
                let definite =
                    if side < BLOCKED { factor(a, l, side) } else { T::cholesky(a, side, l) };
                if !definite {
                    l.fill(T::NAN);
                }
            }
        });
    })
}

/// Row by row (Cholesky–Banachiewicz); whether the matrix is positive definite.
fn factor<T: Field>(a: &[T], l: &mut [T], side: usize) -> bool {
    for row in 0..side {
        let (done, current) = l.split_at_mut(row * side);
        let current = &mut current[..side];
        for column in 0..row {
            let other = &done[column * side..][..side];
            let products = current[..column].iter().zip(other).map(|(&x, &y)| x * y.conjugate());
            let rest = a[row * side + column] - products.sum();
            current[column] = rest / other[column];
        }
        let norm: f64 = current[..row].iter().map(|&x| x.square()).sum();
        let square = a[row * side + row].real() - norm;
        // NaN is not positive either.
        if square.is_nan() || square <= 0.0 {
            return false;
        }
        current[row] = T::from_real(square.sqrt());
        current[row + 1..].fill(T::from_real(0.0));
    }
    true
}

/// Solves `a x = b` or `x a = b`. The other triangle of `a` is not read; a zero on the diagonal
/// divides like any other zero.
pub(super) fn solve(
    attributes: TriangularSolve,
    a: &HostTensor,
    b: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let wide = wide(ty.dtype);
    let a = convert(&convert(a, ty.dtype)?, wide)?;
    let b = convert(&convert(b, ty.dtype)?, wide)?;
    let x = if ty.dtype.is_complex() {
        solutions::<Complex<f64>>(attributes, &a, b)?
    } else {
        solutions::<f64>(attributes, &a, b)?
    };
    convert(&x, ty.dtype)
}

fn solutions<T: Field>(
    attributes: TriangularSolve,
    a: &HostTensor,
    b: HostTensor,
) -> Result<HostTensor, Fault> {
    let TriangularSolve { lower, left_side, transform } = attributes;
    let side = a.shape()[a.rank() - 1];
    let is_vector = b.rank() + 1 == a.rank();
    // x a = b is a^T x^T = b^T: the unknowns of one system lie along a row.
    let swapped = (transform == Transform::Transpose) == left_side;
    let system = System {
        side,
        from_first: lower != swapped,
        swapped,
        conjugated: transform == Transform::Conjugate,
    };
    let size: usize = if is_vector { side } else { b.shape()[a.rank() - 2..].iter().product() };
    let systems = size.checked_div(side).unwrap_or(0);
    let (unknown_step, system_step) = match (is_vector, left_side) {
        (true, _) => (1, 1),
        (false, true) => (systems, 1),
        (false, false) => (1, side),
    };
    let elements = value::slice::<T>(a);
    let mut x = value::owned(b, T::DTYPE)?;
    parallel::rows(value::slice_mut::<T>(&mut x), size, size * side, |first, x| {
        let matrices = elements[first * side * side..].chunks_exact((side * side).max(1));
        for (x, a) in x.chunks_exact_mut(size).zip(matrices) {
            let mut line = vec![T::default(); side];
            for index in 0..systems {
                let place = |unknown: usize| index * system_step + unknown * unknown_step;
                (0..side).for_each(|unknown| line[unknown] = x[place(unknown)]);
                system.solve(a, &mut line);
                (0..side).for_each(|unknown| x[place(unknown)] = line[unknown]);
            }
        }
    });
    Ok(x)
}

/// How a triangular matrix is read.
#[derive(Clone, Copy)]
struct System {
    side: usize,
    /// Whether the first unknown is the one that stands alone in its equation.
    from_first: bool,
    /// Whether rows and columns are exchanged.
    swapped: bool,
    conjugated: bool,
}

impl System {
    fn at<T: Field>(self, a: &[T], row: usize, column: usize) -> T {
        let index = if self.swapped { column * self.side + row } else { row * self.side + column };
        if self.conjugated { a[index].conjugate() } else { a[index] }
    }

    /// Substitutes the unknowns that are known already, one equation after the other.
    fn solve<T: Field>(self, a: &[T], x: &mut [T]) {
        for step in 0..self.side {
            let row = if self.from_first { step } else { self.side - 1 - step };
            let known = if self.from_first { 0..row } else { row + 1..self.side };
            let rest: T = known.map(|column| self.at(a, row, column) * x[column]).sum();
            x[row] = (x[row] - rest) / self.at(a, row, row);
        }
    }
}
