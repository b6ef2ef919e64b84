//! Products of matrices.
//!
//! Large products of floats use a [kernel](crate::kernels::matrix), which accumulates in the
//! precision of the elements. Products with a vector and small products are bound by memory or
//! overhead, so they accumulate in `f64` and are rounded once. Integers wrap.

use super::small;
use crate::context::{self, Cx};
use crate::kernels::elementwise::{vectorize, vectorize_fused};
use crate::kernels::limits::{BLOCK_ELEMENTS, CHECKED_PRODUCT, PART_ELEMENTS};
use crate::kernels::matrix::Kernels;
use crate::kernels::number::Number;
use crate::kernels::reduce::{SHORT_RUN_LANES, hide_lanes, merge_lanes, merge_parts};
use crate::kernels::strided::Strided;

// The constants are measured by the family `contract` of `benches/python/kernels.py`.

/// Independent partial sums of a product of two vectors, so that vector units are filled.
const SUM_LANES: usize = 32;

/// Columns up to which the sums of a row are one vector in registers, and the rows from which reading rows so pays.
const VECTOR_COLUMNS: usize = 16;
const MIN_VECTOR_ROWS: usize = 64;

/// Rows of the smallest part of a long sum of rows; one task computes a part.
const MIN_PART_ROWS: usize = 1 << 6;

/// Rows that are multiplied by a vector in one pass over the vector.
const ROWS_PER_PASS: usize = 4;

/// Rows that are added to the sums in one pass over the sums.
const WEIGHTS_PER_PASS: usize = 8;

/// Sums that are accumulated at a time, few enough to stay in the cache.
const TILE_COLUMNS: usize = 1024;

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

/// Multiplies each pair of matrices; `out` is a batch of `[rows][columns]`.
pub(super) fn matmul<T: Number + Kernels>(
    cx: Cx<'_>,
    sizes: Sizes,
    left: Factor<'_, T>,
    right: Factor<'_, T>,
    out: &mut [T],
) {
    let Sizes { rows, inner, columns, .. } = sizes;
    if inner == 0 || out.is_empty() {
        // Each result is an empty sum.
        out.fill(T::default());
        return;
    }
    let one = |index: usize, out: &mut [T]| {
        let (left, right) =
            (left.matrix(index, rows * inner), right.matrix(index, inner * columns));
        product(cx, sizes, left, right, out);
    };
    if small::applies(sizes) {
        return small::multiply(cx, sizes, left, right, out);
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

fn product<T: Number + Kernels>(
    cx: Cx<'_>,
    sizes: Sizes,
    left: Factor<'_, T>,
    right: Factor<'_, T>,
    out: &mut [T],
) {
    let Sizes { rows, inner, columns, .. } = sizes;
    if inner == 1 {
        return outer(cx, left.elements, right.elements, out);
    }
    if rows == 1 || columns == 1 {
        // A vector is contiguous in either memory order of its matrix.
        let (matrix, vector) = if columns == 1 { (left, right) } else { (right, left) };
        return if matrix.inner_first && out.len() > 1 {
            combined_rows(cx, vector.elements, matrix.elements, out);
        } else {
            runs(cx, matrix.elements, vector.elements, inner, out);
        };
    }
    if blocked(cx, sizes, left, right, out) {
        return;
    }
    let left = in_order(cx, left, rows, inner, false);
    let right = in_order(cx, right, columns, inner, true);
    cx.rows(out, columns, inner * columns, |first, out| {
        for (index, out) in out.chunks_exact_mut(columns).enumerate() {
            combined_rows(cx, &left[(first + index) * inner..][..inner], &right, out);
        }
    });
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

/// The elements in the given order of axes.
fn in_order<'a, T: Number>(
    cx: Cx<'_>,
    factor: Factor<'a, T>,
    outer: usize,
    inner: usize,
    inner_first: bool,
) -> std::borrow::Cow<'a, [T]> {
    if factor.inner_first == inner_first {
        return factor.elements.into();
    }
    let (rows, columns) = if factor.inner_first { (outer, inner) } else { (inner, outer) };
    let mut elements = context::filled(T::default(), rows * columns);
    Strided::new(0, [(rows, 1), (columns, rows as isize)]).read_all_bytes(
        cx,
        size_of::<T>(),
        bytemuck::cast_slice(factor.elements),
        bytemuck::cast_slice_mut(&mut elements),
    );
    elements.into()
}

/// `out[i]` is the product of row `i` of `matrix` and `vector`.
fn runs<T: Number>(cx: Cx<'_>, matrix: &[T], vector: &[T], inner: usize, out: &mut [T]) {
    if let [out] = out {
        *out = T::narrow(one_run(cx, matrix, vector));
        return;
    }
    // Convert the vector once, because all rows use it.
    let vector = context::collect_vec(vector.iter().map(|&y| T::widen(y)));
    cx.rows(out, 1, inner, |first, out| {
        let matrix = &matrix[first * inner..][..out.len() * inner];
        let (several, rest) = out.as_chunks_mut::<ROWS_PER_PASS>();
        let (rows, last) = matrix.split_at(several.len() * ROWS_PER_PASS * inner);
        vectorize_fused(
            #[inline(always)]
            |is_fused| {
                // Loops instead of iterator methods: the closure of a method may not be compiled
                // with the vector instructions.
                for (out, rows) in several.iter_mut().zip(rows.chunks_exact(ROWS_PER_PASS * inner))
                {
                    let sums: [T::Sum; ROWS_PER_PASS] = few_rows(rows, inner, &vector, is_fused);
                    for row in 0..ROWS_PER_PASS {
                        out[row] = T::narrow(sums[row]);
                    }
                }
                for (out, row) in rest.iter_mut().zip(last.chunks_exact(inner)) {
                    let [sum] = few_rows(row, inner, &vector, is_fused);
                    *out = T::narrow(sum);
                }
            },
        );
    });
}

/// The products of a few rows and a vector. The sums of several rows are independent, so they take
/// as long as the sum of one row, and memory is read faster at several places.
#[inline(always)]
fn few_rows<T: Number, const ROWS: usize>(
    rows: &[T],
    inner: usize,
    y: &[T::Sum],
    is_fused: bool,
) -> [T::Sum; ROWS] {
    let chunks = inner / SHORT_RUN_LANES;
    let whole = chunks * SHORT_RUN_LANES;
    // Slices of provably equal length need no bounds checks.
    let ys = &y.as_chunks::<SHORT_RUN_LANES>().0[..chunks];
    let mut xs: [&[[T; SHORT_RUN_LANES]]; ROWS] = [&[]; ROWS];
    for row in 0..ROWS {
        xs[row] = &rows[row * inner..][..whole].as_chunks().0[..chunks];
    }
    let mut lanes = [[T::EMPTY_SUM; SHORT_RUN_LANES]; ROWS];
    for at in 0..chunks {
        for row in 0..ROWS {
            for lane in 0..SHORT_RUN_LANES {
                let sum = &mut lanes[row][lane];
                *sum = T::add_product(*sum, xs[row][at][lane], ys[at][lane], is_fused);
            }
        }
    }
    let lanes = hide_lanes(lanes);
    let mut sums = [T::EMPTY_SUM; ROWS];
    for row in 0..ROWS {
        let mut ends = T::EMPTY_SUM;
        for (&x, &y) in rows[row * inner..][whole..inner].iter().zip(&y[whole..]) {
            ends = T::add_product(ends, x, y, is_fused);
        }
        sums[row] = T::add(merge_lanes(lanes[row], &T::add), ends);
    }
    sums
}

/// The product of two vectors, in several parts if they are long.
fn one_run<T: Number>(cx: Cx<'_>, x: &[T], y: &[T]) -> T::Sum {
    let part = |index: usize| {
        let range = index * PART_ELEMENTS..x.len().min((index + 1) * PART_ELEMENTS);
        let mut sum = T::EMPTY_SUM;
        vectorize_fused(
            #[inline(always)]
            |is_fused| sum = run(&x[range.clone()], &y[range.clone()], is_fused),
        );
        vec![sum]
    };
    merge_parts(cx, x.len().div_ceil(PART_ELEMENTS), part, T::add)[0]
}

/// The product of two vectors, or of one part of long vectors.
#[inline(always)]
fn run<T: Number>(x: &[T], y: &[T], is_fused: bool) -> T::Sum {
    let ((xs, x_tail), (ys, y_tail)) = (x.as_chunks::<SUM_LANES>(), y.as_chunks::<SUM_LANES>());
    let mut sums = [T::EMPTY_SUM; SUM_LANES];
    for (x, y) in xs.iter().zip(ys) {
        for lane in 0..SUM_LANES {
            sums[lane] = T::add_product(sums[lane], x[lane], T::widen(y[lane]), is_fused);
        }
    }
    let [sums] = hide_lanes([sums]);
    let mut ends = T::EMPTY_SUM;
    for (&x, &y) in x_tail.iter().zip(y_tail) {
        ends = T::add_product(ends, x, T::widen(y), false);
    }
    T::add(merge_lanes(sums, &T::add), ends)
}

/// `out` is the sum of the rows of `matrix`, each multiplied by its element of `weights`.
fn combined_rows<T: Number>(cx: Cx<'_>, weights: &[T], matrix: &[T], out: &mut [T]) {
    let columns = out.len();
    if columns <= VECTOR_COLUMNS && weights.len() >= MIN_VECTOR_ROWS {
        let sums = combined_short_rows(cx, weights, matrix, columns);
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::narrow(sum));
        return;
    }
    let rows = (PART_ELEMENTS / columns).max(MIN_PART_ROWS);
    if weights.len() >= 2 * rows {
        return combined_parts(cx, weights, matrix, rows, out);
    }
    cx.rows(out, 1, weights.len(), |first, out| {
        let mut scratch = cx.scratch();
        let buffer = scratch.elements::<T::Sum>(out.len().min(TILE_COLUMNS));
        for (tile, out) in out.chunks_mut(TILE_COLUMNS).enumerate() {
            let first = first + tile * TILE_COLUMNS;
            let sums = &mut buffer[..out.len()];
            sums.fill(T::EMPTY_SUM);
            add_rows(weights, matrix, columns, first, sums);
            for (out, &sum) in out.iter_mut().zip(&*sums) {
                *out = T::narrow(sum);
            }
        }
    });
}

/// The same as [`combined_rows`] in parts of `rows` rows, which are read sequentially.
fn combined_parts<T: Number>(cx: Cx<'_>, weights: &[T], matrix: &[T], rows: usize, out: &mut [T]) {
    let columns = out.len();
    let part = |index: usize| {
        let range = index * rows..weights.len().min((index + 1) * rows);
        let mut sums = context::filled(T::EMPTY_SUM, columns);
        add_rows(&weights[range.clone()], &matrix[range.start * columns..], columns, 0, &mut sums);
        sums
    };
    let sums = merge_parts(cx, weights.len().div_ceil(rows), part, T::add);
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::narrow(sum));
}

/// The sums of many rows of a few columns each. Each row is read as if it had [`VECTOR_COLUMNS`]
/// columns; the additional elements belong to the next row, and their sums are dropped.
fn combined_short_rows<T: Number>(
    cx: Cx<'_>,
    weights: &[T],
    matrix: &[T],
    columns: usize,
) -> Vec<T::Sum> {
    let part = |index: usize| {
        let weights = &weights[index * BLOCK_ELEMENTS..];
        let weights = &weights[..BLOCK_ELEMENTS.min(weights.len())];
        let matrix = &matrix[index * BLOCK_ELEMENTS * columns..];
        // The matrix continues for at least `VECTOR_COLUMNS` elements after the start of these rows, so
        // a vector load stays inside it. Two rows are accumulated at a time.
        let whole = (matrix.len() + columns).saturating_sub(VECTOR_COLUMNS) / columns;
        let (pairs, _) = weights[..whole.min(weights.len())].as_chunks::<2>();
        let mut sums = [T::EMPTY_SUM; VECTOR_COLUMNS];
        vectorize_fused(
            #[inline(always)]
            |is_fused| {
                let mut lanes = [[T::EMPTY_SUM; VECTOR_COLUMNS]; 2];
                for (at, weights) in pairs.iter().enumerate() {
                    let rows = &matrix[2 * at * columns..][..columns + VECTOR_COLUMNS];
                    for side in 0..2 {
                        let weight = T::widen(weights[side]);
                        let row = &rows[side * columns..][..VECTOR_COLUMNS];
                        for lane in 0..VECTOR_COLUMNS {
                            let sum = &mut lanes[side][lane];
                            *sum = T::add_product(*sum, row[lane], weight, is_fused);
                        }
                    }
                }
                let [first, second] = hide_lanes(lanes);
                for lane in 0..VECTOR_COLUMNS {
                    sums[lane] = T::add(first[lane], second[lane]);
                }
            },
        );
        let done = 2 * pairs.len();
        for (&weight, row) in weights[done..].iter().zip(matrix[done * columns..].chunks(columns)) {
            for (sum, &x) in sums.iter_mut().zip(row) {
                *sum = T::add_product(*sum, x, T::widen(weight), false);
            }
        }
        sums.to_vec()
    };
    merge_parts(cx, weights.len().div_ceil(BLOCK_ELEMENTS), part, T::add)
}

#[inline(always)]
fn add_rows<T: Number>(
    weights: &[T],
    matrix: &[T],
    columns: usize,
    first: usize,
    sums: &mut [T::Sum],
) {
    // Process several rows at once, so that the sums are read and written once for them.
    let (groups, rest) = weights.as_chunks::<WEIGHTS_PER_PASS>();
    let (matrix, last) = matrix.split_at(groups.len() * WEIGHTS_PER_PASS * columns);
    vectorize_fused(
        #[inline(always)]
        |is_fused| {
            for (weights, rows) in
                groups.iter().zip(matrix.chunks_exact(WEIGHTS_PER_PASS * columns))
            {
                let mut factors = [T::EMPTY_SUM; WEIGHTS_PER_PASS];
                let mut parts: [&[T]; WEIGHTS_PER_PASS] = [&[]; WEIGHTS_PER_PASS];
                for row in 0..WEIGHTS_PER_PASS {
                    factors[row] = T::widen(weights[row]);
                    parts[row] = &rows[row * columns + first..][..sums.len()];
                }
                for at in 0..sums.len() {
                    let mut sum = sums[at];
                    for row in 0..WEIGHTS_PER_PASS {
                        sum = T::add_product(sum, parts[row][at], factors[row], is_fused);
                    }
                    sums[at] = sum;
                }
            }
            for (&weight, row) in rest.iter().zip(last.chunks_exact(columns)) {
                let weight = T::widen(weight);
                for (sum, &x) in sums.iter_mut().zip(&row[first..]) {
                    *sum = T::add_product(*sum, x, weight, is_fused);
                }
            }
        },
    );
}

/// A large product, split among threads; `false` if the type has no blocked product.
fn blocked<T: Number + Kernels>(
    cx: Cx<'_>,
    sizes: Sizes,
    left: Factor<'_, T>,
    right: Factor<'_, T>,
    out: &mut [T],
) -> bool {
    let Some(multiply) = T::PRODUCT else { return false };
    let Sizes { rows, inner, columns, .. } = sizes;
    // A multiplication is much cheaper than a copy of an element. More tiles than threads, so that
    // one delayed thread does not delay the whole product, but few, because each packs its operands.
    let pays = cx.pays(out.len().saturating_mul(inner.div_ceil(16)));
    if !pays {
        multiply(sizes, left, right, 1, out);
        return true;
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
        cx.install(|| multiply(sizes, left, right, tiles, out));
    }
    true
}
