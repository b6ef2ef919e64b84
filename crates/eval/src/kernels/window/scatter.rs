//! Scatters that send the source of each window to the window's extremum.

use std::borrow::Cow;
use std::ops::Range;

use nxla_expr::{ScatterOp, TensorType, WindowAttributes};
use nxla_tensor::{DType, Element, HostTensor};
use smallvec::{SmallVec, smallvec};

use super::{WindowAxis, axes};
use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::convert;
use crate::kernels::number::{Number, accumulator_dtype, match_number};
use crate::kernels::ordered::{comparison_dtype, match_order};
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
    let x = convert(cx, x, comparison_dtype(x.dtype()))?;
    let positions = match_order!(x.dtype(), op == ScatterOp::Max, T, is_better => {
        extrema(cx, &axes, context::slice::<T>(&x), source, x.shape(), is_better)
    });
    // If windows do not overlap, each position receives at most one value, so a wide accumulator is
    // not needed.
    let is_apart = axes.iter().all(|axis| axis.stride > (axis.taps - 1) * axis.dilation);
    let sums =
        if is_apart && ty.dtype == DType::F32 { ty.dtype } else { accumulator_dtype(ty.dtype) };
    let source = convert(cx, &convert(cx, source, ty.dtype)?, sums)?;
    let initial = initial.get(0).cast(initial.dtype()).cast(ty.dtype);
    let mut result = context::fresh(sums, &ty.shape)?;
    match_number!(sums, T => {
        let out = context::slice_mut::<T>(&mut result);
        let (source, initial) = (context::slice::<T>(&source), T::from_scalar(initial));
        add_at(cx, &axes, &positions, source, initial, out);
    });
    convert(cx, &result, ty.dtype)
}

/// Adds the source of each window to its element of `out`; the other elements are `initial`.
fn add_at<T: Number>(
    cx: Cx<'_>,
    axes: &[WindowAxis],
    positions: &[usize],
    source: &[T],
    initial: T,
    out: &mut [T],
) {
    // The windows at different indices of the first axes do not overlap.
    let apart = axes.iter().take_while(|axis| axis.is_trivial()).map(|axis| axis.count);
    let apart = apart.product::<usize>().max(1);
    let (row, windows) = (out.len() / apart, positions.len() / apart);
    // Each window reads and writes one element.
    cx.rows(out, row, row + 3 * windows, |first, out| {
        for (number, out) in (first..).zip(out.chunks_exact_mut(row)) {
            out.fill(initial);
            let range = number * windows..(number + 1) * windows;
            for (&position, &x) in positions[range.clone()].iter().zip(&source[range]) {
                if let Some(out) = out.get_mut(position.wrapping_sub(number * row)) {
                    *out = out.plus(x);
                }
            }
        }
    });
}

/// The placeholder for a window that is in the padding.
const NOWHERE: usize = usize::MAX;

/// Neighboring windows that are searched in one pass. Measured by the family `window` of `benches/python/kernels.py`.
const WINDOWS_PER_PASS: usize = 8;

/// The position of the extremum of each window.
fn extrema<T: Element>(
    cx: Cx<'_>,
    axes: &[WindowAxis],
    x: &[T],
    windows: &HostTensor,
    shape: &[usize],
    stays: impl Fn(T, T) -> bool + Sync,
) -> Vec<usize> {
    let mut positions = context::filled(NOWHERE, windows.size());
    let Some((inner, outer)) = axes.split_last() else {
        // The one window of a scalar holds the scalar.
        positions.fill(0);
        return positions;
    };
    let steps = Strided::row_major(shape);
    let rows = WindowRows::new(outer, &steps);
    let whole = inner.whole();
    let taps: usize = axes.iter().map(|axis| axis.taps).product();
    cx.rows(&mut positions, inner.count, inner.count * taps, |first, positions| {
        for (number, positions) in positions.chunks_exact_mut(inner.count).enumerate() {
            let (first, rows) = rows.of(first + number);
            let x = &x[first..];
            WindowSearch { x, rows: &rows, axis: inner, whole: &whole, stays: &stays }
                .fill(positions);
            for position in positions {
                *position = position.saturating_add(first);
            }
        }
    });
    positions
}

/// The rows of elements in each row of windows.
struct WindowRows<'a> {
    axes: &'a [WindowAxis],
    steps: &'a [isize],
    /// The windows without padding along each axis.
    whole: SmallVec<[Range<usize>; 4]>,
    /// The offsets of rows from the first row, in windows without padding.
    offsets: Vec<usize>,
}

impl<'a> WindowRows<'a> {
    fn new(axes: &'a [WindowAxis], steps: &'a [isize]) -> Self {
        let whole: SmallVec<[Range<usize>; 4]> = axes.iter().map(WindowAxis::whole).collect();
        let mut rows = Self { axes, steps, whole, offsets: Vec::new() };
        if rows.whole.iter().all(|whole| !whole.is_empty()) {
            let window: SmallVec<[usize; 4]> = rows.whole.iter().map(|whole| whole.start).collect();
            rows.offsets = rows.list(&window);
            let first = rows.offsets[0];
            rows.offsets.iter_mut().for_each(|offset| *offset -= first);
        }
        rows
    }

    /// Returns the first row of elements in a row of windows, and the offsets of all its rows from there.
    fn of(&self, number: usize) -> (usize, Cow<'_, [usize]>) {
        let (mut window, mut rest): (SmallVec<[usize; 4]>, _) =
            (smallvec![0; self.axes.len()], number);
        for (index, axis) in window.iter_mut().zip(self.axes).rev() {
            *index = rest % axis.count;
            rest /= axis.count;
        }
        if window.iter().zip(&self.whole).any(|(index, whole)| !whole.contains(index)) {
            return (0, Cow::Owned(self.list(&window)));
        }
        let offsets =
            window.iter().zip(self.axes).zip(self.steps).map(|((&index, axis), &step)| {
                axis.position(index, 0).unwrap_or_default() * step as usize
            });
        (offsets.sum(), Cow::Borrowed(&self.offsets))
    }

    /// Lists the rows of elements in a row of windows, in row-major order.
    fn list(&self, window: &[usize]) -> Vec<usize> {
        let mut rows = vec![0];
        for ((axis, &index), &step) in self.axes.iter().zip(window).zip(self.steps) {
            let positions = axis.taps_inside(index).filter_map(|tap| axis.position(index, tap));
            let offsets: Vec<usize> = positions.map(|position| position * step as usize).collect();
            let inside = |row: usize| offsets.iter().map(move |offset| row + offset);
            rows = rows.into_iter().flat_map(inside).collect();
        }
        rows
    }
}

/// The search in a row of windows. A window is searched in row-major order, which decides ties.
struct WindowSearch<'a, T, F> {
    x: &'a [T],
    /// The offsets of the rows of elements.
    rows: &'a [usize],
    /// The axis along the rows.
    axis: &'a WindowAxis,
    /// The windows without padding along this axis.
    whole: &'a Range<usize>,
    stays: &'a F,
}

impl<T: Element, F: Fn(T, T) -> bool> WindowSearch<'_, T, F> {
    fn fill(&self, positions: &mut [usize]) {
        if self.rows.is_empty() {
            // All windows are in the padding.
            return positions.fill(NOWHERE);
        }
        let (axis, whole) = (self.axis, self.whole);
        for window in (0..whole.start).chain(whole.end..axis.count) {
            positions[window] = self.single(window);
        }
        let inside = &mut positions[whole.clone()];
        // The distances in a chunk have 32 bits.
        if inside.len() < WINDOWS_PER_PASS || u32::try_from(self.x.len()).is_err() {
            whole.clone().zip(inside).for_each(|(window, found)| *found = self.single(window));
            return;
        }
        // The last chunk overlaps the chunk before, so that no row ends with single windows.
        let last = inside.len() - WINDOWS_PER_PASS;
        for first in (0..last).step_by(WINDOWS_PER_PASS).chain([last]) {
            let chunk = inside[first..].first_chunk_mut().expect("a chunk fits");
            match axis.stride {
                2 => self.chunk(whole.start + first, 2, chunk),
                stride => self.chunk(whole.start + first, stride, chunk),
            }
        }
    }

    /// Returns the position of the extremum of a window.
    fn single(&self, window: usize) -> usize {
        let mut found = NOWHERE;
        for &row in self.rows {
            for tap in self.axis.taps_inside(window) {
                let at = row + self.axis.position(window, tap).unwrap_or_default();
                let keeps = found != NOWHERE && (self.stays)(self.x[found], self.x[at]);
                found = if keeps { found } else { at };
            }
        }
        found
    }

    /// Searches neighboring windows without padding from the window `first` on. The loops have no branches, and
    /// distances as wide as most elements, so that the compiler vectorizes them.
    #[inline(always)]
    fn chunk(&self, first: usize, stride: usize, positions: &mut [usize; WINDOWS_PER_PASS]) {
        let (mut best, mut distances) = ([T::default(); WINDOWS_PER_PASS], [0; WINDOWS_PER_PASS]);
        let begin = self.rows[0] + self.axis.position(first, 0).unwrap_or_default();
        let mut is_first = true;
        for &row in self.rows {
            for tap in 0..self.axis.taps {
                let distance = row - self.rows[0] + tap * self.axis.dilation;
                let elements = &self.x[begin + distance..][..stride * (WINDOWS_PER_PASS - 1) + 1];
                for at in 0..WINDOWS_PER_PASS {
                    let x = elements[at * stride];
                    let keeps = !is_first & (self.stays)(best[at], x);
                    best[at] = if keeps { best[at] } else { x };
                    distances[at] = if keeps { distances[at] } else { distance as u32 };
                }
                is_first = false;
            }
        }
        for at in 0..WINDOWS_PER_PASS {
            positions[at] = begin + at * stride + distances[at] as usize;
        }
    }
}
