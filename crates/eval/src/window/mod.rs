//! Reductions over sliding windows.

mod lines;
mod scatter;
mod uniform;

use nxla_expr::{Op, Window, WindowFun};
use nxla_tensor::HostTensor;

use crate::args::Args;
use crate::error::Stop;
use crate::fold::Fold;
use crate::layout::Strided;
use crate::run::Site;
use crate::{memory, value};

pub(crate) fn evaluate(site: Site<'_>, args: &mut Args<'_>) -> Result<HostTensor, Stop> {
    let ty = site.ty();
    match site.op() {
        Op::Window(op, window) => Ok(uniform::windows(*op, window, args.get(0), ty)?),
        Op::WindowFun(attributes) => window_fun(attributes, site, args),
        Op::WindowScatter(op, window) => {
            Ok(scatter::scatter(*op, window, args.get(0), args.get(1), args.get(2), ty)?)
        }
        op @ nxla_expr::outside!(window) => unreachable!("{} is of another family", op.name()),
    }
}

/// One axis of a window.
#[derive(Clone, Copy, Debug)]
struct WindowAxis {
    /// Size of the operand.
    size: usize,
    /// Number of windows.
    count: usize,
    taps: usize,
    stride: usize,
    dilation: usize,
    low: i64,
}

impl WindowAxis {
    /// Whether each window is the element at its place.
    fn is_trivial(&self) -> bool {
        self.taps == 1 && self.stride == 1 && self.low == 0 && self.count == self.size
    }

    /// Where the first element of the operand that a tap sees is, relative to the first window.
    fn offset(&self, tap: usize) -> i64 {
        (tap * self.dilation) as i64 - self.low
    }

    /// The place that a tap of a window sees, if it is not in the padding.
    fn place(&self, window: usize, tap: usize) -> Option<usize> {
        let at = (window * self.stride) as i64 + self.offset(tap);
        usize::try_from(at).ok().filter(|&at| at < self.size)
    }

    /// The taps of a window that see elements rather than padding.
    fn seeing(&self, window: usize) -> std::ops::Range<usize> {
        let first = (window * self.stride) as i64 - self.low;
        let taps = |distance: i64| (distance.max(0) as usize).div_ceil(self.dilation);
        let end = taps(self.size as i64 - first).min(self.taps);
        taps(-first).min(end)..end
    }

    /// The windows all of whose taps see elements.
    fn whole(&self) -> std::ops::Range<usize> {
        let (begin, end) = (self.seen(0).start, self.seen(self.taps - 1).end);
        if begin < end { begin..end } else { 0..0 }
    }

    /// The windows in which a tap sees an element rather than padding.
    fn seen(&self, tap: usize) -> std::ops::Range<usize> {
        let offset = self.offset(tap);
        let windows = |distance: i64| (distance.max(0) as usize).div_ceil(self.stride);
        let end = windows(self.size as i64 - offset).min(self.count);
        windows(-offset).min(end)..end
    }
}

/// The axes of a window over an operand of this shape.
fn axes(window: &Window, operand: &[usize], windows: &[usize]) -> Vec<WindowAxis> {
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

/// Folds each window in row-major order. The padding holds the initial value, which is folded
/// like an element.
fn window_fun(
    attributes: &WindowFun,
    site: Site<'_>,
    args: &mut Args<'_>,
) -> Result<HostTensor, Stop> {
    let ty = site.ty();
    let fold = Fold::new(site, args);
    let (x, initial) = (args.get(0), args.get(1));
    let axes = axes(&attributes.window, x.shape(), &ty.shape);
    let count = ty.shape.size();
    let mut accumulator = fold.repeated(initial, count)?;
    let steps = Strided::row_major(x.shape());
    let target_steps = Strided::row_major(&ty.shape);
    let size = ty.dtype.size();
    for_each_tap(&axes, |taps| {
        // Every window's element at this tap: the operand's where there is one.
        let mut element = fold.repeated(initial, count)?;
        let seen: Vec<_> = axes.iter().zip(taps).map(|(axis, &tap)| axis.seen(tap)).collect();
        if seen.iter().all(|seen| !seen.is_empty()) {
            let (mut from, mut to) = (0, 0);
            for (index, axis) in axes.iter().enumerate() {
                let first = axis.place(seen[index].start, taps[index]).expect("it is seen");
                from += first * steps[index] as usize;
                to += seen[index].start * target_steps[index] as usize;
            }
            let loops = |index: usize, step: isize| (seen[index].len(), step);
            let source = Strided::new(
                from,
                axes.iter()
                    .enumerate()
                    .map(|(index, axis)| loops(index, axis.stride as isize * steps[index])),
            );
            let target = (0..axes.len()).map(|index| loops(index, target_steps[index]));
            let mut elements = memory::filled(0_u64, (source.len() * size).div_ceil(8));
            let elements =
                &mut bytemuck::cast_slice_mut::<u64, u8>(&mut elements)[..source.len() * size];
            source.read_all_bytes(size, x.bytes(), elements);
            let target = Strided::new(to, target);
            target.write_bytes(size, elements, value::bytes_mut(&mut element));
        }
        let previous =
            std::mem::replace(&mut accumulator, HostTensor::scalar(initial.get(0), ty.dtype));
        accumulator = fold.step(element, previous)?;
        Ok::<(), Stop>(())
    })?;
    Ok(value::reshaped(accumulator, &ty.shape))
}

/// Calls `visit` with each position in a window, in row-major order.
fn for_each_tap<E>(
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
