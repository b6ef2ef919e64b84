//! Products of a matrix and a vector, as reductions of its rows or columns.
//!
//! Products are added in the precision of the accumulator and rounded once.

use super::kernel::{
    RUNS_PER_PASS, Reducer, Rows, SHORT_RUN_LANES, accumulate, hide_lanes, merge_parts, piece_rows,
    reduce_columns, short_runs,
};
use super::map_reduce::Pairs;
use crate::context::{self, Cx};
use crate::kernels::elementwise::vectorize;
use crate::kernels::limits::PART_ELEMENTS;
use crate::kernels::number::Number;

/// Columns up to which the sums of a row are one vector in registers, measured by the family `contract` of
/// `benches/python/kernels.py`.
const NARROW: usize = 16;

/// Writes the product of each row of a matrix and a vector.
pub(crate) fn multiply_rows<T: Number>(cx: Cx<'_>, matrix: &[T], vector: &[T], out: &mut [T]) {
    if let [out] = out {
        *out = T::narrow(multiply_vectors(cx, matrix, vector));
        return;
    }
    let count = vector.len();
    cx.rows(out, 1, count, |first, out| {
        let row = |row: usize| Pairs {
            x: &matrix[(first + row) * count..][..count],
            y: vector,
            pair: T::wide_product,
        };
        short_runs(row, out.len(), sums::<T>(), |row, sum| out[row] = T::narrow(sum));
    });
}

/// Writes the sum of the rows of a matrix, each multiplied by its weight.
pub(crate) fn combine_rows<T: Number>(cx: Cx<'_>, weights: &[T], matrix: &[T], out: &mut [T]) {
    let inner = out.len();
    let step = T::add_product;
    let rows = piece_rows(inner);
    if inner > NARROW && weights.len() < 2 * rows {
        let rows = Rows { x: matrix, inner, weights };
        return reduce_columns(cx, rows, T::EMPTY_SUM, step, T::narrow, out);
    }
    let part = |index: usize| {
        let weights = &weights[index * rows..weights.len().min((index + 1) * rows)];
        let x = &matrix[index * rows * inner..][..weights.len() * inner];
        let rows = Rows { x, inner, weights };
        if inner <= NARROW {
            return combine_narrow_rows::<T>(rows);
        }
        let mut sums = context::filled(T::EMPTY_SUM, inner);
        accumulate(rows, 0, &mut sums, &step);
        sums
    };
    let sums = merge_parts(cx, weights.len().div_ceil(rows), part, T::add);
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::narrow(sum));
}

/// The sums of rows of few columns. Each row is read as if it had [`NARROW`] columns: the additional elements belong to
/// the next rows, and their sums are dropped.
fn combine_narrow_rows<T: Number>(Rows { x, inner, weights }: Rows<'_, T, T>) -> Vec<T::Sum> {
    let whole = weights.len().saturating_sub(NARROW.div_ceil(inner));
    let (pairs, _) = weights[..whole].as_chunks::<2>();
    let mut sums = [T::EMPTY_SUM; NARROW];
    vectorize(
        #[inline(always)]
        || {
            let mut lanes = [[T::EMPTY_SUM; NARROW]; 2];
            for (at, pair) in pairs.iter().enumerate() {
                let rows = &x[2 * at * inner..][..inner + NARROW];
                for side in 0..2 {
                    let row = &rows[side * inner..][..NARROW];
                    for lane in 0..NARROW {
                        lanes[side][lane] =
                            T::add_product(lanes[side][lane], row[lane], pair[side]);
                    }
                }
            }
            let [first, second] = hide_lanes(lanes);
            for lane in 0..NARROW {
                sums[lane] = T::add(first[lane], second[lane]);
            }
        },
    );
    let done = 2 * pairs.len();
    let rest = Rows { x: &x[done * inner..], inner, weights: &weights[done..] };
    accumulate(rest, 0, &mut sums[..inner], &T::add_product);
    sums[..inner].to_vec()
}

/// The product of two vectors, in several parts if they are long.
fn multiply_vectors<T: Number>(cx: Cx<'_>, x: &[T], y: &[T]) -> T::Sum {
    let part = |index: usize| {
        let range = index * PART_ELEMENTS..x.len().min((index + 1) * PART_ELEMENTS);
        let (x, y) = (&x[range.clone()], &y[range]);
        let count = x.len() / RUNS_PER_PASS / SHORT_RUN_LANES * SHORT_RUN_LANES;
        let run = |run: usize| {
            let [x, y] = [x, y].map(|vector| &vector[run * count..][..count]);
            Pairs { x, y, pair: T::wide_product }
        };
        let ends = x[RUNS_PER_PASS * count..].iter().zip(&y[RUNS_PER_PASS * count..]);
        let mut sum = ends.fold(T::EMPTY_SUM, |sum, (&x, &y)| T::add_product(sum, x, y));
        short_runs(run, RUNS_PER_PASS, sums::<T>(), |_, run| sum = T::add(sum, run));
        vec![sum]
    };
    merge_parts(cx, x.len().div_ceil(PART_ELEMENTS), part, T::add)[0]
}

fn sums<T: Number>() -> Reducer<
    T::Sum,
    impl Fn(T::Sum, T::Sum) -> T::Sum + Copy + Sync,
    impl Fn(T::Sum, T::Sum) -> T::Sum + Copy + Sync,
> {
    Reducer { start: T::EMPTY_SUM, step: T::add, merge: T::add }
}
