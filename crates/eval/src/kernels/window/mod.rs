//! Reductions over sliding windows.

mod lines;
mod scatter;
mod sliding;

use nxla_expr::{Op, TensorType, WindowAttributes};
use nxla_tensor::HostTensor;

use crate::context::{Args, Cx, Fault};

pub(crate) fn evaluate(
    cx: Cx<'_>,
    op: &Op,
    ty: &TensorType,
    args: &Args<'_>,
) -> Result<HostTensor, Fault> {
    match op {
        Op::Window(op, window) => sliding::windows(cx, *op, window, args.get(0), ty),
        Op::WindowFun(_) => unreachable!("the executor folds with functions"),
        Op::WindowScatter(op, window) => {
            scatter::scatter(cx, *op, window, args.get(0), args.get(1), args.get(2), ty)
        }
        op @ nxla_expr::outside!(window) => unreachable!("{} is of another family", op.name()),
    }
}

/// One axis of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowAxis {
    /// Size of the operand.
    pub(crate) size: usize,
    /// Number of windows.
    pub(crate) count: usize,
    pub(crate) taps: usize,
    pub(crate) stride: usize,
    pub(crate) dilation: usize,
    pub(crate) low: i64,
}

impl WindowAxis {
    /// Returns true if each window has a single element, at its own position.
    fn is_trivial(&self) -> bool {
        self.taps == 1 && self.stride == 1 && self.low == 0 && self.count == self.size
    }

    /// The offset of a tap from the first window.
    pub(crate) fn offset(&self, tap: usize) -> i64 {
        (tap * self.dilation) as i64 - self.low
    }

    /// The position that a tap of a window reads, if it is not in the padding.
    pub(crate) fn position(&self, window: usize, tap: usize) -> Option<usize> {
        let at = (window * self.stride) as i64 + self.offset(tap);
        usize::try_from(at).ok().filter(|&at| at < self.size)
    }

    /// The taps of a window that read elements rather than padding.
    fn taps_inside(&self, window: usize) -> std::ops::Range<usize> {
        let first = (window * self.stride) as i64 - self.low;
        let taps = |distance: i64| (distance.max(0) as usize).div_ceil(self.dilation);
        let end = taps(self.size as i64 - first).min(self.taps);
        taps(-first).min(end)..end
    }

    /// The windows without padding.
    fn whole(&self) -> std::ops::Range<usize> {
        let (begin, end) = (self.windows_inside(0).start, self.windows_inside(self.taps - 1).end);
        if begin < end { begin..end } else { 0..0 }
    }

    /// The windows in which a tap reads an element rather than padding.
    pub(crate) fn windows_inside(&self, tap: usize) -> std::ops::Range<usize> {
        let offset = self.offset(tap);
        let windows = |distance: i64| (distance.max(0) as usize).div_ceil(self.stride);
        let end = windows(self.size as i64 - offset).min(self.count);
        windows(-offset).min(end)..end
    }
}

/// The axes of a window over an operand of this shape.
pub(crate) fn axes(
    window: &WindowAttributes,
    operand: &[usize],
    windows: &[usize],
) -> Vec<WindowAxis> {
    (0..operand.len())
        .map(|axis| WindowAxis {
            size: operand[axis],
            count: windows[axis],
            taps: window.dimensions[axis],
            stride: window.strides[axis],
            dilation: window.dilations[axis],
            low: window.padding[axis].0,
        })
        .collect()
}

/// Calls `visit` with each position in a window, in row-major order.
pub(crate) fn for_each_tap<E>(
    axes: &[WindowAxis],
    mut visit: impl FnMut(&[usize]) -> Result<(), E>,
) -> Result<(), E> {
    let mut taps = vec![0; axes.len()];
    loop {
        visit(&taps)?;
        let advanced = (0..axes.len()).rev().any(|axis| {
            taps[axis] += 1;
            let within = taps[axis] < axes[axis].taps;
            if !within {
                taps[axis] = 0;
            }
            within
        });
        if !advanced {
            return Ok(());
        }
    }
}
