//! Positions of extrema.

use nxla_expr::{ArgReduce, ArgReduceOp, TensorType};
use nxla_tensor::{DType, HostTensor};

use super::kernel::{add_chunks, merged, narrowed, neutral};
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

/// The extremum of a piece of a row, which is some NaN if there is one.
#[inline(always)]
fn extremum<T: Ordered>(piece: &[T], search: &Search<impl Fn(T, T) -> bool>) -> T {
    let pick = |a: T, b: T| if (search.is_better)(a, b) | a.is_not_a_number() { a } else { b };
    let (chunks, tail) = piece.as_chunks();
    let mut best = piece[0];
    if !chunks.is_empty() {
        best = narrowed(merged(&add_chunks(neutral(best), chunks, &pick), &pick), &pick);
    }
    for &x in tail {
        best = pick(best, x);
    }
    best
}

/// The first place of an element, or the last one. Every NaN is like every other.
#[inline(always)]
fn position<T: Ordered>(piece: &[T], element: T, is_last: bool) -> Option<usize> {
    let is_nan = element.is_not_a_number();
    let is_it = |&x: &T| (x == element) | (is_nan & x.is_not_a_number());
    let is_in = |block: &[T; BLOCK]| block.iter().fold(false, |any, x| any | is_it(x));
    let is_in_part = |part: &[T; PART]| part.iter().fold(false, |any, x| any | is_it(x));
    // Whole parts come before what is left of them.
    let in_parts = |x: &[T]| {
        let (parts, rest) = x.as_chunks::<PART>();
        let in_rest = || Some(parts.len() * PART + place(rest, is_it, is_last)?);
        let in_whole = || {
            let part = place(parts, is_in_part, is_last)?;
            Some(part * PART + place(&parts[part], is_it, is_last)?)
        };
        if is_last { in_rest().or_else(in_whole) } else { in_whole().or_else(in_rest) }
    };
    let (blocks, tail) = piece.as_chunks::<BLOCK>();
    let in_tail = || Some(blocks.len() * BLOCK + in_parts(tail)?);
    let in_blocks = || {
        let block = place(blocks, is_in, is_last)?;
        Some(block * BLOCK + in_parts(&blocks[block])?)
    };
    if is_last { in_tail().or_else(in_blocks) } else { in_blocks().or_else(in_tail) }
}

/// The place of the first of what is wanted, or of the last.
#[inline(always)]
fn place<T>(of: &[T], is_wanted: impl Fn(&T) -> bool, is_last: bool) -> Option<usize> {
    if is_last { of.iter().rposition(is_wanted) } else { of.iter().position(is_wanted) }
}
