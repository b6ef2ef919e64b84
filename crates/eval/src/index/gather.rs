//! Gathers and scatters.
//!
//! The last axis of the indices holds one coordinate for each indexed axis. What lies at these
//! coordinates is a *window*: the axes that are not indexed. Coordinates of a gather are clamped;
//! a scatter drops updates whose coordinates fall outside.

use nxla_expr::TensorType;
use nxla_tensor::{Complex, DType, HostTensor};

use crate::args::Args;
use crate::elementwise::{Compute, convert};
use crate::error::Fault;
use crate::layout::{Strided, match_size};
use crate::{memory, parallel, value};

/// The indexed axes, and the windows between them.
struct Places {
    /// Size and step of each indexed axis.
    indexed: Vec<(usize, usize)>,
    /// Where the elements of a window are, relative to its first one.
    window: Strided,
}

impl Places {
    /// The windows of a tensor of shape `shape`, of which only `window_shape` is used.
    fn new(axes: &[usize], shape: &[usize], window_shape: &[usize]) -> Self {
        let steps = Strided::row_major(shape);
        let indexed = axes.iter().map(|&axis| (shape[axis], steps[axis] as usize)).collect();
        let rest = (0..shape.len()).filter(|axis| !axes.contains(axis));
        let window = rest.zip(window_shape).map(|(axis, &size)| (size, steps[axis]));
        Self { indexed, window: Strided::new(0, window) }
    }

    /// The first element of the window at clamped coordinates.
    fn clamped(&self, coordinates: &[i64]) -> usize {
        let coordinates = coordinates.iter().zip(&self.indexed);
        let places = coordinates.map(|(&at, &(size, step))| {
            at.clamp(0, i64::try_from(size).unwrap_or(i64::MAX).saturating_sub(1)) as usize * step
        });
        places.sum()
    }

    /// The first element of the window, unless a coordinate is outside.
    fn inside(&self, coordinates: &[i64]) -> Option<usize> {
        coordinates.iter().zip(&self.indexed).try_fold(0, |place, (&at, &(size, step))| {
            let at = usize::try_from(at).ok().filter(|&at| at < size)?;
            Some(place + at * step)
        })
    }
}

/// Coordinates as `s64`. Those beyond are outside of every tensor, and stay so.
fn coordinates(indices: &HostTensor) -> Result<HostTensor, Fault> {
    if indices.dtype() == DType::U64 {
        let limit = |&at: &u64| i64::try_from(at).unwrap_or(i64::MAX);
        let indices_64 = memory::collected(value::slice::<u64>(indices).iter().map(limit));
        return Ok(HostTensor::from_slice(&indices_64, indices.shape().clone())?);
    }
    convert(indices, DType::S64)
}

/// The coordinates of each window. With no indexed axes each list is empty, but there are as many
/// as there are windows.
fn lists(
    indices: &[i64],
    width: usize,
    first: usize,
    count: usize,
) -> impl Iterator<Item = &[i64]> {
    (first..first + count).map(move |list| &indices[list * width..(list + 1) * width])
}

pub(super) fn gather(
    axes: &[usize],
    x: &HostTensor,
    indices: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let leading = indices.rank() - 1;
    let places = Places::new(axes, x.shape(), &ty.shape[leading..]);
    let width = axes.len();
    let window = places.window.len();
    if let ([(size, 1)], 1, DType::S32) = (&*places.indexed, window, indices.dtype()) {
        let indices = value::slice::<i32>(indices);
        return gather_each(x, *size, indices, ty);
    }
    let indices = coordinates(indices)?;
    let indices = value::slice::<i64>(&indices);
    if let ([(size, 1)], 1) = (&*places.indexed, window) {
        return gather_each(x, *size, indices, ty);
    }
    value::build_bytes(ty.dtype, &ty.shape, |out| {
        match_size!(ty.dtype.size(), T => {
            let x: &[T] = bytemuck::cast_slice(x.bytes());
            let out: &mut [T] = bytemuck::cast_slice_mut(out);
            if window == 0 {
                return;
            }
            parallel::rows(out, window, window + 8 * width, |first, out| {
                let lists = lists(indices, width, first, out.len() / window);
                for (out, list) in out.chunks_exact_mut(window).zip(lists) {
                    let at = places.clamped(list);
                    match out {
                        [out] => *out = x[at],
                        out => places.window.read(&x[at..], 0, out),
                    }
                }
            });
        });
    })
}

/// Gathers single elements of a vector of this size.
fn gather_each<I: Copy + Sync + TryInto<usize>>(
    x: &HostTensor,
    size: usize,
    indices: &[I],
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    value::build_bytes(ty.dtype, &ty.shape, |out| {
        match_size!(ty.dtype.size(), T => {
            let x: &[T] = &bytemuck::cast_slice(x.bytes())[..size];
            let out: &mut [T] = bytemuck::cast_slice_mut(out);
            parallel::rows(out, 1, 8, |first, out| take(x, &indices[first..], out));
        });
    })
}

/// Takes elements. A function of its own, whose arguments are known not to overlap.
fn take<T: Copy, I: Copy + TryInto<usize>>(x: &[T], indices: &[I], out: &mut [T]) {
    let Some(last) = x.len().checked_sub(1) else { return };
    for (out, &at) in out.iter_mut().zip(indices) {
        *out = x[at.try_into().unwrap_or(0).min(last)];
    }
}

/// `[x, indices, updates]` of a scatter, both tensors in the dtype of the result.
struct Scatter {
    places: Places,
    /// Of the dtype in which they came.
    indices: HostTensor,
    width: usize,
    updates: HostTensor,
    result: HostTensor,
}

impl Scatter {
    fn new(
        axes: &[usize],
        args: &mut Args<'_>,
        ty: &TensorType,
        compute: DType,
    ) -> Result<Self, Fault> {
        let indices = args.get(1);
        let leading = indices.rank() - 1;
        let updates = convert(&convert(args.get(2), ty.dtype)?, compute)?;
        let places = Places::new(axes, &ty.shape, &updates.shape()[leading..]);
        let indices = indices.clone();
        let result = value::owned(value::owned(args.take(0), ty.dtype)?, compute)?;
        Ok(Self { places, indices, width: axes.len(), updates, result })
    }

    /// Calls `put` with each window of the result that is inside, and its update, in order.
    fn for_each<T: bytemuck::Pod>(mut self, put: impl Fn(&mut T, T)) -> Result<HostTensor, Fault> {
        let window = self.places.window.len();
        if window == 0 {
            return Ok(self.result);
        }
        let updates: &[T] = bytemuck::cast_slice(self.updates.bytes());
        let out: &mut [T] = bytemuck::cast_slice_mut(value::bytes_mut(&mut self.result));
        let single = match (&*self.places.indexed, window) {
            ([axis], 1) => Some(*axis),
            _ => None,
        };
        if let (Some(axis), DType::S32) = (single, self.indices.dtype()) {
            put_each(out, axis, value::slice::<i32>(&self.indices), updates, put);
            return Ok(self.result);
        }
        let indices = coordinates(&self.indices)?;
        let indices = value::slice::<i64>(&indices);
        if let Some(axis) = single {
            put_each(out, axis, indices, updates, put);
            return Ok(self.result);
        }
        let lists = lists(indices, self.width, 0, updates.len() / window);
        for (update, list) in updates.chunks_exact(window).zip(lists) {
            let Some(at) = self.places.inside(list) else { continue };
            self.places.window.for_each_place(window, |place, range| {
                let places = out[at..].iter_mut().skip(place.first).step_by(place.step);
                places.zip(&update[range]).for_each(|(out, &x)| put(out, x));
            });
        }
        Ok(self.result)
    }
}

/// Scatters single elements along an axis of this size and step. A function of its own, whose arguments
/// are known not to overlap.
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
    axes: &[usize],
    args: &mut Args<'_>,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let compute = Compute::of(ty.dtype);
    let scatter = Scatter::new(axes, args, ty, compute.dtype())?;
    macro_rules! integer {
        ($t:ty) => {
            scatter.for_each(|out: &mut $t, x| *out = out.wrapping_add(x))
        };
    }
    let result = match compute {
        Compute::U8 => integer!(u8),
        Compute::U16 => integer!(u16),
        Compute::U32 => integer!(u32),
        Compute::U64 => integer!(u64),
        Compute::S8 => integer!(i8),
        Compute::S16 => integer!(i16),
        Compute::S32 => integer!(i32),
        Compute::S64 => integer!(i64),
        Compute::F32 => scatter.for_each(|out: &mut f32, x| *out += x),
        Compute::F64 => scatter.for_each(|out: &mut f64, x| *out += x),
        Compute::C64 => scatter.for_each(|out: &mut Complex<f32>, x| *out += x),
        Compute::C128 => scatter.for_each(|out: &mut Complex<f64>, x| *out += x),
    }?;
    convert(&result, ty.dtype)
}

/// Replaces in order: of several updates of one element the last one stays.
pub(super) fn indexed_put(
    axes: &[usize],
    args: &mut Args<'_>,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let scatter = Scatter::new(axes, args, ty, ty.dtype)?;
    match_size!(ty.dtype.size(), T => scatter.for_each(|out: &mut T, x: T| *out = x))
}
