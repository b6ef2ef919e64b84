//! Positions of extrema.

use nxla_expr::{ArgReduce, ArgReduceOp, TensorType};
use nxla_tensor::{DType, Element, HostTensor};

use super::Plane;
use super::kernel::{GROUPS, SHORT_RUN, add_chunks, merge_lanes};
use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::{convert, vectorize};
use crate::kernels::limits::{BLOCK_ELEMENTS, PART_ELEMENTS};
use crate::kernels::ordered::{Ordered, comparison_dtype, match_order, pick_better, worst};

/// Finds the index of the extremum. NaN wins against every number; among equal elements, and among
/// several NaN, the attribute `tie_high` decides.
pub(super) fn arg_reduce(
    cx: Cx<'_>,
    op: ArgReduceOp,
    attributes: &ArgReduce,
    x: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let x = convert(cx, x, comparison_dtype(x.dtype()))?;
    let plane = match attributes.axis {
        Some(axis) => Plane::along(x.shape(), axis),
        None => Plane { times: 1, outer: 1, count: x.size(), inner: 1 },
    };
    let is_max = op == ArgReduceOp::Argmax;
    let worst = worst(x.dtype(), is_max);
    let positions = match_order!(x.dtype(), is_max, T, is_better => {
        let (worst, tie_high) = (T::from_scalar(worst), attributes.tie_high);
        search(cx, context::slice(&x), plane, ty, &ExtremumSearch { worst, is_better, tie_high })
    })?;
    convert(cx, &positions, ty.dtype)
}

/// A search for an extremum.
struct ExtremumSearch<T, F> {
    /// An element that no other element is worse than.
    worst: T,
    /// Returns true if the first element is better than the second; false if one of them is NaN.
    is_better: F,
    /// True if the last of several equal elements is selected.
    tie_high: bool,
}

impl<T: Ordered, F: Fn(T, T) -> bool> ExtremumSearch<T, F> {
    /// Returns true if an element replaces the best element so far, which precedes it. The code has
    /// no branches, so that blocks can be skipped in vectors.
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
    search: &ExtremumSearch<T, impl Fn(T, T) -> bool + Sync>,
) -> Result<HostTensor, Fault> {
    let Plane { count, inner, .. } = plane;
    if inner == 1 {
        return context::build(DType::S64, &ty.shape, |out: &mut [i64]| {
            // The estimate is lower for long rows, which are compared with vector instructions.
            let steps = if count < SHORT_RUN { count } else { count / 8 };
            cx.rows(out, 1, steps, |first, out| {
                let x = &x[first * count..][..out.len() * count];
                vectorize(
                    #[inline(always)]
                    || {
                        for (row, out) in x.chunks_exact(count).zip(out) {
                            *out = in_row(row, search);
                        }
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

/// Columns that are searched in one pass, and rows whose numbers fit in few bits. Measured by `argmax` of
/// `benches/python/kernels.py`.
const COLUMNS_PER_PASS: usize = 256;
/// The placeholder for a row of an earlier block.
const BEFORE: u32 = u32::MAX;

/// The positions of the extrema of the columns of a block.
fn down_columns<T: Ordered>(
    x: &[T],
    search: &ExtremumSearch<T, impl Fn(T, T) -> bool>,
    out: &mut [i64],
) {
    let inner = out.len();
    vectorize(
        #[inline(always)]
        || {
            for (tile, out) in out.chunks_mut(COLUMNS_PER_PASS).enumerate() {
                let columns = tile * COLUMNS_PER_PASS..tile * COLUMNS_PER_PASS + out.len();
                let best = &mut [search.worst; COLUMNS_PER_PASS][..out.len()];
                best.copy_from_slice(&x[columns.clone()]);
                for (block, x) in x.chunks(PART_ELEMENTS * inner).enumerate() {
                    let at = &mut [BEFORE; COLUMNS_PER_PASS][..out.len()];
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
    search: &ExtremumSearch<T, impl Fn(T, T) -> bool>,
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

/// Elements among which an extremum is found without branches. Measured by `argmax` of `benches/python/kernels.py`.
const SEARCH_BLOCK: usize = 64;

/// The position of the extremum of a row: first the extremum is computed, then its position is
/// searched.
#[inline(always)]
fn in_row<T: Ordered>(row: &[T], search: &ExtremumSearch<T, impl Fn(T, T) -> bool>) -> i64 {
    let (mut best, mut at) = (extremum(&row[..row.len().min(BLOCK_ELEMENTS)], search), 0);
    for (index, piece) in row.chunks(BLOCK_ELEMENTS).enumerate().skip(1) {
        let new = extremum(piece, search);
        if search.replaces(new, best) {
            (best, at) = (new, index);
        }
    }
    let piece = &row[at * BLOCK_ELEMENTS..row.len().min((at + 1) * BLOCK_ELEMENTS)];
    let index = position(piece, best, search.tie_high);
    (at * BLOCK_ELEMENTS + index.expect("the extremum is an element")) as i64
}

/// The extremum of a piece of a row, or NaN if the piece contains NaN. Elements may be compared
/// twice, because the last lanes overlap the lanes before.
#[inline(always)]
fn extremum<T: Ordered>(piece: &[T], search: &ExtremumSearch<T, impl Fn(T, T) -> bool>) -> T {
    let pick = pick_better(&search.is_better);
    let Some(last) = piece.last_chunk() else {
        return piece.iter().fold(piece[0], |best, &x| pick(best, x));
    };
    let [mut a, b, c, d] = add_chunks([*last; GROUPS], piece.as_chunks().0, &pick);
    for lane in 0..a.len() {
        a[lane] = pick(pick(a[lane], b[lane]), pick(c[lane], d[lane]));
    }
    merge_lanes(a, &pick)
}

/// The first or the last position of an element in a piece. All NaN are equal.
#[inline(always)]
fn position<T: Ordered>(piece: &[T], element: T, is_last: bool) -> Option<usize> {
    let is_nan = element.is_not_a_number();
    let is_it = |&x: &T| (x == element) | (is_nan & x.is_not_a_number());
    let Some(end) = piece.last_chunk::<SEARCH_BLOCK>() else {
        let mut all = piece.iter();
        return if is_last { all.rposition(is_it) } else { all.position(is_it) };
    };
    let is_in = |block: &[T; SEARCH_BLOCK]| block.iter().fold(false, |any, x| any | is_it(x));
    let blocks = piece.as_chunks::<SEARCH_BLOCK>().0;
    // The last block overlaps the block before it, which does not contain the element in that case.
    let at_end = || is_in(end).then_some((piece.len() - SEARCH_BLOCK, end));
    let before = || {
        let mut all = blocks.iter();
        let at = if is_last { all.rposition(is_in) } else { all.position(is_in) }?;
        Some((at * SEARCH_BLOCK, &blocks[at]))
    };
    let (start, block) = if is_last { at_end().or_else(before) } else { before().or_else(at_end) }?;
    let mut all = block.iter();
    Some(start + if is_last { all.rposition(is_it) } else { all.position(is_it) }?)
}
