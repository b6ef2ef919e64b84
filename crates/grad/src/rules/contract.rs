//! Derivatives of contractions. `dot` and `conv` are linear in each operand, so the cotangent of an
//! operand is a contraction of the result's cotangent with the other operand.

mod forward;

use nxla_expr::{Axes, Conv, Dot, ExprId, Graph, Op, Padding};
use nxla_tensor::{Shape, inverse_permutation};

use crate::builder::{dilated_size, pad_zeros, reshape, to_i64, transpose};
use crate::error::Result;
use crate::reverse::{ReversePass, Visit};

pub(super) use forward::bilinear_tangent;

/// An operand of a dot product: its contracted axes, its batch axes and its rank.
struct Side<'a> {
    value: ExprId,
    contract: &'a [usize],
    rank: usize,
    batch: usize,
}

impl Side<'_> {
    /// Returns the axes that remain in the result.
    fn free(&self) -> Vec<usize> {
        (self.batch..self.rank).filter(|axis| !self.contract.contains(axis)).collect()
    }
}

/// The axes of the result are the batch axes, the free axes of the left operand and the free axes
/// of the right operand. The cotangent of an operand therefore contracts `dy` with the other
/// operand over the free axes of the other operand.
pub(super) fn dot(pass: &mut ReversePass<'_>, visit: &Visit, attributes: &Dot) -> Result<()> {
    let dy = pass.dy(visit)?;
    let batch = attributes.left_batch.len();
    let mut side = |position: usize, contract| -> Result<Side<'_>> {
        let value = pass.operand(visit, position)?;
        Ok(Side { value, contract, rank: pass.graph.shape(value).rank(), batch })
    };
    let left = side(0, &attributes.left_contract)?;
    let right = side(1, &attributes.right_contract)?;
    let right_first = batch + left.free().len();
    if pass.needs_cotangent(visit, 0) {
        let part = dot_operand(pass.graph, dy, right_first, &left, &right)?;
        pass.add_cotangent(visit, 0, part)?;
    }
    if pass.needs_cotangent(visit, 1) {
        let part = dot_operand(pass.graph, dy, batch, &right, &left)?;
        pass.add_cotangent(visit, 1, part)?;
    }
    Ok(())
}

/// Returns the cotangent of `own`; the free axes of `other` start at axis `first` of `dy`.
///
/// The axes of the product are the batch axes, the free axes of `own`, and the contracted axes of
/// `other` in increasing order, each in place of the corresponding axis of `own`. The order of the
/// two factors decides which group comes first; the order that needs no transposition is used.
fn dot_operand(
    graph: &mut Graph,
    dy: ExprId,
    first: usize,
    own: &Side<'_>,
    other: &Side<'_>,
) -> Result<ExprId> {
    let batch: Axes = (0..own.batch).collect();
    let other_free = other.free();
    let dy_contract: Axes = (first..first + other_free.len()).collect();
    let mut contracted: Vec<(usize, usize)> =
        other.contract.iter().copied().zip(own.contract.iter().copied()).collect();
    contracted.sort_unstable();
    let contracted: Vec<usize> = contracted.into_iter().map(|(_, own)| own).collect();
    let leads = |first: &[usize], last: &[usize]| -> Axes {
        batch.iter().chain(first).chain(last).copied().collect()
    };
    let swapped = leads(&contracted, &own.free());
    let swaps = swapped.is_sorted();
    let axes = if swaps { swapped } else { leads(&own.free(), &contracted) };
    let (left, right) = (dy_contract, other_free.into());
    let (left, right) = if swaps { (right, left) } else { (left, right) };
    let product = Dot {
        left_contract: left,
        left_batch: batch.clone(),
        right_contract: right,
        right_batch: batch,
    };
    let factors = if swaps { [other.value, dy] } else { [dy, other.value] };
    let product = graph.make(Op::Dot(Box::new(product)), &factors)?;
    Ok(transpose(graph, product, inverse_permutation(&axes))?)
}

/// Convolution in canonical layout: `y[n, o, j] = sum over c, t of x[n, c, j s + t d - low] k[o, c,
/// t]` with the stride `s`, the kernel dilation `d`, and `x` dilated by the input dilation `e`.
/// Each cotangent is also a convolution.
pub(super) fn conv(pass: &mut ReversePass<'_>, visit: &Visit, attributes: &Conv) -> Result<()> {
    let dy = pass.dy(visit)?;
    let (input, kernel) = (pass.operand(visit, 0)?, pass.operand(visit, 1)?);
    let graph = &mut *pass.graph;
    let input = transpose(graph, input, attributes.input_permutation.clone())?;
    let kernel = transpose(graph, kernel, attributes.kernel_permutation.clone())?;
    let dy = transpose(graph, dy, attributes.output_permutation.clone())?;
    let canonical = Canonical {
        attributes,
        input: graph.shape(input).clone(),
        kernel: graph.shape(kernel).clone(),
        output: graph.shape(dy).clone(),
    };
    if canonical.is_empty() {
        // Without contributions, the reverse pass uses zeros for both cotangents.
        return Ok(());
    }
    if pass.needs_cotangent(visit, 0) {
        let part = canonical.input(pass.graph, dy, kernel)?;
        let part = transpose(pass.graph, part, inverse_permutation(&attributes.input_permutation))?;
        pass.add_cotangent(visit, 0, part)?;
    }
    if pass.needs_cotangent(visit, 1) {
        let part = canonical.kernel(pass.graph, dy, input)?;
        let part =
            transpose(pass.graph, part, inverse_permutation(&attributes.kernel_permutation))?;
        pass.add_cotangent(visit, 1, part)?;
    }
    Ok(())
}

/// A convolution with its operands in canonical layout.
struct Canonical<'a> {
    attributes: &'a Conv,
    input: Shape,
    kernel: Shape,
    output: Shape,
}

/// The parameters of one spatial axis in the convolution that computes a cotangent.
struct Spatial {
    stride: usize,
    input_dilation: usize,
    kernel_dilation: usize,
    low: i64,
    high: i64,
}

impl Canonical<'_> {
    fn is_empty(&self) -> bool {
        [&self.input, &self.kernel, &self.output].iter().any(|shape| shape.size() == 0)
    }

    fn spatial(&self) -> std::ops::Range<usize> {
        0..self.input.rank() - 2
    }

    /// Returns the number of feature or batch groups; at most one of these counts exceeds 1.
    fn groups(&self) -> usize {
        self.attributes.feature_groups * self.attributes.batch_groups
    }

    /// Computes the cotangent of the input. Element `p` of the dilated input receives `dy[j] k[t]`
    /// for all `j s + t d - low = p`. This is a convolution of `dy`, dilated by the stride, with
    /// the reversed kernel. The stride of this convolution is the input dilation `e`, because only
    /// every `e`-th element of the dilated input is an element of the input.
    ///
    /// Batch groups share no output channels. For `dy` they are feature groups, whose results are
    /// adjacent channels that are then moved to the batch axis.
    fn input(&self, graph: &mut Graph, dy: ExprId, kernel: ExprId) -> Result<ExprId> {
        let groups = self.groups();
        let (outputs, channels) = (self.kernel[0], self.kernel[1]);
        let taps: Axes = (2..self.kernel.rank()).collect();
        let reversed = graph.make(Op::Reverse(taps), &[kernel])?;
        let split = self.with_spatial(&[groups, outputs / groups, channels], &self.kernel);
        let swapped = reshape(graph, reversed, split)?;
        let swapped = transpose(graph, swapped, swap(self.kernel.rank() + 1, 1, 2))?;
        let merged = self.with_spatial(&[groups * channels, outputs / groups], &self.kernel);
        let swapped = reshape(graph, swapped, merged)?;
        let spatial: Vec<Spatial> = self
            .spatial()
            .map(|axis| {
                let Conv { strides, input_dilation, kernel_dilation, padding, .. } =
                    self.attributes;
                let low = padding[axis].0;
                let reach = to_i64(dilated_size(self.kernel[axis + 2], kernel_dilation[axis])) - 1;
                let needed = to_i64(dilated_size(self.input[axis + 2], input_dilation[axis]));
                Spatial {
                    stride: input_dilation[axis],
                    input_dilation: strides[axis],
                    kernel_dilation: kernel_dilation[axis],
                    low: reach - low,
                    high: needed + low - to_i64(dilated_size(self.output[axis + 2], strides[axis])),
                }
            })
            .collect();
        let part = convolve(graph, dy, swapped, &spatial, (groups, 1))?;
        self.channels_to_batch(graph, part)
    }

    /// Reshapes `[n, groups c, …]` to `[groups n, c, …]`, for batch groups.
    fn channels_to_batch(&self, graph: &mut Graph, x: ExprId) -> Result<ExprId> {
        let groups = self.attributes.batch_groups;
        if groups == 1 {
            return Ok(x);
        }
        let (batch, channels) = (self.output[0], self.input[1]);
        let split = self.with_spatial(&[batch, groups, channels], &self.input);
        let split = reshape(graph, x, split)?;
        let moved = transpose(graph, split, swap(self.input.rank() + 1, 0, 1))?;
        Ok(reshape(graph, moved, self.input.clone())?)
    }

    /// Computes the cotangent of the kernel. Tap `t` receives `dy[j] x[j s + t d - low]`, which is
    /// a convolution of the input with the kernel `dy`. The batch and channel axes exchange roles,
    /// and so do stride and kernel dilation; feature groups become batch groups and vice versa.
    fn kernel(&self, graph: &mut Graph, dy: ExprId, input: ExprId) -> Result<ExprId> {
        let Conv { strides, input_dilation, kernel_dilation, padding, .. } = self.attributes;
        let rank = self.input.rank();
        let input = transpose(graph, input, swap(rank, 0, 1))?;
        let dy = transpose(graph, dy, swap(rank, 0, 1))?;
        let spatial: Vec<Spatial> = self
            .spatial()
            .map(|axis| {
                let low = padding[axis].0;
                let taps = to_i64(dilated_size(self.kernel[axis + 2], kernel_dilation[axis]));
                let reach = to_i64(dilated_size(self.output[axis + 2], strides[axis]));
                let size = to_i64(dilated_size(self.input[axis + 2], input_dilation[axis]));
                Spatial {
                    stride: kernel_dilation[axis],
                    input_dilation: input_dilation[axis],
                    kernel_dilation: strides[axis],
                    low,
                    high: taps + reach - 1 - low - size,
                }
            })
            .collect();
        let groups = (self.attributes.batch_groups, self.attributes.feature_groups);
        let part = convolve(graph, input, dy, &spatial, groups)?;
        Ok(transpose(graph, part, swap(rank, 0, 1))?)
    }

    /// Returns a shape of leading sizes followed by the spatial sizes of `shape`.
    fn with_spatial(&self, leading: &[usize], shape: &Shape) -> Shape {
        leading.iter().chain(&shape[2..]).copied().collect()
    }
}

/// Builds a convolution in canonical layout. Negative padding becomes a separate `pad`, because not
/// every backend supports it in a convolution.
fn convolve(
    graph: &mut Graph,
    input: ExprId,
    kernel: ExprId,
    spatial: &[Spatial],
    (feature_groups, batch_groups): (usize, usize),
) -> Result<ExprId> {
    let trims = spatial.iter().any(|axis| axis.low < 0 || axis.high < 0);
    let mut padding = vec![Padding::NONE; 2];
    padding.extend(spatial.iter().map(|axis| Padding {
        low: axis.low,
        high: axis.high,
        interior: axis.input_dilation - 1,
    }));
    let input = if trims { pad_zeros(graph, input, &padding)? } else { input };
    let rank = spatial.len() + 2;
    let identity: Axes = (0..rank).collect();
    let conv = Conv {
        strides: spatial.iter().map(|axis| axis.stride).collect(),
        padding: spatial
            .iter()
            .map(|axis| if trims { (0, 0) } else { (axis.low, axis.high) })
            .collect(),
        input_dilation: spatial
            .iter()
            .map(|axis| if trims { 1 } else { axis.input_dilation })
            .collect(),
        kernel_dilation: spatial.iter().map(|axis| axis.kernel_dilation).collect(),
        feature_groups,
        batch_groups,
        input_permutation: identity.clone(),
        kernel_permutation: identity.clone(),
        output_permutation: identity,
    };
    Ok(graph.make(Op::Conv(Box::new(conv)), &[input, kernel])?)
}

/// Returns the permutation that exchanges two axes.
fn swap(rank: usize, a: usize, b: usize) -> Axes {
    let mut axes: Vec<usize> = (0..rank).collect();
    axes.swap(a, b);
    axes.into()
}
