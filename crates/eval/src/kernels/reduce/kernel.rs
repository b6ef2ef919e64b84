//! The loops of uniform reductions.
//!
//! Each result is computed from a fixed tree of partial results, so that the bits depend neither on the number of
//! threads nor on the machine.

use std::array::from_fn;
use std::hint::black_box;
use std::ops::Range;

use bytemuck::cast_slice;
use nxla_expr::ReduceOp;
use nxla_tensor::{DType, Element, Scalar};

use super::plane::Plane;
use crate::context;
use crate::context::Cx;
use crate::kernels::elementwise::vectorize;
use crate::kernels::limits::{BLOCK_ELEMENTS, PART_ELEMENTS};

/// Independent partial results of a run, so that vector units are filled.
pub(super) const LANES: usize = 16;

/// Groups of lanes that are accumulated in rotation, and the elements of a round.
pub(super) const GROUPS: usize = 4;
pub(crate) const ROUND: usize = GROUPS * LANES;

/// Runs of fewer elements have fewer lanes, which take less to join, and several runs are reduced side by
/// side. Runs that come in parts are longer.
pub(super) const SHORT: usize = 1024;
pub(crate) const FEW_LANES: usize = 8;
/// The same for bytes, which fill a vector only if there are many.
pub(super) const BYTE_LANES: usize = 32;
pub(super) const SIDE_BY_SIDE: usize = 4;

/// Accumulators that are worked on at a time: few enough to stay in the cache, and enough for a row
/// of them to be worth fetching, since prefetching begins anew with each.
const COLUMNS: usize = 1024;

/// Results that are too few to share out.
const FEW: usize = 8;

/// Rows of few columns that are taken as one.
const TOGETHER: usize = 16;

/// Rows that are added to the accumulators at a time.
const ROWS: usize = 4;

/// Elements of a partial result of a long reduction, and rows of one of several columns: enough for
/// partial results to be few.
const PART_ROWS: usize = 128;

/// An associative operation: how an element enters, and how partial results join.
#[derive(Clone, Copy)]
pub(super) struct Reducer<A, S, M> {
    /// The neutral element.
    pub(super) start: A,
    pub(super) step: S,
    pub(super) merge: M,
}

/// The value of an extremum of no elements, in the dtype of the operand, which may be narrower than the dtype
/// that computes it. Other reductions do not use it.
pub(super) fn neutral(op: ReduceOp, dtype: DType) -> Scalar {
    match op {
        ReduceOp::Max => dtype.min_value(),
        ReduceOp::Min => dtype.max_value(),
        ReduceOp::Sum | ReduceOp::Product | ReduceOp::All | ReduceOp::Any => Scalar::UInt(0),
    }
}

/// The operand of a reduction.
#[derive(Clone, Copy)]
pub(crate) enum Elements<'a> {
    /// The middle part of a plane that is there.
    There(&'a [u8], Plane),
    /// Elements that are computed during the reduction, and their number, see [`Make`].
    Made(usize, &'a Make<'a>),
}

/// Passes a range of elements to a function, block by block. All blocks but the last have a multiple of [`ROUND`]
/// elements.
pub(crate) type Make<'a> = dyn Fn(Range<usize>, &mut dyn FnMut(&[u8])) + Sync + 'a;

/// Elements per piece of a reduction of `len` elements to `inner` results.
pub(crate) fn piece(len: usize, inner: usize) -> usize {
    let rows = (PART_ELEMENTS / inner).max(PART_ROWS);
    if len >= 2 * PART_ELEMENTS { rows * inner } else { len }
}

/// Returns true if `count` rows of `inner` elements are reduced piece by piece.
pub(crate) fn is_in_pieces(count: usize, inner: usize) -> bool {
    count * inner >= 2 * PART_ELEMENTS && inner <= BLOCK_ELEMENTS && count >= 2 * PART_ROWS
}

/// Reduces elements, to one result for each run of a plane.
pub(super) fn reduce<T: Element, A, S, M, R: Element>(
    cx: Cx<'_>,
    x: Elements<'_>,
    reducer: Reducer<A, S, M>,
    finish: impl Fn(A) -> R + Sync,
    out: &mut [R],
) where
    A: Copy + Send + Sync,
    S: Fn(A, T) -> A + Copy + Sync,
    M: Fn(A, A) -> A + Copy + Sync,
{
    match x {
        Elements::There(x, plane) => in_plane(cx, cast_slice(x), plane, reducer, finish, out),
        Elements::Made(len, make) => {
            let sums = made(cx, len, out.len(), make, reducer);
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = finish(sum);
            }
        }
    }
}

/// Reduces rows of `inner` elements that are made on the way, as they would be if they were there.
fn made<T: Element, A, S, M>(
    cx: Cx<'_>,
    len: usize,
    inner: usize,
    make: &Make<'_>,
    reducer: Reducer<A, S, M>,
) -> Vec<A>
where
    A: Copy + Send + Sync,
    S: Fn(A, T) -> A + Copy + Sync,
    M: Fn(A, A) -> A + Copy + Sync,
{
    let piece = piece(len, inner);
    let part = |index: usize| {
        let range = index * piece..len.min((index + 1) * piece);
        if inner == 1 {
            let mut partial = Partial::new(reducer.start);
            make(range, &mut |block| partial.add(cast_slice(block), &reducer.step));
            return vec![partial.finish(&reducer.merge)];
        }
        let mut sums = context::filled(reducer.start, inner);
        let mut column = 0;
        make(range, &mut |block| {
            column = add_elements(&mut sums, column, cast_slice(block), &reducer.step);
        });
        sums
    };
    if len == piece {
        return part(0);
    }
    joined(cx.collect(len.div_ceil(piece), &part), reducer.merge)
}

/// Adds elements to the accumulators of a row, from this column on, and returns the column behind them.
fn add_elements<T: Element, A: Copy>(
    sums: &mut [A],
    mut column: usize,
    mut x: &[T],
    step: &impl Fn(A, T) -> A,
) -> usize {
    let inner = sums.len();
    while !x.is_empty() {
        let width = x.len().min(inner - column);
        let whole = if column == 0 { x.len() / inner * inner } else { 0 };
        let (now, later) = x.split_at(whole.max(width));
        if whole > 0 {
            accumulate(now, inner, 0, sums, step);
        } else {
            accumulate(now, width, 0, &mut sums[column..column + width], step);
            column = (column + width) % inner;
        }
        x = later;
    }
    column
}

/// Reduces the middle part of a plane.
fn in_plane<T: Element, A, S, M, R: Element>(
    cx: Cx<'_>,
    x: &[T],
    plane: Plane,
    reducer: Reducer<A, S, M>,
    finish: impl Fn(A) -> R + Sync,
    out: &mut [R],
) where
    A: Copy + Send + Sync,
    S: Fn(A, T) -> A + Copy + Sync,
    M: Fn(A, A) -> A + Copy + Sync,
{
    let Plane { times, outer, count, inner } = plane;
    let block = count * inner;
    let by_rows = outer == 1 && is_in_pieces(count, inner);
    let is_narrow = inner < LANES && count >= 4 * TOGETHER;
    if block == 0 || times == 0 {
        out.fill(finish(reducer.start));
    } else if times > 1 {
        at_both_ends(cx, x, plane, reducer, &finish, out);
    } else if block >= 2 * PART_ELEMENTS && (outer * inner < 64 || by_rows) {
        // Few results of many elements: partial results of pieces of the reduced part.
        for (x, out) in x.chunks_exact(block).zip(out.chunks_exact_mut(inner)) {
            long(cx, x, inner, reducer, &finish, out);
        }
    } else if inner == 1 {
        cx.rows(out, 1, count, |first, out| {
            runs(&x[first * count..][..out.len() * count], count, reducer, &finish, out);
        });
    } else if outer == 1 && !is_narrow {
        cx.pieces(out, COLUMNS, count, |first, out| {
            columns(x, inner, first, reducer, &finish, out)
        });
    } else {
        cx.rows(out, inner, block, |first, out| {
            let blocks = x[first * block..].chunks_exact(block);
            for (x, out) in blocks.zip(out.chunks_exact_mut(inner)) {
                if is_narrow {
                    narrow(x, inner, reducer, &finish, out);
                } else {
                    columns(x, inner, 0, reducer, &finish, out);
                }
            }
        });
    }
}

/// Reduces the first part of a plane and the last one.
fn at_both_ends<T: Element, A, S, M, R: Element>(
    cx: Cx<'_>,
    x: &[T],
    plane: Plane,
    reducer: Reducer<A, S, M>,
    finish: &(impl Fn(A) -> R + Sync),
    out: &mut [R],
) where
    A: Copy + Send + Sync,
    S: Fn(A, T) -> A + Copy + Sync,
    M: Fn(A, A) -> A + Copy + Sync,
{
    let Plane { times, outer, count, .. } = plane;
    let part =
        |time: usize, index: usize| run(&x[(time * outer + index) * count..][..count], reducer);
    if outer < FEW {
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

/// Runs of `count` neighbouring elements, one result for each.
fn runs<T: Element, A, S, M, R>(
    x: &[T],
    count: usize,
    reducer: Reducer<A, S, M>,
    finish: &impl Fn(A) -> R,
    out: &mut [R],
) where
    A: Copy,
    S: Fn(A, T) -> A + Copy,
    M: Fn(A, A) -> A + Copy,
{
    match count {
        2 => tiny_runs::<T, A, S, M, R, 2>(x, reducer, finish, out),
        3 => tiny_runs::<T, A, S, M, R, 3>(x, reducer, finish, out),
        4 => tiny_runs::<T, A, S, M, R, 4>(x, reducer, finish, out),
        ..SHORT if size_of::<T>() == 1 => vectorize(
            #[inline(always)]
            || {
                short_runs::<T, A, S, M, BYTE_LANES>(x, count, reducer, |index, sum| {
                    out[index] = finish(sum)
                })
            },
        ),
        ..SHORT => vectorize(
            #[inline(always)]
            || {
                short_runs::<T, A, S, M, FEW_LANES>(x, count, reducer, |index, sum| {
                    out[index] = finish(sum)
                })
            },
        ),
        _ => {
            for (x, out) in x.chunks_exact(count).zip(out) {
                *out = finish(run(x, reducer));
            }
        }
    }
}

/// Runs of fewer than [`SHORT`] elements, a few at a time, since each waits for its own additions. A run
/// is reduced in the same order whatever its neighbours are. Loops instead of iterators, since a closure
/// that is not inlined is not vectorized.
#[inline(always)]
pub(super) fn short_runs<T: Copy, A: Copy, S, M, const N: usize>(
    x: &[T],
    count: usize,
    reducer: Reducer<A, S, M>,
    mut put: impl FnMut(usize, A),
) where
    S: Fn(A, T) -> A,
    M: Fn(A, A) -> A,
{
    let together = x.chunks_exact(SIDE_BY_SIDE * count);
    let (rest, first) = (together.remainder(), together.len() * SIDE_BY_SIDE);
    for (index, rows) in together.enumerate() {
        let ((left, right), half) = (rows.split_at(2 * count), count);
        let rows = [&left[..half], &left[half..], &right[..half], &right[half..]];
        let sums = side_by_side::<T, A, S, M, SIDE_BY_SIDE, N>(rows, &reducer);
        for (row, &sum) in sums.iter().enumerate() {
            put(index * SIDE_BY_SIDE + row, sum);
        }
    }
    for (index, row) in rest.chunks_exact(count).enumerate() {
        let [sum] = side_by_side::<T, A, S, M, 1, N>([row], &reducer);
        put(first + index, sum);
    }
}

/// Reduces runs of one length in step, with `N` lanes each.
#[inline(always)]
fn side_by_side<T: Copy, A: Copy, S, M, const RUNS: usize, const N: usize>(
    runs: [&[T]; RUNS],
    Reducer { start, step, merge }: &Reducer<A, S, M>,
) -> [A; RUNS]
where
    S: Fn(A, T) -> A,
    M: Fn(A, A) -> A,
{
    let mut lanes = [[*start; N]; RUNS];
    let whole = runs[0].len() / N * N;
    for at in (0..whole).step_by(N) {
        for (lanes, run) in lanes.iter_mut().zip(&runs) {
            let chunk = run[at..at + N].first_chunk().expect("it has as many");
            *lanes = add_lanes(*lanes, chunk, step);
        }
    }
    let mut sums = [*start; RUNS];
    for ((sum, lanes), run) in sums.iter_mut().zip(kept_whole(lanes)).zip(&runs) {
        let mut ends = *start;
        for &x in &run[whole..] {
            ends = step(ends, x);
        }
        *sum = merge(narrowed(lanes, merge), ends);
    }
    sums
}

/// Runs of so few elements that each is written out.
fn tiny_runs<T: Element, A, S, M, R, const N: usize>(
    x: &[T],
    reducer: Reducer<A, S, M>,
    finish: &impl Fn(A) -> R,
    out: &mut [R],
) where
    A: Copy,
    S: Fn(A, T) -> A,
{
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

/// One run of neighbouring elements.
#[inline(always)]
pub(super) fn run<T: Element, A, S, M>(x: &[T], reducer: Reducer<A, S, M>) -> A
where
    A: Copy,
    S: Fn(A, T) -> A,
    M: Fn(A, A) -> A,
{
    if x.len() < LANES {
        return x.iter().fold(reducer.start, |a, &x| (reducer.step)(a, x));
    }
    let Reducer { start, step, merge } = reducer;
    let (chunks, tail) = x.as_chunks::<LANES>();
    let mut lanes = [start; LANES];
    vectorize(
        #[inline(always)]
        || {
            let groups = add_chunks([[start; LANES]; GROUPS], chunks, &step);
            lanes = merged(&groups, &merge);
        },
    );
    let ends = tail.iter().fold(start, |a, &x| step(a, x));
    merge(narrowed(lanes, &merge), ends)
}

/// A run of neighbouring elements that come in parts. All parts but the last are of a multiple of
/// [`ROUND`] elements; the result does not depend on where they end.
struct Partial<A> {
    groups: [[A; LANES]; GROUPS],
    /// The partial result of the elements behind the last whole lanes.
    ends: A,
}

impl<A: Copy> Partial<A> {
    fn new(start: A) -> Self {
        Self { groups: [[start; LANES]; GROUPS], ends: start }
    }

    #[inline(always)]
    fn add<T: Element>(&mut self, x: &[T], step: &impl Fn(A, T) -> A) {
        let (chunks, tail) = x.as_chunks::<LANES>();
        vectorize(
            #[inline(always)]
            || self.groups = add_chunks(self.groups, chunks, step),
        );
        self.ends = tail.iter().fold(self.ends, |a, &x| step(a, x));
    }

    fn finish(self, merge: &impl Fn(A, A) -> A) -> A {
        merge(narrowed(merged(&self.groups, merge), merge), self.ends)
    }
}

/// Adds chunks to four groups of lanes in turn, since a step takes as long as several that do not wait
/// for each other.
#[inline(always)]
pub(super) fn add_chunks<T: Element, A: Copy>(
    groups: [[A; LANES]; GROUPS],
    chunks: &[[T; LANES]],
    step: &impl Fn(A, T) -> A,
) -> [[A; LANES]; GROUPS] {
    let (turns, rest) = chunks.as_chunks::<GROUPS>();
    // Variables of their own stay in registers.
    let [mut a, mut b, mut c, mut d] = groups;
    for [x, y, z, w] in turns {
        a = add_lanes(a, x, step);
        b = add_lanes(b, y, step);
        c = add_lanes(c, z, step);
        d = add_lanes(d, w, step);
        keep_turns_apart();
    }
    for x in rest {
        a = add_lanes(a, x, step);
    }
    kept_whole([a, b, c, d])
}

/// Ends a turn of a loop over groups of lanes. Where operations may be done in any order, the compiler would
/// otherwise make a vector of one lane of several turns, and gather its elements.
#[inline(always)]
pub(super) fn keep_turns_apart() {
    black_box(());
}

/// Lanes of several runs, which the compiler sees only as a whole. It would add up some of them one by one, to suit
/// how they are joined in the end.
#[inline(always)]
pub(crate) fn kept_whole<A, const N: usize, const RUNS: usize>(
    lanes: [[A; N]; RUNS],
) -> [[A; N]; RUNS] {
    black_box(lanes)
}

/// The groups as one.
#[inline(always)]
pub(super) fn merged<A: Copy>(
    [a, b, c, d]: &[[A; LANES]; GROUPS],
    merge: &impl Fn(A, A) -> A,
) -> [A; LANES] {
    from_fn(|lane| merge(merge(a[lane], b[lane]), merge(c[lane], d[lane])))
}

/// The lanes as one.
#[inline(always)]
pub(crate) fn narrowed<A: Copy, const N: usize>(
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
    lanes: [A; N],
    x: &[T; N],
    step: &impl Fn(A, T) -> A,
) -> [A; N] {
    from_fn(|lane| step(lanes[lane], x[lane]))
}

/// The columns of a block of rows of `inner` elements, from the column `first` on.
fn columns<T: Element, A, S, M, R>(
    x: &[T],
    inner: usize,
    first: usize,
    reducer: Reducer<A, S, M>,
    finish: &impl Fn(A) -> R,
    out: &mut [R],
) where
    A: Copy,
    S: Fn(A, T) -> A,
{
    let mut buffer = context::aligned(reducer.start, out.len().min(COLUMNS));
    for (tile, out) in out.chunks_mut(COLUMNS).enumerate() {
        let sums = &mut buffer[..out.len()];
        sums.fill(reducer.start);
        let first = first + tile * COLUMNS;
        accumulate(x, inner, first, sums, &reducer.step);
        for (out, &sum) in out.iter_mut().zip(&*sums) {
            *out = finish(sum);
        }
    }
}

/// The columns of a block of rows of few elements: several rows are taken as a wide one.
fn narrow<T: Element, A, S, M, R>(
    x: &[T],
    inner: usize,
    reducer: Reducer<A, S, M>,
    finish: &impl Fn(A) -> R,
    out: &mut [R],
) where
    A: Copy,
    S: Fn(A, T) -> A,
    M: Fn(A, A) -> A,
{
    let wide = inner * TOGETHER;
    let mut buffer = [reducer.start; LANES * TOGETHER];
    let sums = &mut buffer[..wide];
    let whole = x.len() / wide * wide;
    accumulate(&x[..whole], wide, 0, sums, &reducer.step);
    for (column, out) in out.iter_mut().enumerate() {
        let lanes = sums[column..].iter().step_by(inner);
        let sum = lanes.fold(reducer.start, |a, &b| (reducer.merge)(a, b));
        let rest = x[whole..].iter().skip(column).step_by(inner);
        *out = finish(rest.fold(sum, |a, &x| (reducer.step)(a, x)));
    }
}

/// Adds each row, from the column `first` on, to the accumulators.
#[inline(always)]
fn accumulate<T: Element, A: Copy>(
    x: &[T],
    inner: usize,
    first: usize,
    sums: &mut [A],
    step: &impl Fn(A, T) -> A,
) {
    let width = sums.len();
    vectorize(
        #[inline(always)]
        || {
            let together = x.chunks_exact(ROWS * inner);
            let rest = together.remainder();
            for rows in together {
                let row = |index: usize| &rows[index * inner + first..][..width];
                add_rows(sums, [row(0), row(1), row(2), row(3)], step);
            }
            for row in rest.chunks_exact(inner) {
                for (sum, &x) in sums.iter_mut().zip(&row[first..]) {
                    *sum = step(*sum, x);
                }
            }
        },
    );
}

/// Adds rows one after the other, with the accumulators in registers. A function of its own because
/// references that are arguments are known not to overlap.
#[inline(always)]
fn add_rows<T: Copy, A: Copy>(
    sums: &mut [A],
    [a, b, c, d]: [&[T]; ROWS],
    step: &impl Fn(A, T) -> A,
) {
    let rows = a.iter().zip(b).zip(c).zip(d);
    for (sum, (((&a, &b), &c), &d)) in sums.iter_mut().zip(rows) {
        *sum = step(step(step(step(*sum, a), b), c), d);
    }
}

/// Few results of very many elements each.
fn long<T: Element, A, S, M, R>(
    cx: Cx<'_>,
    x: &[T],
    inner: usize,
    reducer: Reducer<A, S, M>,
    finish: &impl Fn(A) -> R,
    out: &mut [R],
) where
    A: Copy + Send + Sync,
    S: Fn(A, T) -> A + Copy + Sync,
    M: Fn(A, A) -> A + Copy + Sync,
{
    let part = |x: &[T]| -> Vec<A> {
        if inner == 1 {
            return vec![run(x, reducer)];
        }
        let mut sums = context::filled(reducer.start, inner);
        accumulate(x, inner, 0, &mut sums, &reducer.step);
        sums
    };
    let pieces: Vec<&[T]> = x.chunks(piece(x.len(), inner)).collect();
    let parts = cx.collect(pieces.len(), &|index| part(pieces[index]));
    for (out, sum) in out.iter_mut().zip(joined(parts, reducer.merge)) {
        *out = finish(sum);
    }
}

/// Joins partial results: neighbours pairwise, which keeps the error of long sums small.
pub(super) fn joined<A: Copy>(mut parts: Vec<Vec<A>>, merge: impl Fn(A, A) -> A) -> Vec<A> {
    while parts.len() > 1 {
        let pairs = parts.chunks(2).map(|pair| match pair {
            [a, b] => a.iter().zip(b).map(|(&a, &b)| merge(a, b)).collect(),
            rest => rest[0].clone(),
        });
        parts = pairs.collect();
    }
    parts.swap_remove(0)
}
