//! Matrix factorizations and products by [faer].
//!
//! faer is generic, so every crate that calls it compiles it, which takes long. This crate compiles
//! faer once for each type of elements, and it rarely changes.
//!
//! Matrices are slices in row-major order. Each function writes its factors to `out`, one after the
//! other; `out` must have exactly their size. Elements must be finite. If an iteration does not
//! converge, `out` is unchanged.
//!
//! ```
//! use nxla_factor::FactorElement;
//!
//! let mut out = [0.0; 6];
//! f64::lu(&[0.0, 2.0, 4.0, 1.0], 2, &mut out);
//! // The factors in one matrix, then the order of the rows.
//! assert_eq!(out, [4.0, 1.0, 0.0, 2.0, 1.0, 0.0]);
//! ```
#![forbid(unsafe_code)]

mod lu;
mod product;
mod share;
mod triangular;

use std::borrow::Cow;
use std::ops::Range;

use faer::{MatRef, Side, traits::ComplexField};
use num_complex::Complex;
pub use product::{Matrix, Multiply};
pub use triangular::{Substitute, Triangle};

/// Element types with factorizations: `f32`, `f64` and `Complex<f64>`.
pub trait FactorElement: Sized {
    /// Writes the factors of a square matrix in one matrix (`l` without its unit diagonal, and
    /// `u`), then the order of the rows of `a` in `l u`. A column without a pivot leaves a zero on
    /// the diagonal of `u`.
    fn lu(a: &[Self], side: usize, out: &mut [Self]);

    /// Writes the lower-triangular `l` with `l l^H = a`, including zeros above the diagonal.
    /// Returns whether `a` is positive definite; otherwise `out` is unchanged. Only the lower
    /// triangle is read.
    fn cholesky(a: &[Self], side: usize, out: &mut [Self]) -> bool;

    /// Writes `q` and `r` with a real, nonnegative diagonal of `r`. `q` is square if `complete`,
    /// and otherwise has as many columns as the smaller side of `a`.
    fn qr(a: &[Self], rows: usize, columns: usize, complete: bool, out: &mut [Self]);

    /// Writes the eigenvalues of a Hermitian matrix in increasing order, then the eigenvectors in
    /// columns. Only the lower triangle is read.
    fn eigh(a: &[Self], side: usize, out: &mut [Self]);

    /// Writes only the eigenvalues of [`FactorElement::eigh`], without computing eigenvectors.
    fn eigenvalues(a: &[Self], side: usize, out: &mut [Self]);

    /// Writes `u`, the singular values in decreasing order, and `v^H`. `u` and `v` are square if
    /// `full`, and otherwise have a column for each singular value.
    fn svd(a: &[Self], rows: usize, columns: usize, full: bool, out: &mut [Self]);

    /// Writes only the singular values of [`FactorElement::svd`], without computing singular vectors.
    fn singular_values(a: &[Self], rows: usize, columns: usize, out: &mut [Self]);
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(
            impl FactorElement for $number {
                fn lu(a: &[Self], side: usize, out: &mut [Self]) {
                    lu::lu(a, side, out);
                }
                fn cholesky(a: &[Self], side: usize, out: &mut [Self]) -> bool {
                    let a = MatRef::from_row_major_slice(a, side, side);
                    cholesky(a, &mut Out { rest: out })
                }
                fn qr(a: &[Self], rows: usize, columns: usize, complete: bool, out: &mut [Self]) {
                    let (a, scale) = tamed(a);
                    let view = MatRef::from_row_major_slice(&a, rows, columns);
                    qr(view, complete, &mut Out { rest: out });
                    let inner = if complete { rows } else { rows.min(columns) };
                    scaled(&mut out[rows * inner..], scale);
                }
                fn eigh(a: &[Self], side: usize, out: &mut [Self]) {
                    let (a, scale) = tamed(a);
                    eigh(MatRef::from_row_major_slice(&a, side, side), &mut Out { rest: out });
                    scaled(&mut out[..side], scale);
                }
                fn eigenvalues(a: &[Self], side: usize, out: &mut [Self]) {
                    let (a, scale) = tamed(a);
                    let view = MatRef::from_row_major_slice(&a, side, side);
                    if let Ok(values) = view.self_adjoint_eigenvalues(Side::Lower) {
                        real(values, scale, out);
                    }
                }
                fn svd(a: &[Self], rows: usize, columns: usize, full: bool, out: &mut [Self]) {
                    let (a, scale) = tamed(a);
                    let view = MatRef::from_row_major_slice(&a, rows, columns);
                    svd(view, full, &mut Out { rest: out });
                    let smaller = rows.min(columns);
                    let before = rows * if full { rows } else { smaller };
                    scaled(&mut out[before..before + smaller], scale);
                }
                fn singular_values(a: &[Self], rows: usize, columns: usize, out: &mut [Self]) {
                    let (a, scale) = tamed(a);
                    let view = MatRef::from_row_major_slice(&a, rows, columns);
                    if let Ok(values) = view.singular_values() {
                        real(values, scale, out);
                    }
                }
            }
        )*
    };
}

numbers!(f32, f64, Complex<f64>);

/// Returns the matrix, divided by a power of two if squares or sums of squares could overflow or
/// underflow, and this power. The division is exact.
fn tamed<T: Field>(a: &[T]) -> (Cow<'_, [T]>, f64) {
    let largest = a.iter().map(|x| x.size()).fold(0.0, f64::max);
    let bound = 2_f64.powi(T::MODERATE);
    if largest == 0.0 || (1.0 / bound..bound).contains(&largest) {
        return (Cow::Borrowed(a), 1.0);
    }
    #[expect(clippy::cast_possible_truncation, reason = "exponents are small")]
    let exponent = (largest.log2() as i32).clamp(-1000, 1000);
    let inverse = 2_f64.powi(-exponent);
    (a.iter().map(|x| x.times(inverse)).collect(), 2_f64.powi(exponent))
}

fn scaled<T: Field>(out: &mut [T], scale: f64) {
    if scale != 1.0 {
        out.iter_mut().for_each(|x| *x = x.times(scale));
    }
}

/// Writes real numbers, multiplied by a power of two.
fn real<T: Field>(values: Vec<impl Into<f64>>, scale: f64, out: &mut [T]) {
    for (out, x) in out.iter_mut().zip(values) {
        *out = T::from_real(x.into() * scale);
    }
}

/// The operations on elements that the functions below need.
trait Field: ComplexField + Copy {
    /// The exponent range in which sums of squares are normal numbers: from `2^-MODERATE` to
    /// `2^MODERATE`.
    const MODERATE: i32;
    /// Multiplies by a real number and rounds once.
    fn times(self, factor: f64) -> Self;
    fn conjugate(self) -> Self;
    fn from_real(x: f64) -> Self;
    /// Returns the sum of the absolute values of the real and imaginary part, which does not underflow before the
    /// parts do.
    fn size(self) -> f64;
    /// Returns the quotient. The square of the divisor may overflow or underflow.
    fn over(self, divisor: Self) -> Self;
    /// Returns `x / |x|`, and 1 for 0.
    fn phase(self) -> Self;
}

macro_rules! real_fields {
    ($($real:ident: $moderate:expr;)*) => {
        $(impl Field for $real {
            const MODERATE: i32 = $moderate;
            fn times(self, factor: f64) -> Self {
                (f64::from(self) * factor) as $real
            }
            fn conjugate(self) -> Self {
                self
            }
            fn from_real(x: f64) -> Self {
                x as $real
            }
            fn size(self) -> f64 {
                f64::from(self.abs())
            }
            fn over(self, divisor: Self) -> Self {
                self / divisor
            }
            fn phase(self) -> Self {
                if self < 0.0 { -1.0 } else { 1.0 }
            }
        })*
    };
}
real_fields! {
    f32: 40;
    f64: 300;
}

impl Field for Complex<f64> {
    const MODERATE: i32 = f64::MODERATE;
    fn times(self, factor: f64) -> Self {
        self * factor
    }
    fn conjugate(self) -> Self {
        self.conj()
    }
    fn from_real(x: f64) -> Self {
        Complex::new(x, 0.0)
    }
    fn size(self) -> f64 {
        self.l1_norm()
    }
    fn over(self, divisor: Self) -> Self {
        let size = divisor.l1_norm();
        (self / size) / (divisor / size)
    }
    fn phase(self) -> Self {
        let size = self.norm();
        if size == 0.0 { Complex::new(1.0, 0.0) } else { self / size }
    }
}

/// The side of a square whose rows and columns fit in the first-level cache.
const SQUARE: usize = 16;

/// Visits a matrix in squares: calls a function for each row of each square, with a range of
/// columns.
fn squares(rows: usize, columns: usize, mut each: impl FnMut(usize, Range<usize>)) {
    for first in (0..rows).step_by(SQUARE) {
        for column in (0..columns).step_by(SQUARE) {
            for row in first..rows.min(first + SQUARE) {
                each(row, column..columns.min(column + SQUARE));
            }
        }
    }
}

/// The output elements of one matrix that have not been written yet.
struct Out<'a, T> {
    rest: &'a mut [T],
}

impl<T> Out<'_, T> {
    /// Writes the next elements.
    fn push(&mut self, numbers: impl ExactSizeIterator<Item = T>) {
        let (now, rest) = std::mem::take(&mut self.rest).split_at_mut(numbers.len());
        now.iter_mut().zip(numbers).for_each(|(out, x)| *out = x);
        self.rest = rest;
    }

    /// Writes a matrix row by row. The source is in column-major order, so the matrix is visited in
    /// squares.
    fn matrix(&mut self, rows: usize, columns: usize, at: impl Fn(usize, usize) -> T) {
        let (now, rest) = std::mem::take(&mut self.rest).split_at_mut(rows * columns);
        squares(rows, columns, |row, some| {
            let out = &mut now[row * columns..][some.clone()];
            out.iter_mut().zip(some).for_each(|(out, column)| *out = at(row, column));
        });
        self.rest = rest;
    }
}

fn cholesky<T: Field>(a: MatRef<'_, T>, out: &mut Out<'_, T>) -> bool {
    let Ok(factors) = a.llt(Side::Lower) else { return false };
    let l = factors.L();
    let zero = T::from_real(0.0);
    out.matrix(
        a.nrows(),
        a.nrows(),
        |row, column| if column > row { zero } else { l[(row, column)] },
    );
    true
}

/// The diagonal of `r` is made real and nonnegative by phases that `q` and `r` share.
fn qr<T: Field>(a: MatRef<'_, T>, complete: bool, out: &mut Out<'_, T>) {
    let factors = a.qr();
    let (q, r) = if complete {
        (factors.compute_Q(), factors.R())
    } else {
        (factors.compute_thin_Q(), factors.thin_R())
    };
    let diagonal = a.nrows().min(a.ncols());
    let phase = |index: usize| {
        if index < diagonal { r[(index, index)].phase() } else { T::from_real(1.0) }
    };
    let phases: Vec<T> = (0..q.ncols()).map(phase).collect();
    out.matrix(q.nrows(), q.ncols(), |row, column| q[(row, column)] * phases[column]);
    out.matrix(q.ncols(), a.ncols(), |row, column| {
        if column < row { T::from_real(0.0) } else { phases[row].conjugate() * r[(row, column)] }
    });
}

fn eigh<T: Field>(a: MatRef<'_, T>, out: &mut Out<'_, T>) {
    let side = a.nrows();
    let Ok(factors) = a.self_adjoint_eigen(Side::Lower) else { return };
    let (values, vectors) = (factors.S().column_vector(), factors.U());
    out.push((0..side).map(|index| values[index]));
    out.matrix(side, side, |row, column| vectors[(row, column)]);
}

fn svd<T: Field>(a: MatRef<'_, T>, full: bool, out: &mut Out<'_, T>) {
    let factors = if full { a.svd() } else { a.thin_svd() };
    let Ok(factors) = factors else { return };
    let (u, v, values) = (factors.U(), factors.V(), factors.S().column_vector());
    out.matrix(u.nrows(), u.ncols(), |row, column| u[(row, column)]);
    out.push((0..values.nrows()).map(|index| values[index]));
    out.matrix(v.ncols(), v.nrows(), |row, column| v[(column, row)].conjugate());
}

/// Writes the eigenvalues of a square matrix, then its eigenvectors of length 1 in columns.
/// Elements must be finite; if the iteration does not converge, `out` is unchanged.
pub fn eigen(a: &[Complex<f64>], side: usize, out: &mut [Complex<f64>]) {
    let (a, scale) = tamed(a);
    let Ok(factors) = MatRef::from_row_major_slice(&a, side, side).eigen() else { return };
    let (values, vectors) = (factors.S().column_vector(), factors.U());
    let mut out = Out { rest: out };
    out.push((0..side).map(|index| values[index].times(scale)));
    let length = |column: usize| {
        let squares = (0..side).map(|row| vectors[(row, column)].norm_sqr());
        squares.sum::<f64>().sqrt()
    };
    let lengths: Vec<f64> = (0..side).map(length).collect();
    out.matrix(side, side, |row, column| vectors[(row, column)] / lengths[column]);
}
