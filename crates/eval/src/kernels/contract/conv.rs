//! Convolutions, as products of the kernel and a matrix of the input's patches.
//!
//! Both operands are first brought into the canonical layout `[batch][channel][spatial…]`, and rows of the input are
//! copied with their [padding](super::padded). [Tiles](super::tiles) of the product are computed from patches that
//! stay in the cache. A group with one output channel would use each patch once, so that its
//! [rows](super::depthwise) are accumulated without patches.

use nxla_expr::Conv;
use nxla_tensor::{HostTensor, Shape};

use super::padded::Padded;
use super::{depthwise, phases, tiles};
use crate::context::{self, Cx, Fault};
use crate::kernels::matrix::Kernels;
use crate::kernels::movement::permuted;
use crate::kernels::number::{Number, match_number};
use crate::kernels::window::WindowAxis;

pub(super) fn conv(
    cx: Cx<'_>,
    attributes: &Conv,
    input: &HostTensor,
    kernel: &HostTensor,
    shape: &Shape,
) -> Result<HostTensor, Fault> {
    let input = permuted(cx, input, &attributes.input_permutation)?;
    let kernel = permuted(cx, kernel, &attributes.kernel_permutation)?;
    let canonical: Shape = attributes.output_permutation.iter().map(|&axis| shape[axis]).collect();
    let (input_shape, kernel_shape) = (input.shape(), kernel.shape());
    let result = match_number!(input.dtype(), T => {
        let dtype = input.dtype();
        let (input, kernel) = (context::slice::<T>(&input), context::slice::<T>(&kernel));
        context::build(dtype, &canonical, |out: &mut [T]| {
            if phases::has_gaps(attributes) {
                let (input, kernel) = ((input, &input_shape[..]), (kernel, &kernel_shape[..]));
                phases::run(cx, attributes, input, kernel, (out, &canonical));
            } else {
                Geometry::new(attributes, input_shape, kernel_shape, &canonical)
                    .run(cx, input, kernel, out);
            }
        })
    })?;
    // Axis `i` of the canonical layout is axis `output_permutation[i]` of the result; the
    // transposition needs the inverse permutation.
    let mut inverse = vec![0; shape.rank()];
    for (canonical, &axis) in attributes.output_permutation.iter().enumerate() {
        inverse[axis] = canonical;
    }
    permuted(cx, &result, &inverse)
}

/// The sizes of a convolution in canonical layout, whose input has no [gaps](phases).
pub(super) struct Geometry {
    /// Images of the result.
    pub(super) batch: usize,
    /// Groups of output channels; each reads separate input channels, or a separate part of the
    /// batch.
    pub(super) groups: usize,
    batch_groups: usize,
    in_channels: usize,
    /// Input channels that one output channel reads.
    pub(super) group_channels: usize,
    pub(super) group_outputs: usize,
    axes: Vec<WindowAxis>,
    /// Elements of the spatial axes of input, kernel and result.
    pub(super) in_size: usize,
    pub(super) kernel_size: usize,
    pub(super) out_size: usize,
}

impl Geometry {
    pub(super) fn new(attributes: &Conv, input: &[usize], kernel: &[usize], out: &[usize]) -> Self {
        let axes = (0..input.len() - 2).map(|axis| WindowAxis {
            size: input[axis + 2],
            count: out[axis + 2],
            taps: kernel[axis + 2],
            stride: attributes.strides[axis],
            dilation: attributes.kernel_dilation[axis],
            low: attributes.padding[axis].0,
        });
        let groups = attributes.feature_groups.max(attributes.batch_groups);
        Self {
            batch: out[0],
            groups,
            batch_groups: attributes.batch_groups,
            in_channels: input[1],
            group_channels: kernel[1],
            group_outputs: kernel[0] / groups,
            in_size: input[2..].iter().product(),
            kernel_size: kernel[2..].iter().product(),
            out_size: out[2..].iter().product(),
            axes: axes.collect(),
        }
    }

    pub(super) fn run<T: Number + Kernels>(
        &self,
        cx: Cx<'_>,
        input: &[T],
        kernel: &[T],
        out: &mut [T],
    ) {
        if out.is_empty() || self.inner() == 0 || self.in_size == 0 {
            // Each result is an empty sum, or a sum of padding.
            return out.fill(T::default());
        }
        let padded = Padded::new(cx, self, input);
        if self.group_outputs == 1 && !self.is_long_kernel() {
            depthwise::run(cx, self, &padded, kernel, out);
        } else {
            tiles::run(cx, self, &padded, kernel, out);
        }
    }

    /// The number of products in a sum.
    pub(super) fn inner(&self) -> usize {
        self.group_channels * self.kernel_size
    }

    /// Returns true if the kernel has a longer last axis than the result, as in the derivative of another convolution.
    pub(super) fn is_long_kernel(&self) -> bool {
        self.last().taps > self.last().count
    }

    /// The last spatial axis.
    pub(super) fn last(&self) -> &WindowAxis {
        self.axes.last().expect("there is a spatial axis")
    }

    /// The first of the planes `[image][channel]` of the input that a group of output channels reads for an image.
    pub(super) fn plane(&self, image: usize, group: usize) -> usize {
        if self.batch_groups > 1 {
            (group * self.batch + image) * self.in_channels
        } else {
            image * self.in_channels + group * self.group_channels
        }
    }

    /// The row of an input plane that a row of the kernel reads for a row of the result, if it is not padding.
    pub(super) fn input_row(&self, mut row: usize, mut tap: usize) -> Option<usize> {
        let (mut place, mut step) = (0, 1);
        for axis in self.axes[..self.axes.len() - 1].iter().rev() {
            place += axis.place(row % axis.count, tap % axis.taps)? * step;
            step *= axis.size;
            tap /= axis.taps;
            row /= axis.count;
        }
        Some(place)
    }
}
