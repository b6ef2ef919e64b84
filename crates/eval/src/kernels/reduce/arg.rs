//! Positions of extrema.

use nxla_expr::{ArgReduce, ArgReduceOp, TensorType};
use nxla_tensor::{DType, Element, HostTensor};

use super::Plane;
use super::kernel::{
    BYTE_LANES, FEW_LANES, GROUPS, Reducer, SHORT, add_chunks, narrowed, short_runs,
};
use crate::context;
use crate::context::{Cx, Fault};
use crate::kernels::elementwise::{convert, vectorize};
use crate::kernels::limits::{BLOCK_ELEMENTS, PART_ELEMENTS};
use crate::kernels::ordered::{Ordered, match_ordered, widened_float};

/// NaN beats every number; among equals, and among several NaN, the attribute decides.
pub(super) fn arg_reduce(
    cx: Cx<'_>,
    op: ArgReduceOp,
    attributes: &ArgReduce,
    x: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let x = convert(cx, x, widened_float(x.dtype()))?;
    let plane = match attributes.axis {
        Some(axis) => Plane::along(x.shape(), axis),
        None => Plane { times: 1, outer: 1, count: x.size(), inner: 1 },
    };
    let positions = match_ordered!(x.dtype(), T => {
        let x = context::slice::<T>(&x);
        let tie_high = attributes.tie_high;
        match op {
            ArgReduceOp::Argmax => {
                let worst = T::from_scalar(T::DTYPE.min_value());
                let is_better = |a: T, b: T| a > b;
                search(cx, x, plane, ty, &Search { worst, is_better, tie_high })
            }
            ArgReduceOp::Argmin => {
                let worst = T::from_scalar(T::DTYPE.max_value());
                let is_better = |a: T, b: T| a < b;
                search(cx, x, plane, ty, &Search { worst, is_better, tie_high })
            }
        }
    })?;
    convert(cx, &positions, ty.dtype)
}

/// A search for an extremum.
struct Search<T, F> {
    /// No element is strictly worse.
    worst: T,
    /// True if the first is strictly better than the second; not if one is NaN.
    is_better: F,
    /// True if the last of several equal ones is wanted.
    tie_high: bool,
}

impl<T: Ordered, F: Fn(T, T) -> bool> Search<T, F> {
    /// The better of two, or some NaN if there is one.
    #[inline(always)]
    fn picked(&self, a: T, b: T) -> T {
        if (self.is_better)(a, b) | a.is_not_a_number() { a } else { b }
    }

    /// Returns true if an element takes the place of the best so far, which stands before it. Without
    /// branches, so that blocks are passed over at once.
    #[inline(always)]
    fn replaces(&self, new: T, best: T) -> bool {
        let is_nan = best.is_not_a_number();
        let is_tie = (new == best) & self.tie_high;
        // A number never replaces NaN.
        (self.is_better)(new, best) | is_tie | (new.is_not_a_number() & (self.tie_high | !is_nan))
    }
}

fn search<T: Ordered>(
    cx: Cx<'_>,
    x: &[T],
    plane: Plane,
    ty: &TensorType,
    search: &Search<T, impl Fn(T, T) -> bool + Sync>,
) -> Result<HostTensor, Fault> {
    let Plane { count, inner, .. } = plane;
    if inner == 1 {
        return context::build(DType::S64, &ty.shape, |out: &mut [i64]| {
            // Elements of long rows are passed over in vectors.
            let steps = if count < SHORT { count } else { count / 8 };
            cx.rows(out, 1, steps, |first, out| {
                let x = &x[first * count..][..out.len() * count];
                vectorize(
                    #[inline(always)]
                    || match size_of::<T>() {
                        1 if count >= BYTE_LANES => {
                            in_rows::<T, BYTE_LANES>(x, count, search, out);
                        }
                        _ => in_rows::<T, FEW_LANES>(x, count, search, out),
                    },
                );
            });
        });
    }
    context::build(DType::S64, &ty.shape, |out: &mut [i64]| {
        cx.rows(out, inner, count * inner, |first, out| {
            let blocks = x[first * count * inner..].chunks_exact(count * inner);
            for (x, out) in blocks.zip(out.chunks_exact_mut(inner)) {
                out.fill(0);
                down_columns(x, search, out);
            }
        });
    })
}

/// Columns that are searched side by side, and rows whose numbers fit in few bits.
const COLUMNS: usize = 256;
/// Stands for a row of an earlier block.
const BEFORE: u32 = u32::MAX;

/// The positions of the extrema of the columns of a block.
fn down_columns<T: Ordered>(x: &[T], search: &Search<T, impl Fn(T, T) -> bool>, out: &mut [i64]) {
    let inner = out.len();
    vectorize(
        #[inline(always)]
        || {
            for (tile, out) in out.chunks_mut(COLUMNS).enumerate() {
                let columns = tile * COLUMNS..tile * COLUMNS + out.len();
                let best = &mut [search.worst; COLUMNS][..out.len()];
                best.copy_from_slice(&x[columns.clone()]);
                for (block, x) in x.chunks(PART_ELEMENTS * inner).enumerate() {
                    let at = &mut [BEFORE; COLUMNS][..out.len()];
                    for (position, row) in (0..).zip(x.chunks_exact(inner)) {
                        replace_in_row(search, &row[columns.clone()], position, best, at);
                    }
                    for (out, &at) in out.iter_mut().zip(&*at) {
                        let here = (block * PART_ELEMENTS) as i64 + i64::from(at);
                        *out = if at == BEFORE { *out } else { here };
                    }
                }
            }
        },
    );
}

/// Replaces the best elements so far by better elements of a row.
#[inline(always)]
fn replace_in_row<T: Ordered>(
    search: &Search<T, impl Fn(T, T) -> bool>,
    row: &[T],
    position: u32,
    best: &mut [T],
    at: &mut [u32],
) {
    for ((best, at), &new) in best.iter_mut().zip(at).zip(row) {
        let replaces = search.replaces(new, *best);
        *best = if replaces { new } else { *best };
        *at = if replaces { position } else { *at };
    }
}

/// The positions of the extrema of rows of `count` elements, with `LANES` lanes.
#[inline(always)]
fn in_rows<T: Ordered, const LANES: usize>(
    x: &[T],
    count: usize,
    search: &Search<T, impl Fn(T, T) -> bool>,
    out: &mut [i64],
) {
    let row = |index: usize| &x[index * count..][..count];
    if !(LANES..SHORT).contains(&count) {
        for (index, out) in out.iter_mut().enumerate() {
            *out = in_row(row(index), search);
        }
        return;
    }
    let pick = |best, x| search.picked(best, x);
    let reducer = Reducer { start: search.worst, step: pick, merge: pick };
    short_runs::<T, T, _, _, LANES>(
        x,
        count,
        reducer,
        #[inline(always)]
        |index, best| {
            let row = row(index);
            out[index] = match (best.is_not_a_number(), search.tie_high) {
                (true, _) => in_row(row, search),
                // Bytes have few values, so that the search ends soon.
                _ if size_of::<T>() == 1 => {
                    position(row, best, search.tie_high).expect("it is an element") as i64
                }
                (false, false) => place::<T, false>(row, best),
                (false, true) => place::<T, true>(row, best),
            };
        },
    );
}

/// Lanes in which a place is looked for.
const PLACES: usize = 8;

/// The place of a number in a short row, the last one if it `IS_LAST`, found without branches.
#[inline(always)]
fn place<T: Ordered, const IS_LAST: bool>(row: &[T], number: T) -> i64 {
    let none = if IS_LAST { -1 } else { i32::MAX };
    let better = |a: i32, b: i32| if IS_LAST { a.max(b) } else { a.min(b) };
    let mut at: [i32; PLACES] = std::array::from_fn(|lane| lane as i32);
    let mut found = [none; PLACES];
    let (chunks, tail) = row.as_chunks::<PLACES>();
    for chunk in chunks {
        for lane in 0..PLACES {
            let place = if chunk[lane] == number { at[lane] } else { none };
            found[lane] = better(found[lane], place);
            at[lane] += PLACES as i32;
        }
    }
    let mut best = narrowed(found, &better);
    for (&x, &at) in tail.iter().zip(&at) {
        best = better(best, if x == number { at } else { none });
    }
    i64::from(best)
}

/// Elements that are searched together, and then parts of them.
const BLOCK: usize = 64;
const PART: usize = 8;

/// The position of the extremum of a row: first the extremum, then where it is.
#[inline(always)]
fn in_row<T: Ordered>(row: &[T], search: &Search<T, impl Fn(T, T) -> bool>) -> i64 {
    let (mut best, mut at) = (extremum(&row[..row.len().min(BLOCK_ELEMENTS)], search), 0);
    for (index, piece) in row.chunks(BLOCK_ELEMENTS).enumerate().skip(1) {
        let new = extremum(piece, search);
        if search.replaces(new, best) {
            (best, at) = (new, index);
        }
    }
    let piece = &row[at * BLOCK_ELEMENTS..row.len().min((at + 1) * BLOCK_ELEMENTS)];
    let place = position(piece, best, search.tie_high);
    (at * BLOCK_ELEMENTS + place.expect("the extremum is an element")) as i64
}

/// The extremum of a piece of a row, which is some NaN if there is one. Elements may count twice, so that
/// the last lanes overlap those before.
#[inline(always)]
fn extremum<T: Ordered>(piece: &[T], search: &Search<T, impl Fn(T, T) -> bool>) -> T {
    let pick = |a: T, b: T| search.picked(a, b);
    let Some(last) = piece.last_chunk() else {
        return piece.iter().fold(piece[0], |best, &x| pick(best, x));
    };
    let [mut a, b, c, d] = add_chunks([*last; GROUPS], piece.as_chunks().0, &pick);
    for lane in 0..a.len() {
        a[lane] = pick(pick(a[lane], b[lane]), pick(c[lane], d[lane]));
    }
    narrowed(a, &pick)
}

/// The first place of an element that is in a piece, or the last one. Every NaN is like every other.
#[inline(always)]
fn position<T: Ordered>(piece: &[T], element: T, is_last: bool) -> Option<usize> {
    let is_nan = element.is_not_a_number();
    let is_it = |&x: &T| (x == element) | (is_nan & x.is_not_a_number());
    let Some(end) = piece.last_chunk::<BLOCK>() else {
        let mut all = piece.iter();
        return if is_last { all.rposition(is_it) } else { all.position(is_it) };
    };
    let is_in = |block: &[T; BLOCK]| block.iter().fold(false, |any, x| any | is_it(x));
    let is_in_part = |part: &[T; PART]| part.iter().fold(false, |any, x| any | is_it(x));
    let blocks = piece.as_chunks::<BLOCK>().0;
    // The last block overlaps the block before it, which does not contain the element in that case.
    let at_end = || is_in(end).then_some((piece.len() - BLOCK, end));
    let before = || {
        let mut all = blocks.iter();
        let at = if is_last { all.rposition(is_in) } else { all.position(is_in) }?;
        Some((at * BLOCK, &blocks[at]))
    };
    let (start, block) = if is_last { at_end().or_else(before) } else { before().or_else(at_end) }?;
    let parts = block.as_chunks::<PART>().0;
    let part = wanted::<{ BLOCK / PART }>(|at| is_in_part(&parts[at]), is_last);
    Some(start + part * PART + wanted::<PART>(|at| is_it(&parts[part][at]), is_last))
}

/// The first of `N` places that is wanted, or the last, without branches.
#[inline(always)]
fn wanted<const N: usize>(is_wanted: impl Fn(usize) -> bool, is_last: bool) -> usize {
    let mut found = 0;
    for at in 0..N {
        let at = if is_last { at } else { N - 1 - at };
        found = if is_wanted(at) { at } else { found };
    }
    found
}
