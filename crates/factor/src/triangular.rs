//! Triangular systems by [faer], in blocks that use matrix products.

use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_upper_triangular_in_place_with_conj,
};
use faer::{Conj, MatMut, MatRef, Par};
use num_complex::Complex;

use crate::share;

/// The interpretation of a triangular matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    /// The number of rows and columns.
    pub side: usize,
    /// True for the lower triangle after transposition, false for the upper triangle.
    pub lower: bool,
    /// True if the matrix is transposed.
    pub transposed: bool,
    /// True if each element is conjugated.
    pub conjugated: bool,
}

/// Element types with triangular solves.
pub trait Substitute: Sized {
    /// Solves `a y = x` for each column of `x` in place. `x` has as many rows as `a`, in row-major
    /// order, or in column-major order if `transposed`. About `parts` threads share the columns.
    /// The other triangle of `a` is not read.
    ///
    /// ```
    /// use nxla_factor::{Substitute, Triangle};
    ///
    /// let mut x = [2.0, 9.0];
    /// let a = Triangle { side: 2, lower: true, transposed: false, conjugated: false };
    /// f64::substitute(&[2.0, f64::NAN, 3.0, 3.0], a, &mut x, false, 1);
    /// assert_eq!(x, [1.0, 2.0]);
    /// ```
    fn substitute(a: &[Self], how: Triangle, x: &mut [Self], transposed: bool, parts: usize);
}

/// The minimum number of columns of a part.
const LEAST: usize = 32;

macro_rules! substitutes {
    ($($number:ty)*) => {
        $(impl Substitute for $number {
            fn substitute(
                a: &[Self],
                how: Triangle,
                x: &mut [Self],
                transposed: bool,
                parts: usize,
            ) {
                let a = MatRef::from_row_major_slice(a, how.side, how.side);
                let a = if how.transposed { a.transpose() } else { a };
                let columns = x.len().checked_div(how.side).unwrap_or(0);
                let x = if transposed {
                    MatMut::from_column_major_slice_mut(x, how.side, columns)
                } else {
                    MatMut::from_row_major_slice_mut(x, how.side, columns)
                };
                let conj = if how.conjugated { Conj::Yes } else { Conj::No };
                let solve = |x: MatMut<'_, Self>| {
                    if how.lower {
                        solve_lower_triangular_in_place_with_conj(a, conj, x, Par::Seq);
                    } else {
                        solve_upper_triangular_in_place_with_conj(a, conj, x, Par::Seq);
                    }
                };
                let parts = parts.min(columns / LEAST);
                if parts < 2 {
                    return solve(x);
                }
                share::each(columns_of(x, columns.div_ceil(parts)), solve);
            }
        })*
    };
}
substitutes!(f32 f64 Complex<f64>);

/// Splits a matrix into parts of `width` columns; the last part may have fewer.
fn columns_of<T>(mut x: MatMut<'_, T>, width: usize) -> Vec<MatMut<'_, T>> {
    let mut parts = Vec::new();
    while x.ncols() > width {
        let (part, rest) = x.split_at_col_mut(width);
        parts.push(part);
        x = rest;
    }
    parts.push(x);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_solve_their_systems() {
        let side = 70;
        let a: Vec<f64> =
            (0..side * side)
                .map(|at| {
                    if at % (side + 1) == 0 { 9.0 } else { f64::from((at * 37 % 11) as u32) / 40.0 }
                })
                .collect();
        for lower in [true, false] {
            for turned in [true, false] {
                for transposed in [true, false] {
                    let how = Triangle { side, lower, transposed: turned, conjugated: false };
                    let b: Vec<f64> = (0..side * 100).map(|at| (at % 13) as f64).collect();
                    let mut x = b.clone();
                    f64::substitute(&a, how, &mut x, transposed, 3);
                    let element = |row: usize, column: usize| {
                        if turned { a[column * side + row] } else { a[row * side + column] }
                    };
                    let place = |row: usize, column: usize| {
                        if transposed { column * side + row } else { row * 100 + column }
                    };
                    for row in 0..side {
                        let known = if lower { 0..row + 1 } else { row..side };
                        for column in 0..100 {
                            let products =
                                known.clone().map(|k| element(row, k) * x[place(k, column)]);
                            let rest = products.sum::<f64>() - b[place(row, column)];
                            assert!(rest.abs() < 1e-9, "{how:?} {row} {column}: {rest}");
                        }
                    }
                }
            }
        }
    }
}
