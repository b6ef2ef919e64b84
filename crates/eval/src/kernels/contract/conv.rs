//! Convolutions.
//!
//! Both operands are first brought into the canonical layout `[batch][channel][spatial…]`, and rows of the input are
//! copied with their [padding](super::padded). The sums of several output channels are computed
//! [together](super::direct), and groups with one output channel by [rows](super::depthwise). With one tap or one
//! position, a convolution is a [product of matrices](mod@super::matmul).

use nxla_expr::Conv;
use nxla_tensor::{HostTensor, Shape, inverse_permutation};

use super::matmul::{Factor, Factors, Sizes, matmul};
use super::{depthwise, direct, phases};
use crate::context::{self, Cx, Fault};
use crate::kernels::matrix::Kernels;
use crate::kernels::movement::permute;
use crate::kernels::number::match_number;
use crate::kernels::vectors::InVectors;
use crate::kernels::window::WindowAxis;

pub(super) fn conv(
    cx: Cx<'_>,
    attributes: &Conv,
    input: &HostTensor,
    kernel: &HostTensor,
    shape: &Shape,
) -> Result<HostTensor, Fault> {
    let input = permute(cx, input, &attributes.input_permutation)?;
    let kernel_exchanged = exchanges(&attributes.kernel_permutation);
    let kernel = match kernel_exchanged {
        Some(_) => kernel.clone(),
        None => permute(cx, kernel, &attributes.kernel_permutation)?,
    };
    let result_exchanged = exchanges(&attributes.output_permutation);
    let canonical: Shape = attributes.output_permutation.iter().map(|&axis| shape[axis]).collect();
    let computed = if result_exchanged.is_some() { shape } else { &canonical };
    let exchanged = Exchanged {
        kernel: kernel_exchanged == Some(true),
        result: result_exchanged == Some(true),
    };
    let result = match_number!(input.dtype(), T => {
        context::build(input.dtype(), computed, |out: &mut [T]| {
            if phases::has_unread_taps(attributes, input.shape(), kernel.shape(), computed) {
                phases::run(cx, attributes, exchanged, &input, &kernel, computed, out);
            } else {
                Geometry::new(attributes, exchanged, input.shape(), kernel.shape(), computed)
                    .run(cx, context::slice(&input), context::slice(&kernel), out);
            }
        })
    })?;
    if result_exchanged.is_some() {
        return Ok(result);
    }
    // Axis `i` of the canonical layout is axis `output_permutation[i]` of the result; the
    // transposition needs the inverse permutation.
    permute(cx, &result, &inverse_permutation(&attributes.output_permutation))
}

/// Returns whether a permutation exchanges the first two axes; `None` if it moves other axes.
fn exchanges(permutation: &[usize]) -> Option<bool> {
    let keeps_others = permutation[2..].iter().copied().eq(2..permutation.len());
    keeps_others.then(|| permutation[0] == 1)
}

/// The operands and results whose first two axes are exchanged in memory.
#[derive(Clone, Copy)]
pub(super) struct Exchanged {
    /// True if the kernel is `[input channel][output channel][tap]`.
    pub(super) kernel: bool,
    /// True if the result is `[channel][image][position]`.
    pub(super) result: bool,
}

/// The sizes of the first two axes in canonical order.
fn leading_sizes(exchanged: bool, shape: &[usize]) -> (usize, usize) {
    if exchanged { (shape[1], shape[0]) } else { (shape[0], shape[1]) }
}

/// The strides of the first two axes in canonical order, in units of the size of the axes after them.
fn leading_strides(exchanged: bool, shape: &[usize]) -> [usize; 2] {
    if exchanged { [1, shape[1]] } else { [shape[1], 1] }
}

/// Contiguous weights of each output channel. The weights of channel `o` begin at `start + o * output_stride`.
pub(super) struct WeightRun {
    pub(super) start: usize,
    pub(super) output_stride: usize,
    pub(super) count: usize,
}

/// The sizes of a convolution whose input has the canonical layout and no [gaps](phases).
pub(super) struct Geometry {
    /// Images of the result.
    pub(super) batch: usize,
    /// Groups of output channels; each reads separate input channels, or a separate part of the
    /// batch.
    pub(super) groups: usize,
    /// Input channels, and the planes between the inputs of two groups.
    in_channels: usize,
    group_planes: usize,
    /// Input channels that one output channel reads.
    pub(super) group_channels: usize,
    pub(super) group_outputs: usize,
    /// Elements of the kernel between output channels, and between input channels.
    kernel_strides: [usize; 2],
    /// Rows of positions of the result between images, and between output channels.
    row_strides: [usize; 2],
    axes: Vec<WindowAxis>,
    /// Elements of the spatial axes of input, kernel and result.
    pub(super) in_size: usize,
    pub(super) kernel_size: usize,
    pub(super) out_size: usize,
}

impl Geometry {
    /// The first two axes of `kernel` and `out` can be exchanged.
    pub(super) fn new(
        attributes: &Conv,
        exchanged: Exchanged,
        input: &[usize],
        kernel: &[usize],
        out: &[usize],
    ) -> Self {
        let axes = (0..input.len() - 2).map(|axis| {
            let (count, taps) = (out[axis + 2], kernel[axis + 2]);
            WindowAxis {
                size: input[axis + 2],
                count,
                taps,
                // The step between positions or taps has no meaning if there is one.
                stride: if count == 1 { 1 } else { attributes.strides[axis] },
                dilation: if taps == 1 { 1 } else { attributes.kernel_dilation[axis] },
                low: attributes.padding[axis].0,
            }
        });
        let groups = attributes.feature_groups.max(attributes.batch_groups);
        let (outputs, group_channels) = leading_sizes(exchanged.kernel, kernel);
        let (batch, _) = leading_sizes(exchanged.result, out);
        let kernel_size = kernel[2..].iter().product();
        Self {
            batch,
            groups,
            in_channels: input[1],
            group_planes: if attributes.batch_groups > 1 {
                batch * input[1]
            } else {
                group_channels
            },
            group_channels,
            group_outputs: outputs / groups,
            kernel_strides: leading_strides(exchanged.kernel, kernel)
                .map(|stride| stride * kernel_size),
            row_strides: leading_strides(exchanged.result, out),
            in_size: input[2..].iter().product(),
            kernel_size,
            out_size: out[2..].iter().product(),
            axes: axes.collect(),
        }
    }

    pub(super) fn run<T: InVectors + Kernels>(
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
        if let Some(factors) = self.product(input, kernel) {
            return matmul(cx, factors, out);
        }
        if self.group_outputs == 1 {
            depthwise::run(cx, self, input, kernel, out);
        } else {
            direct::run(cx, self, input, kernel, out);
        }
    }

    /// The convolution as a product of matrices, if it is one: of all images and the kernel if there
    /// is one position, or of the kernel and each image if there is one tap.
    fn product<'a, T>(&self, input: &'a [T], kernel: &'a [T]) -> Option<Factors<'a, T>> {
        let (batch, outputs, inner) = (self.batch, self.group_outputs, self.inner());
        let is_all = |axis: &WindowAxis| {
            let is_read_once = (axis.taps, axis.stride) == (1, 1) && axis.count == axis.size;
            let is_one_position = (axis.count, axis.dilation) == (1, 1) && axis.taps == axis.size;
            axis.low == 0 && (is_read_once || is_one_position)
        };
        if self.groups > 1 || !self.axes.iter().all(is_all) {
            return None;
        }
        let inner_first = self.kernel_strides[0] < self.kernel_strides[1];
        let kernel = Factor { elements: kernel, inner_first };
        if self.out_size == 1 && (self.kernel_size == 1 || !inner_first) {
            let images = Factor { elements: input, inner_first: false };
            Some(if self.channels_first() {
                let sizes = Sizes { batches: 1, rows: outputs, inner, columns: batch };
                Factors { sizes, left: kernel, right: images }
            } else {
                let sizes = Sizes { batches: 1, rows: batch, inner, columns: outputs };
                Factors { sizes, left: images, right: kernel }
            })
        } else if self.kernel_size == 1 && !self.channels_first() {
            let sizes = Sizes { batches: batch, rows: outputs, inner, columns: self.out_size };
            let images = Factor { elements: input, inner_first: true };
            Some(Factors { sizes, left: kernel, right: images })
        } else {
            None
        }
    }

    /// The number of products in a sum.
    pub(super) fn inner(&self) -> usize {
        self.group_channels * self.kernel_size
    }

    /// The spatial axes before the last one.
    pub(super) fn outer(&self) -> &[WindowAxis] {
        &self.axes[..self.axes.len() - 1]
    }

    /// The last spatial axis.
    pub(super) fn last(&self) -> &WindowAxis {
        self.axes.last().expect("there is a spatial axis")
    }

    /// The contiguous weights of each output channel, from the product `step` of its sum on.
    pub(super) fn weight_run(&self, step: usize) -> WeightRun {
        let (taps, [output_stride, channel_stride]) = (self.kernel_size, self.kernel_strides);
        let (channel, tap) = (step / taps, step % taps);
        let count = if channel_stride == taps { self.inner() - step } else { taps - tap };
        WeightRun { start: channel * channel_stride + tap, output_stride, count }
    }

    /// The weights of an output channel for an input channel of its group.
    pub(super) fn weights<'a, T>(&self, kernel: &'a [T], output: usize, channel: usize) -> &'a [T] {
        let WeightRun { start, output_stride, .. } = self.weight_run(channel * self.kernel_size);
        &kernel[start + output * output_stride..][..self.kernel_size]
    }

    /// True if all images of an output channel are contiguous in the result.
    fn channels_first(&self) -> bool {
        self.row_strides[1] > self.row_strides[0]
    }

    /// The number of contiguous positions of an output channel in the result: of one image or of all.
    pub(super) fn result_run(&self) -> usize {
        if self.channels_first() { self.batch * self.out_size } else { self.out_size }
    }

    /// The image and the output channel of a row of the positions of an image.
    pub(super) fn image_and_output(&self, row: usize) -> (usize, usize) {
        let outputs = self.groups * self.group_outputs;
        (row / self.row_strides[0] % self.batch, row / self.row_strides[1] % outputs)
    }

    /// The first of the planes `[image][channel]` of the input that a group of output channels reads for an image.
    pub(super) fn plane(&self, image: usize, group: usize) -> usize {
        image * self.in_channels + group * self.group_planes
    }
}
