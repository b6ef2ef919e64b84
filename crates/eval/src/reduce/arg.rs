//! Positions of extrema.

use nxla_expr::{ArgReduce, ArgReduceOp, TensorType};
use nxla_tensor::{DType, HostTensor};

use super::kernel::{GROUPS, add_chunks, narrowed};
use super::{Ordered, Plane, match_ordered, widened_float};
use crate::elementwise::{convert, vectorize};
use crate::error::Fault;
use crate::{memory, parallel, value};

/// NaN beats every number; among equals, and among several NaN, the attribute decides.
pub(super) fn arg_reduce(
    op: ArgReduceOp,
    attributes: &ArgReduce,
    x: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let x = convert(x, widened_float(x.dtype()))?;
    let plane = match attributes.axis {
        Some(axis) => Plane::along(x.shape(), axis),
        None => Plane { times: 1, outer: 1, count: x.size(), inner: 1 },
    };
    let positions = match_ordered!(x.dtype(), T => {
        let x = value::slice::<T>(&x);
        let tie_high = attributes.tie_high;
        match op {
            ArgReduceOp::Argmax => {
                let is_better = |a: T, b: T| a > b;
                search(x, plane, ty, &Search { is_better, tie_high })
            }
            ArgReduceOp::Argmin => {
                let is_better = |a: T, b: T| a < b;
                search(x, plane, ty, &Search { is_better, tie_high })
            }
        }
    })?;
    convert(&positions, ty.dtype)
}

/// What is looked for.
struct Search<F> {
    /// Whether the first is strictly better than the second; not if one is NaN.
    is_better: F,
    /// Whether the last of several equal ones is wanted.
    tie_high: bool,
}

impl<F> Search<F> {
    /// Whether an element takes the place of the best so far, which stands before it. Without
    /// branches, so that blocks are passed over at once.
    #[inline(always)]
    fn replaces<T: Ordered>(&self, new: T, best: T) -> bool
    where
        F: Fn(T, T) -> bool,
    {
        let is_nan = best.is_not_a_number();
        let is_tie = (new == best) & self.tie_high;
        // A number never replaces NaN.
        (self.is_better)(new, best) | is_tie | (new.is_not_a_number() & (self.tie_high | !is_nan))
    }
}

fn search<T: Ordered>(
    x: &[T],
    plane: Plane,
    ty: &TensorType,
    search: &Search<impl Fn(T, T) -> bool + Sync>,
) -> Result<HostTensor, Fault> {
    let Plane { count, inner, .. } = plane;
    if inner == 1 {
        return value::build(DType::S64, &ty.shape, |out: &mut [i64]| {
            // Elements are passed over in vectors.
            parallel::rows(out, 1, count / 8, |first, out| {
                let rows = x[first * count..].chunks_exact(count);
                vectorize(
                    #[inline(always)]
                    || {
                        for (row, out) in rows.zip(out) {
                            *out = in_row(row, search);
                        }
                    },
                );
            });
        });
    }
    value::build(DType::S64, &ty.shape, |out: &mut [i64]| {
        parallel::rows(out, inner, count * inner, |first, out| {
            let blocks = x[first * count * inner..].chunks_exact(count * inner);
            let mut best = memory::filled(x[0], inner);
            for (x, out) in blocks.zip(out.chunks_exact_mut(inner)) {
                best.copy_from_slice(&x[..inner]);
                out.fill(0);
                for (position, row) in x.chunks_exact(inner).enumerate().skip(1) {
                    for ((best, at), &new) in best.iter_mut().zip(&mut *out).zip(row) {
                        if search.replaces(new, *best) {
                            *best = new;
                            *at = position as i64;
                        }
                    }
                }
            }
        });
    })
}

/// Elements of a piece of a row, which is still in the cache when it is searched.
const PIECE: usize = 4096;

/// Elements that are searched together, and then parts of them.
const BLOCK: usize = 64;
const PART: usize = 8;

/// The position of the extremum of a row: first the extremum, then where it is.
#[inline(always)]
fn in_row<T: Ordered>(row: &[T], search: &Search<impl Fn(T, T) -> bool>) -> i64 {
    let (mut best, mut at) = (extremum(&row[..row.len().min(PIECE)], search), 0);
    for (index, piece) in row.chunks(PIECE).enumerate().skip(1) {
        let new = extremum(piece, search);
        if search.replaces(new, best) {
            (best, at) = (new, index);
        }
    }
    let piece = &row[at * PIECE..row.len().min((at + 1) * PIECE)];
    let place = position(piece, best, search.tie_high);
    (at * PIECE + place.expect("the extremum is an element")) as i64
}

/// The extremum of a piece of a row, which is some NaN if there is one. Elements may count twice, so that
/// the last lanes overlap those before.
#[inline(always)]
fn extremum<T: Ordered>(piece: &[T], search: &Search<impl Fn(T, T) -> bool>) -> T {
    let pick = |a: T, b: T| if (search.is_better)(a, b) | a.is_not_a_number() { a } else { b };
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
    // The last block overlaps the one before, in which there is none if it comes to that.
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
