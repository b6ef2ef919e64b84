//! The windows along one axis.
//!
//! Partial results stay in registers until all taps of a window have been combined, for several windows at a time. Each
//! loop combines the elements of a window in the same order.

use std::ops::Range;

use smallvec::SmallVec;

use super::WindowAxis;
use crate::context::Cx;
use crate::kernels::elementwise::vectorize;
use crate::kernels::limits::BLOCK_ELEMENTS;

/// Elements of a result that are computed at once, measured by the family `window` of
/// `benches/python/kernels.py`. The last group of a row overlaps the group before, so that no row
/// ends with single elements.
const CHUNK: usize = 16;

/// The offsets of the elements of a window: the first, and the distance between neighbors.
#[derive(Clone, Copy)]
struct Taps {
    first: usize,
    step: usize,
    count: usize,
}

impl Taps {
    /// The taps of a window.
    fn of(axis: &WindowAxis, window: usize, seeing: Range<usize>, inner: usize) -> Self {
        let first = axis.position(window, seeing.start).map_or(0, |position| position * inner);
        Self { first, step: axis.dilation.saturating_mul(inner), count: seeing.len() }
    }

    fn offset(self, tap: usize) -> usize {
        self.first + tap * self.step
    }
}

/// Computes one axis of some rows with `inner` contiguous elements per index.
pub(super) fn slide_rows<T: Copy>(
    axis: &WindowAxis,
    source: &[T],
    inner: usize,
    out: &mut [T],
    start: T,
    combine: impl Fn(T, T) -> T,
    cx: Cx<'_>,
) {
    let whole = axis.whole();
    let all = Taps::of(axis, whole.start, 0..axis.taps, inner);
    // Windows that extend into the padding are folded separately.
    let at_edge = (0..whole.start).chain(whole.end..axis.count);
    let edges: SmallVec<[(usize, Taps); 8]> = at_edge
        .map(|window| (window * inner, Taps::of(axis, window, axis.taps_inside(window), inner)))
        .collect();
    // If the last window of a row and the first window of the next row have the usual distance, all
    // rows are processed as one row.
    let is_one = edges.is_empty() && axis.size == axis.count * axis.stride;
    let rows = if is_one { 1 } else { out.len() / (axis.count * inner) };
    let (row, source_row) = (out.len() / rows, source.len() / rows);
    let inside = if is_one { 0..row } else { whole.start * inner..whole.end * inner };
    vectorize(
        #[inline(always)]
        || {
            for (number, out) in out.chunks_exact_mut(row).enumerate() {
                let source = &source[number * source_row..][..source_row];
                for &(first, taps) in &edges {
                    fold_row(&mut out[first..first + inner], source, taps, start, &combine);
                }
                let out = &mut out[inside.clone()];
                fold_whole(axis, source, inner, out, all, start, &combine, cx);
            }
        },
    );
}

/// Computes windows without padding.
#[inline(always)]
fn fold_whole<T: Copy>(
    axis: &WindowAxis,
    source: &[T],
    inner: usize,
    out: &mut [T],
    all: Taps,
    start: T,
    combine: &impl Fn(T, T) -> T,
    cx: Cx<'_>,
) {
    let (piece, skip) = match (axis.stride, inner) {
        // Neighboring windows are contiguous, so they are processed as one long row.
        (1, _) => (BLOCK_ELEMENTS, BLOCK_ELEMENTS),
        // A stride may exceed the tensor, which then has a single window.
        (stride, 1) => (BLOCK_ELEMENTS, stride.saturating_mul(BLOCK_ELEMENTS)),
        (stride, inner) => (inner, stride.saturating_mul(inner)),
    };
    for (number, out) in out.chunks_mut(piece).enumerate() {
        if cx.is_cancelled() {
            return;
        }
        let taps = Taps { first: all.first + number * skip, ..all };
        match (axis.stride, inner) {
            (2, 1) if axis.dilation == 1 => fold_pairs(out, source, taps, start, combine),
            (2.., 1) => fold_far(out, source, taps, axis.stride, start, combine),
            _ => fold_row(out, source, taps, start, combine),
        }
    }
}

/// Computes a row whose elements are contiguous at each tap.
#[inline(always)]
fn fold_row<T: Copy>(
    out: &mut [T],
    source: &[T],
    taps: Taps,
    start: T,
    combine: &impl Fn(T, T) -> T,
) {
    if taps.count == 0 {
        return out.fill(start);
    }
    if out.len() < CHUNK {
        return fold_far(out, source, taps, 1, start, combine);
    }
    let end = out.len() - CHUNK;
    let (chunks, rest) = out.as_chunks_mut::<CHUNK>();
    for (index, out) in chunks.iter_mut().enumerate() {
        fold_chunk(out, &source[index * CHUNK..], taps, start, combine);
    }
    if !rest.is_empty() {
        let last = out.last_chunk_mut::<CHUNK>().expect("a row is not shorter");
        fold_chunk(last, &source[end..], taps, start, combine);
    }
}

/// Computes contiguous elements, two taps at a time.
#[inline(always)]
fn fold_chunk<T: Copy>(
    out: &mut [T; CHUNK],
    source: &[T],
    taps: Taps,
    start: T,
    combine: &impl Fn(T, T) -> T,
) {
    let row = |tap: usize| -> &[T; CHUNK] {
        source[taps.offset(tap)..].first_chunk().expect("each tap has as many elements as the row")
    };
    let pairs = taps.count / 2;
    match pairs {
        0 => *out = [start; CHUNK],
        _ => two(out, &[start; CHUNK], row(0), row(1), combine),
    }
    for pair in 1..pairs {
        let before = *out;
        two(out, &before, row(2 * pair), row(2 * pair + 1), combine);
    }
    if taps.count % 2 == 1 {
        let last = row(taps.count - 1);
        for i in 0..CHUNK {
            out[i] = combine(out[i], last[i]);
        }
    }
}

/// Combines partial results with two more elements. A separate function, because references that
/// are arguments are known not to overlap.
#[inline(always)]
fn two<T: Copy>(
    out: &mut [T; CHUNK],
    before: &[T; CHUNK],
    a: &[T; CHUNK],
    b: &[T; CHUNK],
    combine: &impl Fn(T, T) -> T,
) {
    for i in 0..CHUNK {
        out[i] = combine(combine(before[i], a[i]), b[i]);
    }
}

/// Computes windows whose starts are two elements apart, and whose taps are contiguous.
#[inline(always)]
fn fold_pairs<T: Copy>(
    out: &mut [T],
    source: &[T],
    taps: Taps,
    start: T,
    combine: &impl Fn(T, T) -> T,
) {
    let source = &source[taps.first..];
    let (pairs, _) = source.as_chunks::<2>();
    // For an odd number of taps, the element after the last tap may not exist.
    let most = (pairs.len() + 1).saturating_sub(taps.count.div_ceil(2)).min(out.len());
    let (paired, rest) = out.split_at_mut(if most < CHUNK { 0 } else { most });
    let done = paired.len();
    for (index, out) in paired.as_chunks_mut().0.iter_mut().enumerate() {
        fold_pairs_chunk(out, &pairs[index * CHUNK..], taps.count, start, combine);
    }
    if done % CHUNK > 0
        && let Some(last) = paired.last_chunk_mut()
    {
        fold_pairs_chunk(last, &pairs[done - CHUNK..], taps.count, start, combine);
    }
    let taps = Taps { first: 2 * done, ..taps };
    fold_far(rest, source, taps, 2, start, combine);
}

/// Computes windows whose starts are one pair apart.
#[inline(always)]
fn fold_pairs_chunk<T: Copy>(
    out: &mut [T; CHUNK],
    pairs: &[[T; 2]],
    taps: usize,
    start: T,
    combine: &impl Fn(T, T) -> T,
) {
    let row = |pair: usize| -> &[[T; 2]; CHUNK] {
        pairs[pair..].first_chunk().expect("there are as many as were counted")
    };
    let mut sums = [start; CHUNK];
    for pair in 0..taps / 2 {
        let pairs = row(pair);
        for i in 0..CHUNK {
            sums[i] = combine(combine(sums[i], pairs[i][0]), pairs[i][1]);
        }
    }
    if taps % 2 == 1 {
        let pairs = row(taps / 2);
        for i in 0..CHUNK {
            sums[i] = combine(sums[i], pairs[i][0]);
        }
    }
    *out = sums;
}

/// Computes windows whose starts are far apart, one after the other.
#[inline(always)]
fn fold_far<T: Copy>(
    out: &mut [T],
    source: &[T],
    taps: Taps,
    stride: usize,
    start: T,
    combine: &impl Fn(T, T) -> T,
) {
    for (at, out) in out.iter_mut().enumerate() {
        *out = start;
        for tap in 0..taps.count {
            *out = combine(*out, source[at * stride + taps.offset(tap)]);
        }
    }
}
