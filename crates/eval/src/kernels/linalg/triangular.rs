//! Triangular solves and the Cholesky factorization.
//!
//! Both operations read only one triangle of the matrix. A [kernel](crate::kernels::matrix) solves and
//! factorizes large matrices.

use nxla_expr::{TensorType, Transform, TriangularSolve};
use nxla_tensor::HostTensor;

use super::field::{Field, match_field, matrix_dtype};
use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::{convert, owned};

/// The side from which a blocked factorization or solution is faster than processing row by row. Measured by
/// `benches/python/kernels.py`.
const BLOCKED_SIDE: usize = 48;

/// The lower-triangular `l` with `l l^H = a`. If the matrix is not positive definite, all
/// elements are NaN, as in XLA. Only the lower triangle of `a` is read.
pub(super) fn cholesky(cx: Cx<'_>, a: &HostTensor, ty: &TensorType) -> Result<HostTensor, Fault> {
    let a = convert(cx, &convert(cx, a, ty.dtype)?, matrix_dtype(ty.dtype))?;
    let side = ty.shape[ty.shape.rank() - 1];
    let factor = match_field!(a.dtype(), T => factors::<T>(cx, &a, side))?;
    convert(cx, &factor, ty.dtype)
}

fn factors<T: Field>(cx: Cx<'_>, a: &HostTensor, side: usize) -> Result<HostTensor, Fault> {
    let elements = context::slice::<T>(a);
    let size = side * side;
    context::build(a.dtype(), a.shape(), |out: &mut [T]| {
        cx.rows(out, size, size * side, |first, out| {
            let matrices = elements[first * size..].chunks_exact(size);
            for (l, a) in out.chunks_exact_mut(size).zip(matrices) {
                let definite = match T::CHOLESKY {
                    Some(cholesky) if side >= BLOCKED_SIDE => cholesky(a, side, l),
                    _ => factor(a, l, side),
                };
                if !definite {
                    l.fill(T::NAN);
                }
            }
        });
    })
}

/// Factors row by row (Cholesky-Banachiewicz); returns whether the matrix is positive definite.
fn factor<T: Field>(a: &[T], l: &mut [T], side: usize) -> bool {
    for row in 0..side {
        let (done, current) = l.split_at_mut(row * side);
        let current = &mut current[..side];
        for column in 0..row {
            let other = &done[column * side..][..side];
            let products = current[..column].iter().zip(other).map(|(&x, &y)| x * y.conjugate());
            let rest = a[row * side + column] - products.sum();
            current[column] = rest.over(other[column]);
        }
        let norm: f64 = current[..row].iter().map(|&x| x.square()).sum();
        let square = a[row * side + row].real() - norm;
        // This also rejects NaN.
        if square.is_nan() || square <= 0.0 {
            return false;
        }
        current[row] = T::from_real(square.sqrt());
        current[row + 1..].fill(T::from_real(0.0));
    }
    true
}

/// Solves `a x = b` or `x a = b`. The other triangle of `a` is not read. A zero on the diagonal
/// causes a division by zero.
pub(super) fn solve(
    cx: Cx<'_>,
    attributes: TriangularSolve,
    a: &HostTensor,
    b: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let a = convert(cx, &convert(cx, a, ty.dtype)?, matrix_dtype(ty.dtype))?;
    let b = convert(cx, &convert(cx, b, ty.dtype)?, a.dtype())?;
    let x = match_field!(a.dtype(), T => solutions::<T>(cx, attributes, &a, b))?;
    convert(cx, &x, ty.dtype)
}

fn solutions<T: Field>(
    cx: Cx<'_>,
    attributes: TriangularSolve,
    a: &HostTensor,
    b: HostTensor,
) -> Result<HostTensor, Fault> {
    let TriangularSolve { lower, left_side, transform } = attributes;
    let side = a.shape()[a.rank() - 1];
    let is_vector = b.rank() + 1 == a.rank();
    // x a = b is a^T x^T = b^T: the unknowns of one system lie along a row.
    let swapped = (transform == Transform::Transpose) == left_side;
    let system = Triangle {
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
    let offset = |unknown: usize, system: usize| unknown * unknown_step + system * system_step;
    let elements = context::slice::<T>(a);
    let mut x = owned(cx, b, T::DTYPE)?;
    cx.rows(context::slice_mut::<T>(&mut x), size, size * side, |first, x| {
        let matrices = elements[first * side * side..].chunks_exact((side * side).max(1));
        for (x, a) in x.chunks_exact_mut(size).zip(matrices) {
            if let Some(substitute) = T::SUBSTITUTE
                && systems >= MIN_JOINT_SYSTEMS
            {
                // The kernel handles both memory orders: contiguous along the systems, or along the
                // unknowns.
                let pays = cx.pays(side * x.len() / 16);
                let parts = if pays { cx.threads() } else { 1 };
                cx.install(|| substitute(a, system, x, unknown_step == 1, parts));
                continue;
            }
            let mut line = context::filled(T::default(), side);
            for index in 0..systems {
                (0..side).for_each(|unknown| line[unknown] = x[offset(unknown, index)]);
                system.solve(a, &mut line);
                (0..side).for_each(|unknown| x[offset(unknown, index)] = line[unknown]);
            }
        }
    });
    Ok(x)
}

/// Systems of one matrix from which all of them are solved together. Measured by the family `linalg` of
/// `benches/python/kernels.py`.
const MIN_JOINT_SYSTEMS: usize = 8;

/// The orientation of a triangular matrix.
#[derive(Clone, Copy)]
pub(crate) struct Triangle {
    pub(crate) side: usize,
    /// True if the first equation contains only the first unknown.
    pub(crate) from_first: bool,
    /// True if rows and columns are exchanged.
    pub(crate) swapped: bool,
    pub(crate) conjugated: bool,
}

impl Triangle {
    fn at<T: Field>(self, a: &[T], row: usize, column: usize) -> T {
        let index = if self.swapped { column * self.side + row } else { row * self.side + column };
        if self.conjugated { a[index].conjugate() } else { a[index] }
    }

    /// Solves the equations in order by substituting the known unknowns.
    fn solve<T: Field>(self, a: &[T], x: &mut [T]) {
        for step in 0..self.side {
            let row = if self.from_first { step } else { self.side - 1 - step };
            let known = if self.from_first { 0..row } else { row + 1..self.side };
            let rest: T = known.map(|column| self.at(a, row, column) * x[column]).sum();
            x[row] = (x[row] - rest).over(self.at(a, row, row));
        }
    }
}
