//! The gather kernel, and the index arithmetic that gather and scatter share.
//!
//! The last axis of the indices holds one coordinate for each indexed axis. The coordinates select a
//! *window*, which spans the axes that are not indexed. A gather clamps its coordinates; a scatter
//! drops updates whose coordinates are out of bounds.

use nxla_expr::TensorType;
use nxla_tensor::{DType, HostTensor};

use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::convert;
use crate::kernels::strided::{Strided, match_size};

/// The indexed axes, and the windows between them.
pub(super) struct IndexedWindows {
    /// Size and step of each indexed axis.
    pub(super) indexed: Vec<(usize, usize)>,
    /// The offsets of the elements of a window, relative to its first element.
    pub(super) window: Strided,
}

impl IndexedWindows {
    /// The windows of shape `window_shape` of a tensor of shape `shape`.
    pub(super) fn new(axes: &[usize], shape: &[usize], window_shape: &[usize]) -> Self {
        let steps = Strided::row_major(shape);
        let indexed = axes.iter().map(|&axis| (shape[axis], steps[axis] as usize)).collect();
        let rest = (0..shape.len()).filter(|axis| !axes.contains(axis));
        let window = rest.zip(window_shape).map(|(axis, &size)| (size, steps[axis]));
        Self { indexed, window: Strided::new(0, window) }
    }

    /// The first element of the window at clamped coordinates.
    fn clamped_offset(&self, coordinates: &[i64]) -> usize {
        let coordinates = coordinates.iter().zip(&self.indexed);
        let offsets = coordinates.map(|(&at, &(size, step))| {
            at.clamp(0, i64::try_from(size).unwrap_or(i64::MAX).saturating_sub(1)) as usize * step
        });
        offsets.sum()
    }

    /// The first element of the window, unless a coordinate is outside.
    pub(super) fn offset_inside(&self, coordinates: &[i64]) -> Option<usize> {
        coordinates.iter().zip(&self.indexed).try_fold(0, |offset, (&at, &(size, step))| {
            let at = usize::try_from(at).ok().filter(|&at| at < size)?;
            Some(offset + at * step)
        })
    }
}

/// The coordinates as `s64`. Coordinates above its range are out of range for every tensor, and
/// remain so.
pub(super) fn coordinates(cx: Cx<'_>, indices: &HostTensor) -> Result<HostTensor, Fault> {
    if indices.dtype() == DType::U64 {
        let limit = |&at: &u64| i64::try_from(at).unwrap_or(i64::MAX);
        let indices_64 = context::collect_vec(context::slice::<u64>(indices).iter().map(limit));
        return Ok(HostTensor::from_slice(&indices_64, indices.shape().clone())?);
    }
    convert(cx, indices, DType::S64)
}

/// The coordinates of each window. Without indexed axes, the lists are empty, but there is one for
/// each window.
pub(super) fn lists(
    indices: &[i64],
    width: usize,
    first: usize,
    count: usize,
) -> impl Iterator<Item = &[i64]> {
    (first..first + count).map(move |list| &indices[list * width..(list + 1) * width])
}

pub(super) fn gather(
    cx: Cx<'_>,
    axes: &[usize],
    x: &HostTensor,
    indices: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let leading = indices.rank() - 1;
    let windows = IndexedWindows::new(axes, x.shape(), &ty.shape[leading..]);
    let width = axes.len();
    let window = windows.window.len();
    if let ([(size, 1)], 1, DType::S32) = (&*windows.indexed, window, indices.dtype()) {
        let indices = context::slice::<i32>(indices);
        return gather_each(cx, x, *size, indices, ty);
    }
    let indices = coordinates(cx, indices)?;
    let indices = context::slice::<i64>(&indices);
    if let ([(size, 1)], 1) = (&*windows.indexed, window) {
        return gather_each(cx, x, *size, indices, ty);
    }
    context::build_bytes(ty.dtype, &ty.shape, |out| {
        match_size!(ty.dtype.size(), T => {
            let x: &[T] = bytemuck::cast_slice(x.bytes());
            let out: &mut [T] = bytemuck::cast_slice_mut(out);
            if window == 0 {
                return;
            }
            let is_whole = windows.window.is_contiguous();
            cx.rows(out, window, window + 8 * width, |first, out| {
                let lists = lists(indices, width, first, out.len() / window);
                for (out, list) in out.chunks_exact_mut(window).zip(lists) {
                    let at = windows.clamped_offset(list);
                    match out {
                        [out] => *out = x[at],
                        out if is_whole => out.copy_from_slice(&x[at..at + window]),
                        out => windows.window.read(&x[at..], 0, out),
                    }
                }
            });
        });
    })
}

/// Gathers single elements of a vector of this size.
fn gather_each<I: Copy + Sync + TryInto<usize>>(
    cx: Cx<'_>,
    x: &HostTensor,
    size: usize,
    indices: &[I],
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    context::build_bytes(ty.dtype, &ty.shape, |out| {
        match_size!(ty.dtype.size(), T => {
            let x: &[T] = &bytemuck::cast_slice(x.bytes())[..size];
            let out: &mut [T] = bytemuck::cast_slice_mut(out);
            cx.rows(out, 1, 8, |first, out| take(x, &indices[first..], out));
        });
    })
}

/// Gathers elements. A separate function, because reference arguments are known not to overlap.
fn take<T: Copy, I: Copy + TryInto<usize>>(x: &[T], indices: &[I], out: &mut [T]) {
    let Some(last) = x.len().checked_sub(1) else { return };
    for (out, &at) in out.iter_mut().zip(indices) {
        *out = x[at.try_into().unwrap_or(0).min(last)];
    }
}
