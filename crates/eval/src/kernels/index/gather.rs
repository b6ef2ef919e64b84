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

    /// Writes the first element of the window at each list of coordinates. `find` maps a coordinate to
    /// an index of an axis of some size; without an index, the offset is [`OUTSIDE`].
    fn locate<I: Copy>(
        &self,
        coordinates: &[I],
        offsets: &mut [usize],
        find: impl Fn(I, usize) -> Option<usize>,
    ) {
        if self.indexed.is_empty() {
            offsets.fill(0);
        }
        for (axis, &(size, step)) in self.indexed.iter().enumerate() {
            let along_axis = coordinates.iter().skip(axis).step_by(self.indexed.len());
            for (offset, &at) in offsets.iter_mut().zip(along_axis) {
                let before = if axis == 0 { 0 } else { *offset };
                *offset = match find(at, size) {
                    Some(index) if before != OUTSIDE => before + index * step,
                    _ => OUTSIDE,
                };
            }
        }
    }
}

/// The offset of a window with coordinates out of bounds.
pub(super) const OUTSIDE: usize = usize::MAX;

/// The number of windows whose offsets are computed at a time; they stay in the first-level cache.
pub(super) const BLOCK: usize = 512;

/// Writes the offsets of successive windows, beginning with the window of a number.
pub(super) type Locate<'a> = dyn Fn(usize, &mut [usize]) + Sync + 'a;

/// Binds a name to the coordinates as `i32` or `i64`.
macro_rules! match_coordinates {
    ($cx:expr, $indices:expr, $coordinates:ident => $body:expr) => {
        if $indices.dtype() == nxla_tensor::DType::S32 {
            let $coordinates = $crate::context::slice::<i32>($indices);
            $body
        } else {
            let indices = $crate::kernels::index::gather::wide_coordinates($cx, $indices)?;
            let $coordinates = $crate::context::slice::<i64>(&indices);
            $body
        }
    };
}
pub(super) use match_coordinates;

/// Calls `work` with a function that computes offsets. Coordinates out of bounds are clamped, or the
/// offsets are [`OUTSIDE`].
pub(super) fn with_offsets<R>(
    cx: Cx<'_>,
    windows: &IndexedWindows,
    indices: &HostTensor,
    clamps: bool,
    work: impl FnOnce(&Locate<'_>) -> R,
) -> Result<R, Fault> {
    fn run<I: Copy + Sync + TryInto<usize>, R>(
        windows: &IndexedWindows,
        coordinates: &[I],
        clamps: bool,
        work: impl FnOnce(&Locate<'_>) -> R,
    ) -> R {
        let width = windows.indexed.len();
        let clamp =
            |at: I, size: usize| Some(at.try_into().unwrap_or(0).min(size.saturating_sub(1)));
        let check = |at: I, size| at.try_into().ok().filter(|at| *at < size);
        work(&|first, offsets| {
            let coordinates = &coordinates[first * width..];
            if clamps {
                windows.locate(coordinates, offsets, clamp);
            } else {
                windows.locate(coordinates, offsets, check);
            }
        })
    }
    Ok(match_coordinates!(cx, indices, coordinates => run(windows, coordinates, clamps, work)))
}

/// The coordinates as `s64`. Coordinates above its range are out of range for every tensor, and
/// remain so.
pub(super) fn wide_coordinates(cx: Cx<'_>, indices: &HostTensor) -> Result<HostTensor, Fault> {
    if indices.dtype() == DType::U64 {
        let limit = |&at: &u64| i64::try_from(at).unwrap_or(i64::MAX);
        let indices_64 = context::collect_vec(context::slice::<u64>(indices).iter().map(limit));
        return Ok(HostTensor::from_slice(&indices_64, indices.shape().clone())?);
    }
    convert(cx, indices, DType::S64)
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
    if let ([(size, 1)], 1) = (&*windows.indexed, windows.window.len()) {
        return match_coordinates!(cx, indices, coordinates => {
            gather_each(cx, x, *size, coordinates, ty)
        });
    }
    with_offsets(cx, &windows, indices, true, |locate| {
        context::build_bytes(ty.dtype, &ty.shape, |out| {
            match_size!(ty.dtype.size(), T => {
                let x: &[T] = bytemuck::cast_slice(x.bytes());
                copy_windows(cx, x, &windows.window, locate, bytemuck::cast_slice_mut(out));
            });
        })
    })?
}

/// Gathers single elements of a vector of this size. Computing offsets first takes 1.5 times as long.
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
            cx.rows(out, 1, 8, |first, out| take_clamped(x, &indices[first..], out));
        });
    })
}

/// Gathers elements at clamped indices. A separate function, because reference arguments are known not to
/// overlap.
fn take_clamped<T: Copy, I: Copy + TryInto<usize>>(x: &[T], indices: &[I], out: &mut [T]) {
    let Some(last) = x.len().checked_sub(1) else { return };
    for (out, &at) in out.iter_mut().zip(indices) {
        *out = x[at.try_into().unwrap_or(0).min(last)];
    }
}

/// Copies windows whose offsets are in bounds.
fn copy_windows<T: bytemuck::Pod + Send + Sync>(
    cx: Cx<'_>,
    x: &[T],
    window: &Strided,
    locate: &Locate<'_>,
    out: &mut [T],
) {
    let (size, is_whole) = (window.len(), window.is_contiguous());
    if size == 0 || x.is_empty() {
        return;
    }
    cx.rows(out, size, size + 8, |first, out| {
        let mut offsets = [0; BLOCK];
        for (block, out) in out.chunks_mut(BLOCK * size).enumerate() {
            let offsets = &mut offsets[..out.len() / size];
            locate(first + block * BLOCK, offsets);
            if size == 1 {
                take(x, offsets, out);
                continue;
            }
            for (out, &at) in out.chunks_exact_mut(size).zip(&*offsets) {
                if is_whole {
                    out.copy_from_slice(&x[at..at + size]);
                } else {
                    window.read(&x[at..], 0, out);
                }
            }
        }
    });
}

/// Copies single elements. A separate function, because reference arguments are known not to overlap.
fn take<T: Copy>(x: &[T], offsets: &[usize], out: &mut [T]) {
    for (out, &at) in out.iter_mut().zip(offsets) {
        *out = x[at];
    }
}
