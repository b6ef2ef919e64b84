//! Sums, products and extrema of windows.
//!
//! The axes are reduced one after the other, so the number of operations grows with the sum of the
//! window's sizes instead of their product. Sums and products of floats stay in `f64` between the
//! axes.

use nxla_expr::{TensorType, WindowAttributes, WindowOp};
use nxla_tensor::{Element, HostTensor};

use super::lines::slide_rows;
use super::{WindowAxis, axes};
use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::convert;
use crate::kernels::number::{Number, accumulator_dtype, match_wide};
use crate::kernels::ordered::{comparison_dtype, match_order, pick_better, worst};

pub(super) fn windows(
    cx: Cx<'_>,
    op: WindowOp,
    window: &WindowAttributes,
    x: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let axes = axes(window, x.shape(), &ty.shape);
    let result = match op {
        WindowOp::Sum | WindowOp::Product => accumulate_windows(cx, op, &axes, x, ty)?,
        WindowOp::Max | WindowOp::Min => {
            let dtype = comparison_dtype(x.dtype());
            let x = convert(cx, x, dtype)?;
            let is_max = op == WindowOp::Max;
            let start = worst(ty.dtype, is_max);
            match_order!(dtype, is_max, T, is_better => {
                let (elements, start) = (context::slice::<T>(&x), T::from_scalar(start));
                context::build(dtype, &ty.shape, |out: &mut [T]| {
                    slide(cx, &axes, elements, start, pick_better(is_better), out);
                })?
            })
        }
    };
    convert(cx, &result, ty.dtype)
}

fn accumulate_windows(
    cx: Cx<'_>,
    op: WindowOp,
    axes: &[WindowAxis],
    x: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let x = convert(cx, x, accumulator_dtype(ty.dtype))?;
    match_wide!(x.dtype(), T => {
        let elements = context::slice::<T>(&x);
        context::build(x.dtype(), &ty.shape, |out: &mut [T]| if op == WindowOp::Sum {
            slide(cx, axes, elements, T::narrow(T::EMPTY_SUM), T::plus, out)
        } else {
            slide(cx, axes, elements, T::narrow(T::EMPTY_PRODUCT), T::times, out)
        })
    })
}

/// Combines the elements of each window, one axis after the other. If the windows of the first axes
/// have one element, the indices of these axes are processed one after the other, so that each
/// piece stays in the cache.
fn slide<T: Element>(
    cx: Cx<'_>,
    axes: &[WindowAxis],
    x: &[T],
    start: T,
    combine: impl Fn(T, T) -> T + Copy + Sync,
    out: &mut [T],
) {
    let lead = axes.iter().take_while(|axis| axis.is_trivial()).count();
    let axes = &axes[lead..];
    let size: usize = axes.iter().map(|axis| axis.size).product();
    let count: usize = axes.iter().map(|axis| axis.count).product();
    let taps: usize = axes.iter().map(|axis| axis.taps).sum();
    if count == 0 {
        return;
    }
    let pieces = out.len() / count;
    let is_spread = pieces < 2 * cx.threads() && cx.pays(cost(size, taps));
    let each = |first: usize, out: &mut [T]| {
        let mut buffers = [Vec::new(), Vec::new()];
        for (index, out) in out.chunks_exact_mut(count).enumerate() {
            let x = &x[(first + index) * size..][..size];
            slide_piece(cx, axes, x, start, combine, is_spread, &mut buffers, out);
        }
    };
    if is_spread { each(0, out) } else { cx.rows(out, count, cost(size, taps), each) }
}

/// The cost of combining each element with `taps` other elements, in moved elements.
fn cost(elements: usize, taps: usize) -> usize {
    elements * taps / 2
}

/// Computes all axes of one piece.
fn slide_piece<T: Element>(
    cx: Cx<'_>,
    axes: &[WindowAxis],
    x: &[T],
    start: T,
    combine: impl Fn(T, T) -> T + Copy + Sync,
    is_spread: bool,
    [from, to]: &mut [Vec<T>; 2],
    out: &mut [T],
) {
    let Some(last) = axes.iter().rposition(|axis| !axis.is_trivial()) else {
        return out.copy_from_slice(x);
    };
    let mut is_first = true;
    for (index, axis) in axes.iter().enumerate().filter(|(_, axis)| !axis.is_trivial()) {
        // Axes before this one have been reduced to windows; axes after it have their original
        // sizes.
        let inner: usize = axes[index + 1..].iter().map(|axis| axis.size).product();
        let outer: usize = axes[..index].iter().map(|axis| axis.count).product();
        let (row, source_row) = (axis.count * inner, axis.size * inner);
        let source = if is_first { x } else { &from[..outer * source_row] };
        let out = if index == last {
            &mut *out
        } else {
            context::resize(to, start, (outer * row).max(to.len()));
            &mut to[..outer * row]
        };
        let fill = |first: usize, out: &mut [T]| {
            let rows = out.len() / row;
            let source = &source[first * source_row..][..rows * source_row];
            slide_rows(axis, source, inner, out, start, combine, cx);
        };
        if is_spread {
            cx.rows(out, row, cost(row, axis.taps), fill);
        } else if row > 0 {
            fill(0, out);
        }
        std::mem::swap(from, to);
        is_first = false;
    }
}
