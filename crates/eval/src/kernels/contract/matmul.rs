//! Products of matrices.
//!
//! Large products of floats use a [kernel](crate::kernels::matrix), which accumulates in the
//! precision of the elements. Small products and products with a vector, which are
//! [reductions](crate::kernels::reduce), are bound by memory or overhead, so they accumulate in `f64`
//! and are rounded once. Integers wrap.

use super::small;
use crate::context::Cx;
use crate::kernels::elementwise::vectorize;
use crate::kernels::limits::CHECKED_PRODUCT;
use crate::kernels::matrix::{Kernels, Product};
use crate::kernels::number::Number;
use crate::kernels::reduce::{combine_rows, multiply_rows};

/// The sizes of a batch of products of `[rows][inner]` by `[inner][columns]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) batches: usize,
    pub(crate) rows: usize,
    pub(crate) inner: usize,
    pub(crate) columns: usize,
}

/// A batch of matrices, row-major, or one matrix for the whole batch.
#[derive(Clone, Copy)]
pub(crate) struct Factor<'a, T> {
    pub(crate) elements: &'a [T],
    /// True if the rows run over the inner axis.
    pub(crate) inner_first: bool,
}

impl<T> Factor<'_, T> {
    pub(super) fn matrix(self, index: usize, size: usize) -> Self {
        Self { elements: &self.elements[index * size % self.elements.len()..][..size], ..self }
    }
}

/// The operands of a batch of products.
#[derive(Clone, Copy)]
pub(crate) struct Factors<'a, T> {
    pub(crate) sizes: Sizes,
    pub(crate) left: Factor<'a, T>,
    pub(crate) right: Factor<'a, T>,
}

/// Multiplies each pair of matrices; `out` is a batch of `[rows][columns]`.
pub(super) fn matmul<T: Number + Kernels>(cx: Cx<'_>, factors: Factors<'_, T>, out: &mut [T]) {
    let Factors { sizes, left, right } = factors;
    let Sizes { rows, inner, columns, .. } = sizes;
    if inner == 0 || out.is_empty() {
        // Each result is an empty sum.
        out.fill(T::default());
        return;
    }
    let one = |index: usize, out: &mut [T]| {
        let (left, right) =
            (left.matrix(index, rows * inner), right.matrix(index, inner * columns));
        product(cx, Factors { sizes, left, right }, out);
    };
    if small::applies(sizes) {
        return small::multiply(cx, factors, out);
    }
    if sizes.batches == 1 {
        return one(0, out);
    }
    cx.rows(out, rows * columns, rows * inner * columns, |first, out| {
        for (index, out) in out.chunks_exact_mut(rows * columns).enumerate() {
            one(first + index, out);
        }
    });
}

fn product<T: Number + Kernels>(cx: Cx<'_>, factors: Factors<'_, T>, out: &mut [T]) {
    let Factors { sizes: Sizes { rows, inner, columns, .. }, left, right } = factors;
    if inner == 1 {
        return outer(cx, left.elements, right.elements, out);
    }
    if columns == 1 {
        return times_vector(cx, left, right.elements, out);
    }
    if rows == 1 {
        return times_vector(cx, right, left.elements, out);
    }
    if let Some(multiply) = T::PRODUCT {
        return blocked(cx, multiply, factors, out);
    }
    cx.rows(out, columns, inner * columns, |first, out| {
        let mut scratch = cx.scratch();
        let row = scratch.elements::<T>(inner);
        let step = if left.inner_first { rows } else { 1 };
        for (index, out) in (first..).zip(out.chunks_exact_mut(columns)) {
            let start = if left.inner_first { index } else { index * inner };
            let elements = left.elements[start..].iter().step_by(step);
            row.iter_mut().zip(elements).for_each(|(to, &x)| *to = x);
            times_vector(cx, right, row, out);
        }
    });
}

/// The product of a vector, which is contiguous in either memory order, and a matrix.
fn times_vector<T: Number>(cx: Cx<'_>, matrix: Factor<'_, T>, vector: &[T], out: &mut [T]) {
    if matrix.inner_first && out.len() > 1 {
        combine_rows(cx, vector, matrix.elements, out);
    } else {
        multiply_rows(cx, matrix.elements, vector, out);
    }
}

/// Each element of a column times each element of a row.
fn outer<T: Number>(cx: Cx<'_>, column: &[T], row: &[T], out: &mut [T]) {
    cx.rows(out, row.len(), row.len(), |first, out| {
        vectorize(
            #[inline(always)]
            || {
                for (&x, out) in column[first..].iter().zip(out.chunks_exact_mut(row.len())) {
                    out.iter_mut().zip(row).for_each(|(out, &y)| *out = T::times(x, y));
                }
            },
        );
    });
}

/// A large product, split among threads.
fn blocked<T: Number>(cx: Cx<'_>, multiply: Product<T>, factors: Factors<'_, T>, out: &mut [T]) {
    let Factors { sizes, left, right } = factors;
    let Sizes { rows, inner, columns, .. } = sizes;
    // A multiplication is much cheaper than a copy of an element. More tiles than threads, so that
    // one delayed thread does not delay the whole product, but few, because each packs its operands.
    let pays = cx.pays(out.len().saturating_mul(inner.div_ceil(16)));
    if !pays {
        return multiply(factors, 1, out);
    }
    let tiles = 2 * cx.threads();
    // Cancellation is checked between strips of rows.
    let checked = CHECKED_PRODUCT / inner.saturating_mul(columns) as u64;
    let height = match usize::try_from(checked).unwrap_or(usize::MAX).max(64) {
        height if height < rows && !left.inner_first => height,
        _ => rows,
    };
    for (strip, out) in out.chunks_mut(height * columns).enumerate() {
        if cx.is_cancelled() {
            break;
        }
        let rows = out.len() / columns;
        let elements = &left.elements[strip * height * inner..][..rows * inner];
        let (sizes, left) = (Sizes { rows, ..sizes }, Factor { elements, ..left });
        cx.install(|| multiply(Factors { sizes, left, right }, tiles, out));
    }
}
