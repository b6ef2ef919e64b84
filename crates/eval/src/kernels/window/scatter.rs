//! Scatters that send the source of each window to the window's extremum.

use std::convert::Infallible;

use nxla_expr::{ScatterOp, TensorType, WindowAttributes};
use nxla_tensor::{DType, Element, HostTensor};

use super::uniform::wide;
use super::{WindowAxis, axes, for_each_tap};
use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::convert;
use crate::kernels::number::{Number, match_number};
use crate::kernels::ordered::{match_order, widened_float};
use crate::kernels::strided::Strided;

/// Of several equal extrema, the last one receives the source. A comparison with NaN fails, and the
/// later element is selected. Padding never receives a source.
pub(super) fn scatter(
    cx: Cx<'_>,
    op: ScatterOp,
    window: &WindowAttributes,
    x: &HostTensor,
    source: &HostTensor,
    initial: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let axes = axes(window, x.shape(), source.shape());
    let x = convert(cx, x, widened_float(x.dtype()))?;
    let places = match_order!(x.dtype(), op == ScatterOp::Max, T, is_better => {
        extrema(cx, &axes, context::slice::<T>(&x), source, x.shape(), is_better)
    });
    // If windows do not overlap, each position receives at most one value, so a wide accumulator is
    // not needed.
    let is_apart = axes.iter().all(|axis| axis.stride > (axis.taps - 1) * axis.dilation);
    let sums = if is_apart && ty.dtype == DType::F32 { ty.dtype } else { wide(ty.dtype) };
    let source = convert(cx, &convert(cx, source, ty.dtype)?, sums)?;
    let initial = initial.get(0).cast(initial.dtype()).cast(ty.dtype);
    let mut result = HostTensor::full(initial, sums, ty.shape.clone())?;
    match_number!(sums, T => {
        let out = context::slice_mut::<T>(&mut result);
        for (&place, &x) in places.iter().zip(context::slice::<T>(&source)) {
            if let Some(out) = out.get_mut(place) {
                *out = out.plus(x);
            }
        }
    });
    convert(cx, &result, ty.dtype)
}

/// The placeholder for a window that is in the padding.
const NOWHERE: usize = usize::MAX;

/// The position of the extremum of each window.
fn extrema<T: Element>(
    cx: Cx<'_>,
    axes: &[WindowAxis],
    x: &[T],
    windows: &HostTensor,
    shape: &[usize],
    stays: impl Fn(T, T) -> bool + Sync,
) -> Vec<usize> {
    let mut places = context::filled(NOWHERE, windows.size());
    let Some((inner, outer)) = axes.split_last() else {
        // The one window of a scalar holds the scalar.
        places.fill(0);
        return places;
    };
    let steps = Strided::row_major(shape);
    let taps: usize = axes.iter().map(|axis| axis.taps).product();
    cx.rows(&mut places, inner.count, inner.count * taps, |first, places| {
        let mut window = vec![0; outer.len()];
        let mut best = context::filled(T::default(), inner.count);
        for (number, places) in places.chunks_exact_mut(inner.count).enumerate() {
            let mut rest = first + number;
            for (index, axis) in window.iter_mut().zip(outer).rev() {
                *index = rest % axis.count;
                rest /= axis.count;
            }
            // A window is searched in row-major order, which decides ties.
            let visited: Result<(), Infallible> = for_each_tap(outer, |taps| {
                let row = (0..outer.len()).try_fold(0, |row, axis| {
                    Some(row + outer[axis].place(window[axis], taps[axis])? * steps[axis] as usize)
                });
                if let Some(row) = row {
                    search(inner, &x[row..][..inner.size], row, &mut best, places, &stays);
                }
                Ok(())
            });
            let Ok(()) = visited;
        }
    });
    places
}

/// Continues the search for the extrema of a row of windows, in the row of `x` that begins at
/// `first`. `best` holds the extrema so far, and `places` their positions.
#[inline(always)]
fn search<T: Element>(
    axis: &WindowAxis,
    row: &[T],
    first: usize,
    best: &mut [T],
    places: &mut [usize],
    stays: &impl Fn(T, T) -> bool,
) {
    for tap in 0..axis.taps {
        let seen = axis.seen(tap);
        let Some(start) = axis.place(seen.start, tap).filter(|_| !seen.is_empty()) else {
            continue;
        };
        let elements = row[start..].iter().step_by(axis.stride);
        let found = best[seen.clone()].iter_mut().zip(&mut places[seen]);
        // The loop has no branches, so that the compiler vectorizes it.
        for (index, ((best, place), &x)) in found.zip(elements).enumerate() {
            let keeps = (*place != NOWHERE) & stays(*best, x);
            *best = if keeps { *best } else { x };
            *place = if keeps { *place } else { first + start + index * axis.stride };
        }
    }
}
