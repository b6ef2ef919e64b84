//! Scatters: each update goes to the window at its coordinates, in order.

use std::hint::select_unpredictable;

use nxla_expr::{Combine, TensorType};
use nxla_tensor::{DType, HostTensor};

use super::gather::{BLOCK, IndexedWindows, OUTSIDE, match_coordinates, with_offsets};
use crate::context::{self, Args, Cx, Fault};
use crate::kernels::elementwise::{convert, owned};
use crate::kernels::number::{Number, compute_dtype, match_number};
use crate::kernels::ordered::{Ordered, comparison_dtype, match_order};
use crate::kernels::strided::match_size;

/// `[x, indices, updates]` of a scatter, both tensors in the dtype of the result.
struct Scatter {
    windows: IndexedWindows,
    indices: HostTensor,
    updates: HostTensor,
    result: HostTensor,
}

impl Scatter {
    fn new(
        cx: Cx<'_>,
        axes: &[usize],
        args: &mut Args<'_>,
        ty: &TensorType,
        compute: DType,
    ) -> Result<Self, Fault> {
        let indices = args.get(1);
        let leading = indices.rank() - 1;
        let updates = convert(cx, &convert(cx, args.get(2), ty.dtype)?, compute)?;
        let windows = IndexedWindows::new(axes, &ty.shape, &updates.shape()[leading..]);
        let indices = indices.clone();
        let result = owned(cx, owned(cx, args.take(0), ty.dtype)?, compute)?;
        Ok(Self { windows, indices, updates, result })
    }

    /// Calls `put` with each element of the windows that are in range, and its update, in order.
    fn for_each<T: bytemuck::Pod>(
        self,
        cx: Cx<'_>,
        put: impl Fn(&mut T, T),
    ) -> Result<HostTensor, Fault> {
        let Self { windows, indices, updates, mut result } = self;
        let updates: &[T] = bytemuck::cast_slice(updates.bytes());
        let out: &mut [T] = bytemuck::cast_slice_mut(context::bytes_mut(&mut result));
        let (window, size) = (&windows.window, windows.window.len());
        if size == 0 || out.is_empty() {
            return Ok(result);
        }
        if let ([axis], 1) = (&*windows.indexed, size) {
            match_coordinates!(cx, &indices, coordinates => {
                put_along(out, *axis, coordinates, updates, put);
            });
            return Ok(result);
        }
        with_offsets(cx, &windows, &indices, false, |locate| {
            let mut offsets = [0; BLOCK];
            for (block, updates) in updates.chunks(BLOCK * size).enumerate() {
                let offsets = &mut offsets[..updates.len() / size];
                locate(block * BLOCK, offsets);
                if size == 1 {
                    put_each(out, offsets, updates, &put);
                    continue;
                }
                for (update, &at) in updates.chunks_exact(size).zip(&*offsets) {
                    if at != OUTSIDE {
                        window.for_each_target(update, &mut out[at..], &put);
                    }
                }
            }
        })?;
        Ok(result)
    }
}

/// Scatters single elements along an axis of this size and step. A separate function, because reference
/// arguments are known not to overlap. Computing offsets first takes up to twice as long.
fn put_along<T: Copy, I: Copy + TryInto<usize>>(
    out: &mut [T],
    (size, step): (usize, usize),
    indices: &[I],
    updates: &[T],
    put: impl Fn(&mut T, T),
) {
    for (&x, &at) in updates.iter().zip(indices) {
        if let Some(at) = at.try_into().ok().filter(|&at| at < size) {
            put(&mut out[at * step], x);
        }
    }
}

/// Scatters single elements. A separate function, because reference arguments are known not to overlap.
fn put_each<T: Copy>(out: &mut [T], offsets: &[usize], updates: &[T], put: impl Fn(&mut T, T)) {
    for (&x, &at) in updates.iter().zip(offsets) {
        // `OUTSIDE` is out of bounds.
        if let Some(out) = out.get_mut(at) {
            put(out, x);
        }
    }
}

/// Adds in order; floats narrower than `f32` are added in `f32` and rounded at the end.
pub(super) fn indexed_add(
    cx: Cx<'_>,
    axes: &[usize],
    args: &mut Args<'_>,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let compute = compute_dtype(ty.dtype);
    let scatter = Scatter::new(cx, axes, args, ty, compute)?;
    let sums = match_number!(compute, T => {
        scatter.for_each(cx, |out: &mut T, x| *out = out.plus(x))
    });
    convert(cx, &sums?, ty.dtype)
}

/// Combines the elements of a vector with all of their updates, in order; narrow floats like
/// [`indexed_add`].
pub(crate) fn scatter_to_vector(
    cx: Cx<'_>,
    op: Combine,
    args: &mut Args<'_>,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let compute = match op {
        Combine::Multiply => compute_dtype(ty.dtype),
        Combine::Max | Combine::Min => comparison_dtype(ty.dtype),
    };
    let scatter = Scatter::new(cx, &[0], args, ty, compute)?;
    let result = match op {
        Combine::Multiply => match_number!(compute, T => {
            scatter.for_each(cx, |out: &mut T, x| *out = out.times(x))
        }),
        // The comparison is unpredictable, so a selection is faster than a branch.
        Combine::Max | Combine::Min => match_order!(compute, op == Combine::Max, T, is_better => {
            scatter.for_each(cx, |out: &mut T, x| {
                *out = select_unpredictable(is_better(*out, x) | out.is_not_a_number(), *out, x);
            })
        }),
    }?;
    convert(cx, &result, ty.dtype)
}

/// Replaces elements in order: of several updates of one element, the last one remains.
pub(super) fn indexed_put(
    cx: Cx<'_>,
    axes: &[usize],
    args: &mut Args<'_>,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let scatter = Scatter::new(cx, axes, args, ty, ty.dtype)?;
    match_size!(ty.dtype.size(), T => scatter.for_each(cx, |out: &mut T, x: T| *out = x))
}
