//! Products with so few multiplications that setting up a large product takes longer, alone or in a
//! batch.

use super::matmul::{Factor, Factors, Sizes};
use crate::context::Cx;
use crate::kernels::elementwise::vectorize;
use crate::kernels::limits::SMALL_PRODUCT;
use crate::kernels::number::Number;

// The constant is measured by the family `contract` of `benches/python/kernels.py`.

/// Elements of a vector up to which its products with matrices count as small.
const SHORT_VECTOR: usize = 8;

/// Returns whether [`multiply`] is for these matrices. Long vectors have kernels of their own.
pub(super) fn applies(sizes: Sizes) -> bool {
    let Sizes { rows, inner, columns, .. } = sizes;
    let is_short = rows.min(columns) > 1 || inner <= SHORT_VECTOR;
    inner > 1 && is_short && rows * inner * columns <= SMALL_PRODUCT
}

/// Multiplies each pair of matrices. One task multiplies a part of the batch.
pub(super) fn multiply<T: Number>(cx: Cx<'_>, factors: Factors<'_, T>, out: &mut [T]) {
    let Factors { sizes: Sizes { rows, inner, columns, .. }, left, right } = factors;
    // Sums are accumulated side by side along the longer axis of a result: `(a b)^T = b^T a^T`.
    let (one, several, lines, width, steps) = if columns >= rows {
        (left, right, rows, columns, Steps { inner: 1, outer: columns })
    } else {
        (right, left, columns, rows, Steps { inner: columns, outer: 1 })
    };
    let layout =
        ProductSteps { lines, inner, width, one: Steps::of(one, lines, inner), out: steps };
    cx.rows(out, rows * columns, rows * inner * columns, |first, out| {
        let mut scratch = cx.scratch();
        let copy = scratch.elements::<T>(inner * width);
        vectorize(
            #[inline(always)]
            || {
                for (index, out) in out.chunks_exact_mut(rows * columns).enumerate() {
                    let one = one.matrix(first + index, lines * inner).elements;
                    let several = several.matrix(first + index, inner * width);
                    let several = in_rows(several, width, copy);
                    let mut at = 0;
                    while width - at >= 16 {
                        layout.multiply_lines::<T, 16>(one, several, at, out);
                        at += 16;
                    }
                    if width - at >= 8 {
                        layout.multiply_lines::<T, 8>(one, several, at, out);
                        at += 8;
                    }
                    if width - at >= 4 {
                        layout.multiply_lines::<T, 4>(one, several, at, out);
                        at += 4;
                    }
                    match width - at {
                        0 => {}
                        1 => layout.multiply_lines::<T, 1>(one, several, at, out),
                        2 => layout.multiply_lines::<T, 2>(one, several, at, out),
                        _ => layout.multiply_lines::<T, 3>(one, several, at, out),
                    }
                }
            },
        );
    });
}

/// The rows along the inner axis of a matrix, which are copied if they are not contiguous.
#[inline(always)]
fn in_rows<'a, T: Copy>(factor: Factor<'a, T>, width: usize, copy: &'a mut [T]) -> &'a [T] {
    if factor.inner_first {
        return factor.elements;
    }
    let inner = copy.len() / width;
    for (at, line) in factor.elements.chunks_exact(inner).enumerate() {
        for (index, &x) in line.iter().enumerate() {
            copy[index * width + at] = x;
        }
    }
    copy
}

/// The distances between neighbors along the inner axis of a matrix and along its other axis. A
/// result has its axis of sums side by side instead of the inner axis.
#[derive(Clone, Copy)]
struct Steps {
    inner: usize,
    outer: usize,
}

impl Steps {
    /// The steps of a matrix whose axis other than the inner one has this size.
    fn of<T>(factor: Factor<'_, T>, outer: usize, inner: usize) -> Self {
        if factor.inner_first {
            Steps { inner: outer, outer: 1 }
        } else {
            Steps { inner: 1, outer: inner }
        }
    }
}

/// The sizes and steps of a small product of `[lines][inner]` by `[inner][width]`.
#[derive(Clone, Copy)]
struct ProductSteps {
    lines: usize,
    inner: usize,
    width: usize,
    one: Steps,
    out: Steps,
}

impl ProductSteps {
    /// Returns `true` if all matrices are in row-major order with this number of columns.
    fn has_rows_of(&self, columns: usize) -> bool {
        self.one.inner == 1 && self.out.inner == 1 && self.width == columns
    }

    /// Computes `N` neighbors of each line, whose sums stay in registers.
    #[inline(always)]
    fn multiply_lines<T: Number, const N: usize>(
        self,
        one: &[T],
        several: &[T],
        first: usize,
        out: &mut [T],
    ) {
        if self.has_rows_of(N) {
            return multiply_rows::<T, N>(one, several, self.inner, out);
        }
        for line in 0..self.lines {
            let weights = &one[line * self.one.outer..];
            let mut sums = [T::EMPTY_SUM; N];
            for at in 0..self.inner {
                let weight = weights[at * self.one.inner];
                let row = &several[at * self.width + first..][..N];
                for lane in 0..N {
                    sums[lane] = T::add_product(sums[lane], weight, row[lane]);
                }
            }
            let out = &mut out[line * self.out.outer + first * self.out.inner..];
            for lane in 0..N {
                out[lane * self.out.inner] = T::narrow(sums[lane]);
            }
        }
    }
}

/// The same for matrices in row-major order whose rows have `N` elements. With lengths that the
/// compiler knows, a product of 8 rows takes half as long.
#[inline(always)]
fn multiply_rows<T: Number, const N: usize>(left: &[T], right: &[T], inner: usize, out: &mut [T]) {
    let ((right, _), (out, _)) = (right.as_chunks::<N>(), out.as_chunks_mut::<N>());
    for (weights, out) in left.chunks_exact(inner).zip(out) {
        let mut sums = [T::EMPTY_SUM; N];
        for (&weight, row) in weights.iter().zip(right) {
            for lane in 0..N {
                sums[lane] = T::add_product(sums[lane], weight, row[lane]);
            }
        }
        for lane in 0..N {
            out[lane] = T::narrow(sums[lane]);
        }
    }
}
