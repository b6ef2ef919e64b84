//! Positions of extrema.

use nxla_expr::{ArgReduce, ArgReduceOp, TensorType};
use nxla_tensor::{DType, HostTensor};

use super::kernel::{Reducer, run};
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
            parallel::rows(out, 1, count, |first, out| {
                let rows = x[first * count..].chunks_exact(count);
                rows.zip(out).for_each(|(row, out)| *out = in_row(row, search));
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
fn in_row<T: Ordered>(row: &[T], search: &Search<impl Fn(T, T) -> bool>) -> i64 {
    let extremum = |piece: &[T]| {
        let pick = |a: T, b: T| if (search.is_better)(a, b) | a.is_not_a_number() { a } else { b };
        run(piece, Reducer { start: piece[0], step: pick, merge: pick })
    };
    let (mut best, mut at) = (extremum(&row[..row.len().min(PIECE)]), 0);
    for (index, piece) in row.chunks(PIECE).enumerate().skip(1) {
        let new = extremum(piece);
        if search.replaces(new, best) {
            (best, at) = (new, index);
        }
    }
    let piece = &row[at * PIECE..row.len().min((at + 1) * PIECE)];
    let mut place = None;
    vectorize(
        #[inline(always)]
        || place = position(piece, best, search.tie_high),
    );
    (at * PIECE + place.expect("the extremum is an element")) as i64
}

/// The first place of an element, or the last one. Every NaN is like every other.
#[inline(always)]
fn position<T: Ordered>(piece: &[T], element: T, is_last: bool) -> Option<usize> {
    let is_nan = element.is_not_a_number();
    let is_it = |&x: &T| (x == element) | (is_nan & x.is_not_a_number());
    let (blocks, tail) = piece.as_chunks::<BLOCK>();
    let is_in = |block: &[T; BLOCK]| block.iter().fold(false, |any, x| any | is_it(x));
    let is_in_part = |part: &[T; PART]| part.iter().fold(false, |any, x| any | is_it(x));
    let in_tail = || {
        let place =
            if is_last { tail.iter().rposition(is_it) } else { tail.iter().position(is_it) };
        place.map(|place| blocks.len() * BLOCK + place)
    };
    let in_blocks = || {
        let mut all = blocks.iter();
        let block = if is_last { all.rposition(is_in) } else { all.position(is_in) }?;
        let (parts, _) = blocks[block].as_chunks::<PART>();
        let mut all = parts.iter();
        let part = if is_last { all.rposition(is_in_part) } else { all.position(is_in_part) }?;
        let mut all = parts[part].iter();
        let place = if is_last { all.rposition(is_it) } else { all.position(is_it) }?;
        Some(block * BLOCK + part * PART + place)
    };
    if is_last { in_tail().or_else(in_blocks) } else { in_blocks().or_else(in_tail) }
}
