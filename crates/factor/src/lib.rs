//! Factorisations and products of matrices by [faer].
//!
//! faer is generic code, so whoever calls it compiles it, and that takes long. This crate compiles
//! it once, for `f32`, `f64` and their complex numbers, and is seldom touched.
//!
//! Matrices are slices in row-major order. Each function writes its parts into `out`, one after
//! the other; `out` has exactly their size. Elements must be finite. Where an iteration does not
//! converge, `out` stays as it is.
//!
//! ```
//! use nxla_factor::Number;
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

/// Numbers of which matrices are factorised: `f32`, `f64` and their complex numbers.
pub trait Number: Sized {
    /// The factors of a square matrix in one (`l` without its diagonal of ones, and `u`), then the
    /// rows of `a` in the order in which they come in `l u`. A column without pivot leaves a zero
    /// on the diagonal of `u`.
    fn lu(a: &[Self], side: usize, out: &mut [Self]);

    /// The lower-triangular `l` with `l l^H = a`, zeros above the diagonal included; whether `a` is
    /// positive definite, without which `out` stays as it is. Only the lower triangle is read.
    fn cholesky(a: &[Self], side: usize, out: &mut [Self]) -> bool;

    /// `q` and `r`, whose diagonal is real and not negative; `q` is square if `complete`, else as
    /// wide as the smaller side of `a`.
    fn qr(a: &[Self], rows: usize, columns: usize, complete: bool, out: &mut [Self]);

    /// The eigenvalues of a Hermitian matrix, which increase, then the eigenvectors in columns.
    /// Only the lower triangle is read.
    fn eigh(a: &[Self], side: usize, out: &mut [Self]);

    /// `u`, the singular values, which decrease, and `v^H`; `u` and `v` are square if `full`, else
    /// as wide as there are singular values.
    fn svd(a: &[Self], rows: usize, columns: usize, full: bool, out: &mut [Self]);
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(
            impl Number for $number {
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
                fn svd(a: &[Self], rows: usize, columns: usize, full: bool, out: &mut [Self]) {
                    let (a, scale) = tamed(a);
                    let view = MatRef::from_row_major_slice(&a, rows, columns);
                    svd(view, full, &mut Out { rest: out });
                    let smaller = rows.min(columns);
                    let before = rows * if full { rows } else { smaller };
                    scaled(&mut out[before..before + smaller], scale);
                }
            }
        )*
    };
}

numbers!(f32, f64, Complex<f32>, Complex<f64>);

/// Numbers whose squares and sums of squares neither overflow nor vanish: as they are, or divided by
/// a power of two, which is exact, and that power.
fn tamed<T: Field>(a: &[T]) -> (Cow<'_, [T]>, f64) {
    let largest = a.iter().map(|x| x.largest_part()).fold(0.0, f64::max);
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

/// What the functions below need of their numbers.
trait Field: ComplexField + Copy {
    /// The power of two up to which, and down from whose inverse, sums of squares are normal numbers.
    const MODERATE: i32;
    /// Times a real number, rounded once.
    fn times(self, factor: f64) -> Self;
    /// The larger of the absolute values of its parts.
    fn largest_part(self) -> f64;
    fn conjugate(self) -> Self;
    fn from_real(x: f64) -> Self;
    /// The square of the absolute value.
    fn square(self) -> f64;
    /// `x / |x|`, and 1 for 0.
    fn phase(self) -> Self;
}

macro_rules! fields {
    ($($real:ident: $moderate:expr;)*) => {
        $(
            impl Field for $real {
                const MODERATE: i32 = $moderate;
                fn times(self, factor: f64) -> Self {
                    (f64::from(self) * factor) as $real
                }
                fn largest_part(self) -> f64 {
                    f64::from(self.abs())
                }
                fn conjugate(self) -> Self {
                    self
                }
                fn from_real(x: f64) -> Self {
                    x as $real
                }
                fn square(self) -> f64 {
                    f64::from(self) * f64::from(self)
                }
                fn phase(self) -> Self {
                    if self < 0.0 { -1.0 } else { 1.0 }
                }
            }

            impl Field for Complex<$real> {
                const MODERATE: i32 = $moderate;
                fn times(self, factor: f64) -> Self {
                    Complex::new(self.re.times(factor), self.im.times(factor))
                }
                fn largest_part(self) -> f64 {
                    self.re.largest_part().max(self.im.largest_part())
                }
                fn conjugate(self) -> Self {
                    self.conj()
                }
                fn from_real(x: f64) -> Self {
                    Complex::new($real::from_real(x), 0.0)
                }
                fn square(self) -> f64 {
                    self.re.square() + self.im.square()
                }
                fn phase(self) -> Self {
                    let size = self.norm();
                    if size == 0.0 { Complex::new(1.0, 0.0) } else { self / size }
                }
            }
        )*
    };
}
fields! {
    f32: 40;
    f64: 300;
}

/// The side of a square of which each line fits into the first-level cache, as rows and as columns.
const SQUARE: usize = 16;

/// Goes through a matrix in squares: calls a function for each row of each, with the columns.
fn squares(rows: usize, columns: usize, mut each: impl FnMut(usize, Range<usize>)) {
    for first in (0..rows).step_by(SQUARE) {
        for column in (0..columns).step_by(SQUARE) {
            for row in first..rows.min(first + SQUARE) {
                each(row, column..columns.min(column + SQUARE));
            }
        }
    }
}

/// The numbers of one matrix's parts that are still to be written.
struct Out<'a, T> {
    rest: &'a mut [T],
}

impl<T> Out<'_, T> {
    /// Writes the next numbers.
    fn push(&mut self, numbers: impl ExactSizeIterator<Item = T>) {
        let (now, rest) = std::mem::take(&mut self.rest).split_at_mut(numbers.len());
        now.iter_mut().zip(numbers).for_each(|(out, x)| *out = x);
        self.rest = rest;
    }

    /// Writes a matrix, row by row. What is read lies column by column, so both go in squares.
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

/// The diagonal of `r` gets real and not negative by phases that `q` and `r` share.
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

/// The eigenvalues of a square matrix, then its eigenvectors in columns, each of length 1. Elements
/// must be finite; where the iteration does not converge, `out` stays as it is.
pub fn eigen(a: &[Complex<f64>], side: usize, out: &mut [Complex<f64>]) {
    let (a, scale) = tamed(a);
    let Ok(factors) = MatRef::from_row_major_slice(&a, side, side).eigen() else { return };
    let (values, vectors) = (factors.S().column_vector(), factors.U());
    let mut out = Out { rest: out };
    out.push((0..side).map(|index| values[index].times(scale)));
    let length = |column: usize| {
        let squares = (0..side).map(|row| vectors[(row, column)].square());
        squares.sum::<f64>().sqrt()
    };
    let lengths: Vec<f64> = (0..side).map(length).collect();
    out.matrix(side, side, |row, column| vectors[(row, column)] / lengths[column]);
}
