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
    let kernel = permute(cx, kernel, &attributes.kernel_permutation)?;
    let canonical: Shape = attributes.output_permutation.iter().map(|&axis| shape[axis]).collect();
    let result = match_number!(input.dtype(), T => {
        context::build(input.dtype(), &canonical, |out: &mut [T]| {
            if phases::has_gaps(attributes) {
                phases::run(cx, attributes, &input, &kernel, &canonical, out);
            } else {
                Geometry::new(attributes, input.shape(), kernel.shape(), &canonical)
                    .run(cx, context::slice(&input), context::slice(&kernel), out);
            }
        })
    })?;
    // Axis `i` of the canonical layout is axis `output_permutation[i]` of the result; the
    // transposition needs the inverse permutation.
    permute(cx, &result, &inverse_permutation(&attributes.output_permutation))
}

/// The sizes of a convolution in canonical layout, whose input has no [gaps](phases).
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
    axes: Vec<WindowAxis>,
    /// Elements of the spatial axes of input, kernel and result.
    pub(super) in_size: usize,
    pub(super) kernel_size: usize,
    pub(super) out_size: usize,
}

impl Geometry {
    pub(super) fn new(attributes: &Conv, input: &[usize], kernel: &[usize], out: &[usize]) -> Self {
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
        Self {
            batch: out[0],
            groups,
            in_channels: input[1],
            group_planes: if attributes.batch_groups > 1 { out[0] * input[1] } else { kernel[1] },
            group_channels: kernel[1],
            group_outputs: kernel[0] / groups,
            in_size: input[2..].iter().product(),
            kernel_size: kernel[2..].iter().product(),
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
        if let Some(sizes) = self.product() {
            let factor = |elements, inner_first| Factor { elements, inner_first };
            let (left, right) = match self.kernel_size {
                1 => (factor(kernel, false), factor(input, true)),
                _ => (factor(input, false), factor(kernel, false)),
            };
            return matmul(cx, Factors { sizes, left, right }, out);
        }
        if self.group_outputs == 1 {
            depthwise::run(cx, self, input, kernel, out);
        } else {
            direct::run(cx, self, input, kernel, out);
        }
    }

    /// The sizes of the convolution as a product of matrices, if it is one: of the kernel and each
    /// image if there is one tap, or of all images and the kernel if there is one position.
    fn product(&self) -> Option<Sizes> {
        let (batch, outputs, inner) = (self.batch, self.group_outputs, self.inner());
        let is_all = |axis: &WindowAxis| {
            let is_read_once = (axis.taps, axis.stride) == (1, 1) && axis.count == axis.size;
            let is_one_position = (axis.count, axis.dilation) == (1, 1) && axis.taps == axis.size;
            axis.low == 0 && (is_read_once || is_one_position)
        };
        if self.groups > 1 || !self.axes.iter().all(is_all) {
            None
        } else if self.kernel_size == 1 {
            Some(Sizes { batches: batch, rows: outputs, inner, columns: self.out_size })
        } else if self.out_size == 1 {
            Some(Sizes { batches: 1, rows: batch, inner, columns: outputs })
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

    /// The first of the planes `[image][channel]` of the input that a group of output channels reads for an image.
    pub(super) fn plane(&self, image: usize, group: usize) -> usize {
        image * self.in_channels + group * self.group_planes
    }
}
