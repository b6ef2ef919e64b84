//! Products of matrices by [faer], whose kernels are written for the vector units at hand.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use num_complex::Complex;

/// A matrix to be multiplied.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    /// The elements, row by row, or column by column if it is transposed.
    pub elements: &'a [T],
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// Whether the elements of a column are neighbours, rather than those of a row.
    pub transposed: bool,
}

/// Numbers of which matrices are multiplied.
pub trait Multiply: Sized {
    /// Writes the rows from `first` on of `left right` into `out`, as many as it has room for.
    ///
    /// ```
    /// use nxla_factor::{Matrix, Multiply};
    ///
    /// let elements = &[1.0, 2.0, 3.0, 4.0];
    /// let a = Matrix { elements, rows: 2, columns: 2, transposed: false };
    /// let mut out = [0.0; 2];
    /// f64::multiply(a, Matrix { transposed: true, ..a }, 1, &mut out);
    /// assert_eq!(out, [11.0, 25.0]);
    /// ```
    fn multiply(left: Matrix<'_, Self>, right: Matrix<'_, Self>, first: usize, out: &mut [Self]);
}

macro_rules! products {
    ($($number:ty: $one:expr;)*) => {
        $(impl Multiply for $number {
            fn multiply(left: Matrix<'_, Self>, right: Matrix<'_, Self>, first: usize, out: &mut [Self]) {
                if right.columns == 0 {
                    return;
                }
                let rows = out.len() / right.columns;
                let out = MatMut::from_row_major_slice_mut(out, rows, right.columns);
                let left = view(left).subrows(first, rows);
                // The caller spreads rows over threads.
                matmul(out, Accum::Replace, left, view(right), $one, Par::Seq);
            }
        })*
    };
}
products! {
    f32: 1.0;
    f64: 1.0;
    Complex<f32>: Complex::new(1.0, 0.0);
    Complex<f64>: Complex::new(1.0, 0.0);
}

fn view<T>(matrix: Matrix<'_, T>) -> MatRef<'_, T> {
    let Matrix { elements, rows, columns, transposed } = matrix;
    if transposed {
        MatRef::from_column_major_slice(elements, rows, columns)
    } else {
        MatRef::from_row_major_slice(elements, rows, columns)
    }
}
