//! Matrix products by [faer], whose kernels use the vector units of the machine.
//!
//! Threads work on tiles of the result, which are strips of columns unless there are few columns. A
//! tile packs its part of the right matrix, which takes long if that is transposed, so that strips of
//! rows would be slower.

use std::ops::{AddAssign, Range};

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use num_complex::Complex;

use crate::share;

/// An operand of a product.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    /// The elements, in row-major order, or in column-major order if `transposed`.
    pub elements: &'a [T],
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// True if the elements are in column-major order.
    pub transposed: bool,
}

/// Element types with matrix products.
pub trait Multiply: Sized {
    /// Writes `left right` to `out`, in about `tiles` parallel parts if this is more than one.
    ///
    /// ```
    /// use nxla_factor::{Matrix, Multiply};
    ///
    /// let elements = &[1.0, 2.0, 3.0, 4.0];
    /// let a = Matrix { elements, rows: 2, columns: 2, transposed: false };
    /// let mut out = [0.0; 4];
    /// f64::multiply(a, Matrix { transposed: true, ..a }, 1, &mut out);
    /// assert_eq!(out, [5.0, 11.0, 11.0, 25.0]);
    /// ```
    fn multiply(left: Matrix<'_, Self>, right: Matrix<'_, Self>, tiles: usize, out: &mut [Self]);
}

macro_rules! products {
    ($($number:ty: $one:expr;)*) => {
        $(impl Multiply for $number {
            fn multiply(left: Matrix<'_, Self>, right: Matrix<'_, Self>, tiles: usize, out: &mut [Self]) {
                let out = MatMut::from_row_major_slice_mut(out, left.rows, right.columns);
                let (left, right) = (view(left), view(right));
                if out.nrows().max(out.ncols()) < 2 * LEAST && left.ncols() >= 2 * PART {
                    let part = |columns: Range<usize>, out: MatMut<'_, Self>| {
                        let (first, count) = (columns.start, columns.len());
                        let left = left.subcols(first, count);
                        let right = right.subrows(first, count);
                        matmul(out, Accum::Replace, left, right, $one, Par::Seq);
                    };
                    return in_parts(left.ncols(), tiles > 1, out, part);
                }
                let multiply = |tile: Tile<'_, Self>| {
                    let left = left.subrows(tile.row, tile.out.nrows());
                    let right = right.subcols(tile.column, tile.out.ncols());
                    matmul(tile.out, Accum::Replace, left, right, $one, Par::Seq);
                };
                share::each(tiled(out, tiles), multiply);
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

/// The number of columns of the left operand in one part of a long sum whose result is a single
/// tile, and the maximum number of parts. It does not depend on the number of threads, because
/// results must not.
const PART: usize = 2048;
const MOST_PARTS: usize = 16;

/// Computes the product as a sum of products of parts of the operands, which threads can share.
fn in_parts<T: Copy + Default + AddAssign + Send>(
    columns: usize,
    is_shared: bool,
    mut out: MatMut<'_, T>,
    multiply: impl Fn(Range<usize>, MatMut<'_, T>) + Sync,
) {
    let (height, width) = (out.nrows(), out.ncols());
    let length = columns.div_ceil((columns / PART).min(MOST_PARTS));
    let firsts = (0..columns).step_by(length);
    let mut parts: Vec<(Range<usize>, Vec<T>)> = firsts
        .map(|first| (first..columns.min(first + length), vec![T::default(); height * width]))
        .collect();
    let product = |(range, product): &mut (Range<usize>, Vec<T>)| {
        multiply(range.clone(), MatMut::from_row_major_slice_mut(product, height, width));
    };
    if is_shared {
        share::each(parts.iter_mut().collect(), product);
    } else {
        parts.iter_mut().for_each(product);
    }
    // Pairwise summation keeps the error of long sums small.
    let mut step = 1;
    while step < parts.len() {
        for index in (step..parts.len()).step_by(2 * step) {
            let (before, after) = parts.split_at_mut(index);
            let sums = &mut before[index - step].1;
            sums.iter_mut().zip(&after[0].1).for_each(|(sum, &x)| *sum += x);
        }
        step *= 2;
    }
    for (at, &sum) in parts[0].1.iter().enumerate() {
        out[(at / width, at % width)] = sum;
    }
}

/// A part of a result with its position.
struct Tile<'a, T> {
    row: usize,
    column: usize,
    out: MatMut<'a, T>,
}

/// The minimum number of rows or columns of a tile. The width of a tile is a multiple of this number, because kernels
/// for AVX-512 compute up to 64 columns at a time.
const LEAST: usize = 64;

/// Splits a result into at least `wanted` tiles, if it is large enough.
fn tiled<T>(out: MatMut<'_, T>, wanted: usize) -> Vec<Tile<'_, T>> {
    let (rows, columns) = (out.nrows(), out.ncols());
    let (mut height, mut width) = (rows, columns);
    // A few columns beyond the last strip belong to it, because a product with one column is summed in another order.
    let strips = |width: usize| ((columns + width).saturating_sub(LEAST) / width.max(1)).max(1);
    while rows.div_ceil(height.max(1)) * strips(width) < wanted {
        if width >= 2 * LEAST {
            width = width.div_ceil(2).next_multiple_of(LEAST);
        } else if height >= 2 * LEAST {
            height = height.div_ceil(2);
        } else {
            break;
        }
    }
    let mut tiles = Vec::with_capacity(wanted);
    let (mut rest, mut row) = (out, 0);
    loop {
        let (mut strip, below) = rest.split_at_row_mut(height.min(rows - row));
        let mut column = 0;
        loop {
            let remaining = columns - column;
            let count = if remaining < width + LEAST { remaining } else { width };
            let (out, right) = strip.split_at_col_mut(count);
            tiles.push(Tile { row, column, out });
            (strip, column) = (right, column + count);
            if column >= columns {
                break;
            }
        }
        (rest, row) = (below, row + height);
        if row >= rows {
            return tiles;
        }
    }
}

fn view<T>(matrix: Matrix<'_, T>) -> MatRef<'_, T> {
    let Matrix { elements, rows, columns, transposed } = matrix;
    if transposed {
        MatRef::from_column_major_slice(elements, rows, columns)
    } else {
        MatRef::from_row_major_slice(elements, rows, columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_results_of_all_shapes_once() {
        for (rows, columns) in [(1, 1), (1000, 3), (3, 1000), (300, 500), (129, 128), (64, 64)] {
            for wanted in [1, 2, 8, 100] {
                let mut elements = vec![0.0; rows * columns];
                let out = MatMut::from_row_major_slice_mut(&mut elements, rows, columns);
                let tiles = tiled(out, wanted);
                for mut tile in tiles {
                    for i in 0..tile.out.nrows() {
                        for j in 0..tile.out.ncols() {
                            tile.out[(i, j)] += ((tile.row + i) * columns + tile.column + j) as f64;
                        }
                    }
                }
                assert!(elements.iter().enumerate().all(|(at, &x)| x == at as f64));
            }
        }
    }

    #[test]
    fn partial_sums_add_up_to_the_product() {
        for columns in [2 * PART, 2 * PART + 1, 40 * PART + 17] {
            let elements: Vec<f64> =
                (0..3 * columns).map(|at| f64::from((at * 37 % 101) as u32)).collect();
            let left = Matrix { elements: &elements, rows: 3, columns, transposed: false };
            let right = Matrix { rows: columns, columns: 3, transposed: true, ..left };
            let mut out = [0.0; 9];
            f64::multiply(left, right, 1, &mut out);
            for (at, &found) in out.iter().enumerate() {
                let row = |index: usize| &elements[index * columns..][..columns];
                let pairs = row(at / 3).iter().zip(row(at % 3));
                // Integers, so that sums are exact.
                assert_eq!(found, pairs.map(|(x, y)| x * y).sum::<f64>(), "{columns}");
            }
        }
    }

    #[test]
    fn tile_count_does_not_change_results() {
        let elements: Vec<f64> = (0..300 * 200).map(|at| f64::from(at * 37 % 101)).collect();
        let left = Matrix { elements: &elements, rows: 300, columns: 200, transposed: false };
        let right = Matrix { rows: 200, columns: 300, transposed: true, ..left };
        let product = |tiles| {
            let mut out = vec![0.0; 300 * 300];
            f64::multiply(left, right, tiles, &mut out);
            out
        };
        // The elements are integers, so sums are exact in any order.
        assert!(product(1) == product(20));
    }
}
