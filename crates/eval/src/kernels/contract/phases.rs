//! Phase decomposition of convolutions with a dilated input, such as derivatives of strided convolutions.
//!
//! Most taps of the kernel fall on gaps of the input. The taps that fall on elements depend only on
//! the remainder of the position. Each remainder (phase) is therefore a convolution of a smaller
//! kernel and the input without gaps.
//!
//! The smaller kernel also lacks the first and last taps that read only padding. A dilated kernel has
//! such taps if it is larger than the input.

use nxla_expr::Conv;
use nxla_tensor::HostTensor;

use super::conv::{Exchanged, Geometry};
use crate::context::{self, Cx};
use crate::kernels::matrix::Kernels;
use crate::kernels::number::gcd;
use crate::kernels::strided::Strided;
use crate::kernels::vectors::InVectors;
use crate::kernels::window::WindowAxis;

/// Every `step`th index of an axis from the first on, `count` of them.
#[derive(Clone, Copy)]
struct Indices {
    first: usize,
    step: usize,
    count: usize,
}

/// Positions of the result along one axis that use the same taps of the kernel, and these taps.
#[derive(Clone, Copy)]
struct Phase {
    positions: Indices,
    taps: Indices,
    /// The window of the smaller kernel over the input.
    low: i64,
    stride: usize,
    dilation: usize,
}

impl Phase {
    /// Removes the first and last taps that read only padding.
    fn trim(&mut self, size: usize) {
        let axis = WindowAxis {
            size,
            count: self.positions.count,
            taps: self.taps.count,
            stride: self.stride,
            dilation: self.dilation,
            low: self.low,
        };
        let reads = |&tap: &usize| !axis.windows_inside(tap).is_empty();
        let first = (0..axis.taps).find(reads).unwrap_or(axis.taps);
        let end = (first..axis.taps).rfind(reads).map_or(first, |last| last + 1);
        self.taps.first += first * self.taps.step;
        self.taps.count = end - first;
        self.low = -axis.offset(first);
    }
}

/// Returns true if some taps of the kernel fall on gaps of the input, or the first or last taps read
/// only padding.
pub(super) fn has_unread_taps(
    conv: &Conv,
    input: &[usize],
    kernel: &[usize],
    out: &[usize],
) -> bool {
    let has_gaps = conv.input_dilation.iter().any(|&gap| gap > 1);
    has_gaps
        || (2..input.len()).any(|axis| {
            let phases = phases(conv, axis - 2, input[axis], kernel[axis], out[axis]);
            phases.iter().any(|phase| phase.taps.count < kernel[axis])
        })
}

/// Computes a convolution whose input has the canonical layout.
pub(super) fn run<T: InVectors + Kernels>(
    cx: Cx<'_>,
    conv: &Conv,
    exchanged: Exchanged,
    input: &HostTensor,
    kernel: &HostTensor,
    out_shape: &[usize],
    out: &mut [T],
) {
    // Positions that no tap reaches stay zero.
    out.fill(T::default());
    let axes: Vec<Vec<Phase>> = (0..conv.input_dilation.len())
        .map(|axis| {
            let [input, kernel] = [input, kernel].map(|operand| operand.shape()[axis + 2]);
            phases(conv, axis, input, kernel, out_shape[axis + 2])
        })
        .collect();
    let (mut taps, mut part) = (Vec::new(), Vec::new());
    for index in 0..axes.iter().map(Vec::len).product() {
        let phases = phases_at(&axes, index);
        if phases.iter().any(|phase| phase.taps.count == 0) {
            continue;
        }
        let (kernel_rule, kernel_part) =
            part_of(kernel.shape(), exchanged.kernel, &phases, |phase| phase.taps);
        let (out_rule, out_part) = part_of(out_shape, false, &phases, |phase| phase.positions);
        context::fill(&mut taps, T::default(), kernel_rule.len());
        context::fill(&mut part, T::default(), out_rule.len());
        let to = bytemuck::cast_slice_mut(&mut taps);
        kernel_rule.read_bytes(size_of::<T>(), kernel.bytes(), 0, to);
        let conv = without_gaps(conv, &phases);
        let of_part = Exchanged { kernel: false, ..exchanged };
        Geometry::new(&conv, of_part, input.shape(), &kernel_part, &out_part).run(
            cx,
            context::slice(input),
            &taps,
            &mut part,
        );
        let (from, to) = (bytemuck::cast_slice(&part), bytemuck::cast_slice_mut(out));
        out_rule.write_bytes(size_of::<T>(), from, to);
    }
}

/// The positions along an axis, grouped by the taps that they use.
fn phases(conv: &Conv, axis: usize, input: usize, kernel: usize, out: usize) -> Vec<Phase> {
    let (gap, dilation, low) =
        (conv.input_dilation[axis], conv.kernel_dilation[axis], conv.padding[axis].0);
    let stride = conv.strides[axis];
    // At a position, tap `k` reads the input at `(position * stride + k * dilation - low) / gap` if
    // the division has no remainder.
    let position = |first: usize, tap: usize| (first * stride + tap * dilation) as i64 - low;
    let sees = |first: usize, tap: usize| position(first, tap) % gap as i64 == 0;
    // After this many positions, the products of the stride are multiples of the gap again.
    let step = gap / gcd(gap, stride);
    let phase = |first: usize| {
        let mut seen = (0..kernel).filter(|&tap| sees(first, tap));
        let first_tap = seen.next().unwrap_or(kernel);
        // A phase with a single tap gets a step that leads behind the kernel.
        let tap_step = seen.next().map_or(kernel.max(1), |second| second - first_tap);
        let mut phase = Phase {
            positions: Indices { first, step, count: (out - first).div_ceil(step) },
            taps: Indices {
                first: first_tap,
                step: tap_step,
                count: (kernel - first_tap).div_ceil(tap_step),
            },
            low: -position(first, first_tap).div_euclid(gap as i64),
            stride: step * stride / gap,
            dilation: (tap_step * dilation / gap).max(1),
        };
        phase.trim(input);
        phase
    };
    (0..step.min(out)).map(phase).collect()
}

/// One phase for each axis.
fn phases_at(axes: &[Vec<Phase>], mut index: usize) -> Vec<Phase> {
    let choose = |phases: &Vec<Phase>| {
        let phase = phases[index % phases.len()];
        index /= phases.len();
        phase
    };
    axes.iter().map(choose).collect()
}

/// The access rule and the shape of a part of a tensor: all elements of the first two axes, which are exchanged in the
/// part if `exchanges`, and some of each other axis.
fn part_of(
    shape: &[usize],
    exchanges: bool,
    phases: &[Phase],
    of: fn(&Phase) -> Indices,
) -> (Strided, Vec<usize>) {
    let all = shape[..2].iter().map(|&count| Indices { first: 0, step: 1, count });
    let mut parts: Vec<Indices> = all.chain(phases.iter().map(of)).collect();
    let mut steps = Strided::row_major(shape);
    if exchanges {
        parts.swap(0, 1);
        steps.swap(0, 1);
    }
    let first = parts.iter().zip(&steps).map(|(part, step)| part.first * step.unsigned_abs()).sum();
    let axes = parts.iter().zip(&steps).map(|(part, step)| (part.count, step * part.step as isize));
    (Strided::new(first, axes), parts.iter().map(|part| part.count).collect())
}

fn without_gaps(conv: &Conv, phases: &[Phase]) -> Conv {
    Conv {
        strides: phases.iter().map(|phase| phase.stride).collect(),
        padding: phases.iter().map(|phase| (phase.low, 0)).collect(),
        input_dilation: phases.iter().map(|_| 1).collect(),
        kernel_dilation: phases.iter().map(|phase| phase.dilation).collect(),
        ..conv.clone()
    }
}
