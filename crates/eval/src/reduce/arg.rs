//! Positions of extrema.

use nxla_expr::{ArgReduce, ArgReduceOp, TensorType};
use nxla_tensor::{DType, HostTensor};

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
        match (op, attributes.tie_high) {
            (ArgReduceOp::Argmax, false) => search(x, plane, ty, |a: T, b: T| a > b, false),
            (ArgReduceOp::Argmax, true) => search(x, plane, ty, |a: T, b: T| a >= b, true),
            (ArgReduceOp::Argmin, false) => search(x, plane, ty, |a: T, b: T| a < b, false),
            (ArgReduceOp::Argmin, true) => search(x, plane, ty, |a: T, b: T| a <= b, true),
        }
    })?;
    convert(&positions, ty.dtype)
}

fn search<T: Ordered>(
    x: &[T],
    plane: Plane,
    ty: &TensorType,
    beats: impl Fn(T, T) -> bool + Sync,
    tie_high: bool,
) -> Result<HostTensor, Fault> {
    let Plane { count, inner, .. } = plane;
    let replaces = |new: T, best: T| {
        // A comparison with NaN fails. Without branches, so that blocks are passed over at once.
        beats(new, best) | (new.is_not_a_number() & (tie_high | !best.is_not_a_number()))
    };
    if inner == 1 {
        return value::build(DType::S64, &ty.shape, |out: &mut [i64]| {
            parallel::rows(out, 1, count, |first, out| {
                let rows = x[first * count..].chunks_exact(count);
                rows.zip(out).for_each(|(row, out)| *out = in_row(row, &replaces));
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
                        // A number never replaces NaN, even where it would win a comparison.
                        if replaces(new, *best) {
                            *best = new;
                            *at = position as i64;
                        }
                    }
                }
            }
        });
    })
}

/// Elements that are passed over together.
const BLOCK: usize = 64;

/// The position of the extremum of a row. Few blocks hold an element that replaces the best so far.
fn in_row<T: Ordered>(row: &[T], replaces: &impl Fn(T, T) -> bool) -> i64 {
    let (mut best, mut at) = (row[0], 0);
    vectorize(
        #[inline(always)]
        || {
            for (block, elements) in row.chunks(BLOCK).enumerate() {
                if !elements.iter().fold(false, |any, &new| any | replaces(new, best)) {
                    continue;
                }
                for (index, &new) in elements.iter().enumerate() {
                    if replaces(new, best) {
                        (best, at) = (new, block * BLOCK + index);
                    }
                }
            }
        },
    );
    at as i64
}
