//! Positions of extrema.

use nxla_expr::{ArgReduce, ArgReduceOp, TensorType};
use nxla_tensor::{DType, HostTensor};

use super::{Ordered, Plane, match_ordered, widened_float};
use crate::elementwise::convert;
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
        // A comparison with NaN fails, so the second test is only made when it matters.
        beats(new, best) || (new.is_not_a_number() && (tie_high || !best.is_not_a_number()))
    };
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
