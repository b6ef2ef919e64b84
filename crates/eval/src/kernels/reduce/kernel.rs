//! The loops of uniform reductions.
//!
//! Each result is computed from a fixed tree of partial results, so that the bits depend neither on the number of
//! threads nor on the machine.

use std::hint::black_box;
use std::ops::Range;

use bytemuck::cast_slice;
use nxla_expr::ReduceOp;
use nxla_tensor::{DType, Element, Scalar};

use super::plane::Plane;
use crate::context::{self, Cx};
use crate::kernels::elementwise::vectorize;
use crate::kernels::limits::{BLOCK_ELEMENTS, PART_ELEMENTS};
use crate::kernels::ordered::worst;

// The constants are measured by the families `reduce` and `norm` of `benches/python/kernels.py`.

/// Independent partial results of a run, so that vector units are filled.
const RUN_LANES: usize = 16;

/// Groups of lanes that are accumulated in rotation, and the elements of a round.
pub(super) const GROUPS: usize = 4;
pub(crate) const ROUND: usize = GROUPS * RUN_LANES;

/// The length below which a run has fewer lanes, which take less time to combine, and several runs are reduced in one
/// pass. Runs that arrive in parts are longer.
pub(super) const SHORT_RUN: usize = 1024;

/// Independent partial results of a short run.
pub(super) const SHORT_RUN_LANES: usize = 8;

/// Short runs that are reduced in one pass.
pub(super) const RUNS_PER_PASS: usize = 4;

/// Accumulators that are updated at a time: few enough to stay in the cache, and enough for long reads of a row,
/// because prefetching starts anew with each read.
const TILE_COLUMNS: usize = 1024;

/// Results from which threads divide the results. With fewer results, threads divide the elements.
const MIN_SHARED_RESULTS: usize = 8;

/// Results below which each thread of a long reduction computes partial results. With more results, threads divide the
/// results.
const MAX_PARTIAL_RESULTS: usize = 64;

/// Rows of few columns that are reduced as one row.
const JOINED_ROWS: usize = 16;

/// Rows of few columns from which joining rows pays.
const MIN_NARROW_ROWS: usize = 4 * JOINED_ROWS;

/// Rows that are added to the accumulators in one pass.
const ROWS_PER_PASS: usize = 4;

/// Rows of the smallest partial result of a long reduction with several columns, so that there are few partial results.
const MIN_PART_ROWS: usize = 128;

/// An associative operation: the function that adds an element, and the function that combines
/// partial results.
#[derive(Clone, Copy)]
pub(super) struct Reducer<A, S, M> {
    /// The neutral element.
    pub(super) start: A,
    pub(super) step: S,
    pub(super) merge: M,
}

/// The function that adds an element to a partial result.
pub(super) trait Step<A, T>: Fn(A, T) -> A + Copy + Sync {}
impl<A, T, F: Fn(A, T) -> A + Copy + Sync> Step<A, T> for F {}

/// A partial result.
pub(crate) trait Sum: bytemuck::Pod + Send + Sync {}
impl<A: bytemuck::Pod + Send + Sync> Sum for A {}

/// Returns true if a reduction finds the largest element, and not the smallest one. True is larger than false.
pub(super) fn finds_largest(op: ReduceOp) -> bool {
    matches!(op, ReduceOp::Max | ReduceOp::Any)
}

/// The result of an extremum of an empty set, in the dtype of the operand, which may be narrower
/// than the compute dtype. Other reductions do not use it.
pub(super) fn neutral(op: ReduceOp, dtype: DType) -> Scalar {
    match op {
        ReduceOp::Max | ReduceOp::Min => worst(dtype, finds_largest(op)),
        ReduceOp::Any | ReduceOp::All => worst(DType::Pred, finds_largest(op)),
        ReduceOp::Sum | ReduceOp::Product => Scalar::UInt(0),
    }
}

/// The operand of a reduction.
#[derive(Clone, Copy)]
pub(crate) enum Elements<'a> {
    /// Stored elements: the middle part of a plane.
    Stored(&'a [u8], Plane),
    /// Elements that are computed during the reduction, and their number, see [`Producer`].
    Computed(usize, &'a Producer<'a>),
}

/// Passes a range of elements to a function, block by block. All blocks but the last have a multiple of [`ROUND`]
/// elements.
pub(crate) type Producer<'a> = dyn Fn(Range<usize>, &mut dyn FnMut(&[u8])) + Sync + 'a;

/// Elements per piece of a reduction of `len` elements to `inner` results.
pub(crate) fn piece(len: usize, inner: usize) -> usize {
    if len >= 2 * PART_ELEMENTS { piece_rows(inner) * inner } else { len }
}

/// Rows of `inner` elements per piece of a long reduction.
pub(super) fn piece_rows(inner: usize) -> usize {
    (PART_ELEMENTS / inner).max(MIN_PART_ROWS)
}

/// Returns true if `count` rows of `inner` elements are reduced piece by piece.
pub(crate) fn is_in_pieces(count: usize, inner: usize) -> bool {
    count * inner >= 2 * PART_ELEMENTS && inner <= BLOCK_ELEMENTS && count >= 2 * MIN_PART_ROWS
}

/// Reduces elements, to one result for each run of a plane.
pub(super) fn reduce<T: Element, A: Sum, R: Element>(
    cx: Cx<'_>,
    x: Elements<'_>,
    reducer: Reducer<A, impl Step<A, T>, impl Step<A, A>>,
    finish: impl Fn(A) -> R + Sync,
    out: &mut [R],
) {
    match x {
        Elements::Stored(x, plane) => in_plane(cx, cast_slice(x), plane, reducer, finish, out),
        Elements::Computed(len, produce) => fill_computed(cx, len, produce, reducer, &finish, out),
    }
}

/// Reduces rows that have one element for each result, piece by piece.
fn fill_computed<T: Element, A: Sum, R>(
    cx: Cx<'_>,
    len: usize,
    produce: &Producer<'_>,
    reducer: Reducer<A, impl Step<A, T>, impl Step<A, A>>,
    finish: &impl Fn(A) -> R,
    out: &mut [R],
) {
    let inner = out.len();
    let piece = piece(len, inner);
    let part = |index: usize| {
        let range = index * piece..len.min((index + 1) * piece);
        if inner == 1 {
            let mut partial = Partial::new(reducer.start);
            produce(range, &mut |block| partial.add(cast_slice(block), &reducer.step));
            return vec![partial.finish(&reducer.merge)];
        }
        let mut sums = context::filled(reducer.start, inner);
        let mut column = 0;
        produce(range, &mut |block| {
            column = add_elements(&mut sums, column, cast_slice(block), reducer.step);
        });
        sums
    };
    let count = if len == piece { 1 } else { len.div_ceil(piece) };
    for (out, sum) in out.iter_mut().zip(merge_parts(cx, count, part, reducer.merge)) {
        *out = finish(sum);
    }
}

/// Adds elements to the accumulators of a row, from this column on, and returns the next column.
fn add_elements<T: Element, A: Copy>(
    sums: &mut [A],
    mut column: usize,
    mut x: &[T],
    step: impl Step<A, T>,
) -> usize {
    let inner = sums.len();
    while !x.is_empty() {
        let width = x.len().min(inner - column);
        let whole = if column == 0 { x.len() / inner * inner } else { 0 };
        let (now, later) = x.split_at(whole.max(width));
        if whole > 0 {
            accumulate(Rows::new(now, inner), 0, sums, &without_weight(step));
        } else {
            let sums = &mut sums[column..column + width];
            accumulate(Rows::new(now, width), 0, sums, &without_weight(step));
            column = (column + width) % inner;
        }
        x = later;
    }
    column
}

/// Reduces the middle part of a plane.
fn in_plane<T: Element, A: Sum, R: Element>(
    cx: Cx<'_>,
    x: &[T],
    plane: Plane,
    reducer: Reducer<A, impl Step<A, T>, impl Step<A, A>>,
    finish: impl Fn(A) -> R + Sync,
    out: &mut [R],
) {
    let Plane { times, outer, count, inner } = plane;
    let block = count * inner;
    let by_rows = outer == 1 && is_in_pieces(count, inner);
    let is_narrow = inner < RUN_LANES && count >= MIN_NARROW_ROWS;
    if block == 0 || times == 0 {
        out.fill(finish(reducer.start));
    } else if times > 1 {
        at_both_ends(cx, x, plane, reducer, &finish, out);
    } else if block >= 2 * PART_ELEMENTS && (outer * inner < MAX_PARTIAL_RESULTS || by_rows) {
        // Few results of many elements: reduce pieces in parallel, then combine the partial
        // results.
        for (x, out) in x.chunks_exact(block).zip(out.chunks_exact_mut(inner)) {
            let read = |range: Range<usize>, add: &mut dyn FnMut(&[u8])| add(cast_slice(&x[range]));
            fill_computed(cx, block, &read, reducer, &finish, out);
        }
    } else if inner == 1 {
        cx.rows(out, 1, count, |first, out| {
            runs(&x[first * count..][..out.len() * count], count, reducer, &finish, out);
        });
    } else if outer == 1 && !is_narrow {
        let step = without_weight(reducer.step);
        reduce_columns(cx, Rows::new(x, inner), reducer.start, step, finish, out);
    } else {
        cx.rows(out, inner, block, |first, out| {
            let blocks = x[first * block..].chunks_exact(block);
            for (x, out) in blocks.zip(out.chunks_exact_mut(inner)) {
                if is_narrow {
                    narrow(x, inner, reducer, &finish, out);
                } else {
                    let step = without_weight(reducer.step);
                    columns(cx, Rows::new(x, inner), 0, reducer.start, &step, &finish, out);
                }
            }
        });
    }
}

/// Reduces the first part and the last part of a plane.
fn at_both_ends<T: Element, A: Sum, R: Element>(
    cx: Cx<'_>,
    x: &[T],
    plane: Plane,
    reducer: Reducer<A, impl Step<A, T>, impl Step<A, A>>,
    finish: &(impl Fn(A) -> R + Sync),
    out: &mut [R],
) {
    let Plane { times, outer, count, .. } = plane;
    let part =
        |time: usize, index: usize| run(&x[(time * outer + index) * count..][..count], reducer);
    if outer < MIN_SHARED_RESULTS {
        let parts = cx.collect(times, &|time| -> Vec<A> {
            (0..outer).map(|index| part(time, index)).collect()
        });
        for (index, out) in out.iter_mut().enumerate() {
            let parts = parts.iter().map(|parts| parts[index]);
            *out = finish(parts.fold(reducer.start, reducer.merge));
        }
        return;
    }
    cx.rows(out, 1, times * count, |first, out| {
        for (index, out) in out.iter_mut().enumerate() {
            let parts = (0..times).map(|time| part(time, first + index));
            *out = finish(parts.fold(reducer.start, reducer.merge));
        }
    });
}

/// Reduces runs of `count` contiguous elements to one result each.
fn runs<T: Element, A: Sum, R>(
    x: &[T],
    count: usize,
    reducer: Reducer<A, impl Step<A, T>, impl Step<A, A>>,
    finish: &impl Fn(A) -> R,
    out: &mut [R],
) {
    match count {
        2 => tiny_runs::<T, A, R, 2>(x, reducer, finish, out),
        3 => tiny_runs::<T, A, R, 3>(x, reducer, finish, out),
        4 => tiny_runs::<T, A, R, 4>(x, reducer, finish, out),
        // A short row of bytes does not fill a vector.
        ..SHORT_RUN if size_of::<T>() > 1 => {
            let row = |row: usize| &x[row * count..][..count];
            short_runs(row, out.len(), reducer, |index, sum| out[index] = finish(sum));
        }
        _ => {
            for (x, out) in x.chunks_exact(count).zip(out) {
                *out = finish(run(x, reducer));
            }
        }
    }
}

/// Elements that are reduced in order.
pub(super) trait ReducedRun<T>: Copy {
    fn len(self) -> usize;
    /// The first elements. Runs of provably equal length need no bounds checks.
    fn take(self, count: usize) -> Self;
    /// The chunk with this index, if the elements are divided into chunks of `N`.
    fn chunk<const N: usize>(self, index: usize) -> [T; N];
}

impl<T: Copy> ReducedRun<T> for &[T] {
    #[inline(always)]
    fn len(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn take(self, count: usize) -> Self {
        &self[..count]
    }

    #[inline(always)]
    fn chunk<const N: usize>(self, index: usize) -> [T; N] {
        self.as_chunks().0[index]
    }
}

/// Reduces `count` runs of one length of fewer than [`SHORT_RUN`] elements. Several runs are reduced
/// together, because the additions of one run depend on each other. The order of additions in a run
/// does not depend on the other runs. The last run is repeated to fill the last group.
pub(super) fn short_runs<T: Copy, U: ReducedRun<T>, A: Copy>(
    run: impl Fn(usize) -> U,
    count: usize,
    reducer: Reducer<A, impl Step<A, T>, impl Step<A, A>>,
    mut put: impl FnMut(usize, A),
) {
    vectorize(
        #[inline(always)]
        || {
            for first in (0..count).step_by(RUNS_PER_PASS) {
                let mut runs = [run(first); RUNS_PER_PASS];
                for (at, next) in runs.iter_mut().enumerate() {
                    *next = run((first + at).min(count - 1));
                }
                let sums = side_by_side(runs, &reducer);
                for (at, &sum) in sums.iter().enumerate().take(count - first) {
                    put(first + at, sum);
                }
            }
        },
    );
}

/// Reduces runs of one length in lockstep. Loops instead of iterators, because a closure that is
/// not inlined is not vectorized.
#[inline(always)]
fn side_by_side<T: Copy, U: ReducedRun<T>, A: Copy>(
    runs: [U; RUNS_PER_PASS],
    Reducer { start, step, merge }: &Reducer<A, impl Step<A, T>, impl Step<A, A>>,
) -> [A; RUNS_PER_PASS] {
    let len = runs[0].len();
    let (mut runs, mut lanes) = (runs, [[*start; SHORT_RUN_LANES]; RUNS_PER_PASS]);
    for run in &mut runs {
        *run = run.take(len);
    }
    for index in 0..len / SHORT_RUN_LANES {
        for at in 0..RUNS_PER_PASS {
            lanes[at] = add_lanes(lanes[at], &runs[at].chunk(index), step);
        }
    }
    let (lanes, mut sums) = (hide_lanes(lanes), [*start; RUNS_PER_PASS]);
    for at in 0..RUNS_PER_PASS {
        let mut ends = *start;
        for index in len / SHORT_RUN_LANES * SHORT_RUN_LANES..len {
            let [x] = runs[at].chunk(index);
            ends = step(ends, x);
        }
        sums[at] = merge(merge_lanes(lanes[at], merge), ends);
    }
    sums
}

/// Reduces runs of so few elements that the loop is unrolled.
fn tiny_runs<T: Element, A: Sum, R, const N: usize>(
    x: &[T],
    reducer: Reducer<A, impl Step<A, T>, impl Step<A, A>>,
    finish: &impl Fn(A) -> R,
    out: &mut [R],
) {
    let (runs, _) = x.as_chunks::<N>();
    vectorize(
        #[inline(always)]
        || {
            for (run, out) in runs.iter().zip(out) {
                *out = finish(run.iter().fold(reducer.start, |a, &x| (reducer.step)(a, x)));
            }
        },
    );
}

/// Reduces one run of contiguous elements.
#[inline(always)]
fn run<T: Element, A: Copy>(x: &[T], reducer: Reducer<A, impl Step<A, T>, impl Step<A, A>>) -> A {
    if x.len() < RUN_LANES {
        return x.iter().fold(reducer.start, |a, &x| (reducer.step)(a, x));
    }
    let Reducer { start, step, merge } = reducer;
    let (chunks, tail) = x.as_chunks::<RUN_LANES>();
    let mut lanes = [start; RUN_LANES];
    vectorize(
        #[inline(always)]
        || {
            let groups = add_chunks([[start; RUN_LANES]; GROUPS], chunks, &step);
            lanes = merge_groups(&groups, &merge);
        },
    );
    let ends = tail.iter().fold(start, |a, &x| step(a, x));
    merge(merge_lanes(lanes, &merge), ends)
}

/// The state of a run of contiguous elements that arrives in parts. All parts except the last have
/// a multiple of [`ROUND`] elements; the result does not depend on the boundaries.
struct Partial<A> {
    groups: [[A; RUN_LANES]; GROUPS],
    /// The partial result of the elements after the last whole chunk.
    ends: A,
}

impl<A: Copy> Partial<A> {
    fn new(start: A) -> Self {
        Self { groups: [[start; RUN_LANES]; GROUPS], ends: start }
    }

    #[inline(always)]
    fn add<T: Element>(&mut self, x: &[T], step: &impl Fn(A, T) -> A) {
        let (chunks, tail) = x.as_chunks::<RUN_LANES>();
        vectorize(
            #[inline(always)]
            || self.groups = add_chunks(self.groups, chunks, step),
        );
        self.ends = tail.iter().fold(self.ends, |a, &x| step(a, x));
    }

    fn finish(self, merge: &impl Fn(A, A) -> A) -> A {
        merge(merge_lanes(merge_groups(&self.groups, merge), merge), self.ends)
    }
}

/// Adds chunks to four groups of lanes in rotation, because four independent additions take as long
/// as one.
#[inline(always)]
pub(super) fn add_chunks<T: Element, A: Copy>(
    groups: [[A; RUN_LANES]; GROUPS],
    chunks: &[[T; RUN_LANES]],
    step: &impl Fn(A, T) -> A,
) -> [[A; RUN_LANES]; GROUPS] {
    let (iterations, rest) = chunks.as_chunks::<GROUPS>();
    // Separate local variables stay in registers, unlike elements of the array.
    let [mut a, mut b, mut c, mut d] = groups;
    for [x, y, z, w] in iterations {
        a = add_lanes(a, x, step);
        b = add_lanes(b, y, step);
        c = add_lanes(c, z, step);
        d = add_lanes(d, w, step);
        separate_iterations();
    }
    for x in rest {
        a = add_lanes(a, x, step);
    }
    hide_lanes([a, b, c, d])
}

/// Separates the iterations of a loop over groups of lanes. Otherwise the compiler may reorder
/// operations and combine one lane of several iterations in a vector, which gathers elements.
#[inline(always)]
fn separate_iterations() {
    black_box(());
}

/// Hides the lanes of several runs from the optimizer, which would otherwise add some lanes
/// separately to suit the final combination.
#[inline(always)]
pub(crate) fn hide_lanes<A, const N: usize, const RUNS: usize>(
    lanes: [[A; N]; RUNS],
) -> [[A; N]; RUNS] {
    black_box(lanes)
}

/// Combines the groups of lanes.
#[inline(always)]
fn merge_groups<A: Copy>(
    [a, b, c, d]: &[[A; RUN_LANES]; GROUPS],
    merge: &impl Fn(A, A) -> A,
) -> [A; RUN_LANES] {
    let mut lanes = *a;
    for lane in 0..RUN_LANES {
        lanes[lane] = merge(merge(a[lane], b[lane]), merge(c[lane], d[lane]));
    }
    lanes
}

/// Combines the lanes.
#[inline(always)]
pub(super) fn merge_lanes<A: Copy, const N: usize>(
    mut lanes: [A; N],
    merge: &impl Fn(A, A) -> A,
) -> A {
    let mut width = N / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = merge(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn add_lanes<T: Copy, A: Copy, const N: usize>(
    mut lanes: [A; N],
    x: &[T; N],
    step: &impl Fn(A, T) -> A,
) -> [A; N] {
    for lane in 0..N {
        lanes[lane] = step(lanes[lane], x[lane]);
    }
    lanes
}

/// The rows of a matrix, each with a weight for its elements.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T, W> {
    pub(super) x: &'a [T],
    /// The elements of a row.
    pub(super) inner: usize,
    pub(super) weights: &'a [W],
}

impl<'a, T> Rows<'a, T, ()> {
    /// Rows without weights.
    fn new(x: &'a [T], inner: usize) -> Self {
        const NO_WEIGHTS: &[()] = &[(); usize::MAX];
        Self { x, inner, weights: &NO_WEIGHTS[..x.len() / inner] }
    }
}

/// The step of a reduction of rows without weights.
#[inline(always)]
fn without_weight<A, T>(step: impl Step<A, T>) -> impl Fn(A, T, ()) -> A + Sync {
    #[inline(always)]
    move |a, x, ()| step(a, x)
}

/// Reduces the columns of rows. Threads divide the columns.
pub(super) fn reduce_columns<T: Element, A: Sum, W: Copy + Sync, R: Element>(
    cx: Cx<'_>,
    rows: Rows<'_, T, W>,
    start: A,
    step: impl Fn(A, T, W) -> A + Sync,
    finish: impl Fn(A) -> R + Sync,
    out: &mut [R],
) {
    cx.pieces(out, TILE_COLUMNS, rows.weights.len(), |first, out| {
        columns(cx, rows, first, start, &step, &finish, out);
    });
}

/// Reduces the columns of rows, from the column `first` on.
fn columns<T: Element, A: Sum, W: Copy, R>(
    cx: Cx<'_>,
    rows: Rows<'_, T, W>,
    first: usize,
    start: A,
    step: &impl Fn(A, T, W) -> A,
    finish: &impl Fn(A) -> R,
    out: &mut [R],
) {
    let mut scratch = cx.scratch();
    let buffer = scratch.elements::<A>(out.len().min(TILE_COLUMNS));
    for (tile, out) in out.chunks_mut(TILE_COLUMNS).enumerate() {
        let sums = &mut buffer[..out.len()];
        sums.fill(start);
        accumulate(rows, first + tile * TILE_COLUMNS, sums, step);
        for (out, &sum) in out.iter_mut().zip(&*sums) {
            *out = finish(sum);
        }
    }
}

/// Reduces the columns of a block of short rows: several rows are processed as one wide row.
fn narrow<T: Element, A: Sum, R>(
    x: &[T],
    inner: usize,
    reducer: Reducer<A, impl Step<A, T>, impl Step<A, A>>,
    finish: &impl Fn(A) -> R,
    out: &mut [R],
) {
    let wide = inner * JOINED_ROWS;
    let mut buffer = [reducer.start; RUN_LANES * JOINED_ROWS];
    let sums = &mut buffer[..wide];
    let whole = x.len() / wide * wide;
    accumulate(Rows::new(&x[..whole], wide), 0, sums, &without_weight(reducer.step));
    for (column, out) in out.iter_mut().enumerate() {
        let lanes = sums[column..].iter().step_by(inner);
        let sum = lanes.fold(reducer.start, |a, &b| (reducer.merge)(a, b));
        let rest = x[whole..].iter().skip(column).step_by(inner);
        *out = finish(rest.fold(sum, |a, &x| (reducer.step)(a, x)));
    }
}

/// Adds each row, from the column `first` on, to the accumulators.
#[inline(always)]
pub(super) fn accumulate<T: Element, A: Copy, W: Copy>(
    Rows { x, inner, weights }: Rows<'_, T, W>,
    first: usize,
    sums: &mut [A],
    step: &impl Fn(A, T, W) -> A,
) {
    let width = sums.len();
    vectorize(
        #[inline(always)]
        || {
            let (groups, rest) = weights.as_chunks::<ROWS_PER_PASS>();
            let (together, last) = x.split_at(groups.len() * ROWS_PER_PASS * inner);
            for (rows, weights) in together.chunks_exact(ROWS_PER_PASS * inner).zip(groups) {
                let row = |index: usize| &rows[index * inner + first..][..width];
                add_rows(sums, [row(0), row(1), row(2), row(3)], weights, step);
            }
            for (row, &weight) in last.chunks_exact(inner).zip(rest) {
                for (sum, &x) in sums.iter_mut().zip(&row[first..]) {
                    *sum = step(*sum, x, weight);
                }
            }
        },
    );
}

/// Adds rows one after the other, with the accumulators in registers. A separate function, because
/// reference arguments are known not to overlap.
#[inline(always)]
fn add_rows<T: Copy, A: Copy, W: Copy>(
    sums: &mut [A],
    [a, b, c, d]: [&[T]; ROWS_PER_PASS],
    &[u, v, w, z]: &[W; ROWS_PER_PASS],
    step: &impl Fn(A, T, W) -> A,
) {
    let rows = a.iter().zip(b).zip(c).zip(d);
    for (sum, (((&a, &b), &c), &d)) in sums.iter_mut().zip(rows) {
        *sum = step(step(step(step(*sum, a, u), b, v), c, w), d, z);
    }
}

/// Computes partial results in parallel, and combines them pairwise, which keeps the error of long sums small.
pub(super) fn merge_parts<A: Sum>(
    cx: Cx<'_>,
    count: usize,
    part: impl Fn(usize) -> Vec<A> + Sync,
    merge: impl Fn(A, A) -> A,
) -> Vec<A> {
    if count == 1 {
        return part(0);
    }
    // A block of partial results is in memory. Its size is a power of two, which keeps the order of the pairs.
    let subtree = |first: usize| {
        let count = BLOCK_ELEMENTS.min(count - first);
        merge_pairwise(cx.collect(count, &|index| part(first + index)), &merge)
    };
    // A cancelled run needs no result.
    let firsts = (0..count).step_by(BLOCK_ELEMENTS);
    let needed = firsts.filter(|&first| first == 0 || !cx.is_cancelled());
    merge_pairwise(needed.map(subtree).collect(), &merge)
}

fn merge_pairwise<A: Sum>(mut parts: Vec<Vec<A>>, merge: &impl Fn(A, A) -> A) -> Vec<A> {
    while parts.len() > 1 {
        let pairs = parts.chunks(2).map(|pair| match pair {
            [a, b] => a.iter().zip(b).map(|(&a, &b)| merge(a, b)).collect(),
            rest => rest[0].clone(),
        });
        parts = pairs.collect();
    }
    parts.swap_remove(0)
}
