//! Scatters: each update goes to the window at its coordinates, in order.

use std::hint::select_unpredictable;

use nxla_expr::{Combine, TensorType};
use nxla_tensor::{DType, HostTensor};

use super::gather::{IndexedWindows, coordinates, lists};
use crate::context::{self, Args, Cx, Fault};
use crate::kernels::elementwise::{convert, owned};
use crate::kernels::number::{Number, compute_dtype, match_number};
use crate::kernels::ordered::{Ordered, comparison_dtype, match_order};
use crate::kernels::strided::match_size;

/// `[x, indices, updates]` of a scatter, both tensors in the dtype of the result.
struct Scatter {
    windows: IndexedWindows,
    /// The indices in the dtype of the operand.
    indices: HostTensor,
    width: usize,
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
        Ok(Self { windows, indices, width: axes.len(), updates, result })
    }

    /// Calls `put` with each window of the result that is in range, and its update, in order.
    fn for_each<T: bytemuck::Pod>(
        mut self,
        cx: Cx<'_>,
        put: impl Fn(&mut T, T),
    ) -> Result<HostTensor, Fault> {
        let window = self.windows.window.len();
        if window == 0 {
            return Ok(self.result);
        }
        let updates: &[T] = bytemuck::cast_slice(self.updates.bytes());
        let out: &mut [T] = bytemuck::cast_slice_mut(context::bytes_mut(&mut self.result));
        let single = match (&*self.windows.indexed, window) {
            ([axis], 1) => Some(*axis),
            _ => None,
        };
        if let (Some(axis), DType::S32) = (single, self.indices.dtype()) {
            put_each(out, axis, context::slice::<i32>(&self.indices), updates, put);
            return Ok(self.result);
        }
        let indices = coordinates(cx, &self.indices)?;
        let indices = context::slice::<i64>(&indices);
        if let Some(axis) = single {
            put_each(out, axis, indices, updates, put);
            return Ok(self.result);
        }
        let lists = lists(indices, self.width, 0, updates.len() / window);
        for (update, list) in updates.chunks_exact(window).zip(lists) {
            let Some(at) = self.windows.offset_inside(list) else { continue };
            self.windows.window.for_each_strided_run(window, |run, range| {
                let targets = out[at..].iter_mut().skip(run.first).step_by(run.step);
                targets.zip(&update[range]).for_each(|(out, &x)| put(out, x));
            });
        }
        Ok(self.result)
    }
}

/// Scatters single elements along an axis of this size and step. A separate function, because
/// reference arguments are known not to overlap.
fn put_each<T: Copy, I: Copy + TryInto<usize>>(
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
