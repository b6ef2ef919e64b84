//! Derivatives of contractions. `dot` and `conv` are linear in each operand, so the cotangent of an
//! operand is a contraction of the result's cotangent with the other operand.

mod forward;

use nxla_expr::{Axes, Conv, Dot, ExprId, Graph, Op, Padding};
use nxla_tensor::{Shape, inverse_permutation, to_i64};

use crate::builder::{dilated_size, pad_zeros, reshape, transpose};
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

/// Convolution: `y[n, o, j] = sum over c, t of x[n, c, j s + t d - low] k[o, c, t]` with the stride
/// `s`, the kernel dilation `d`, and `x` dilated by the input dilation `e`. Each cotangent is also a
/// convolution, whose permutations bring operands and result into their layouts.
pub(super) fn conv(pass: &mut ReversePass<'_>, visit: &Visit, attributes: &Conv) -> Result<()> {
    let dy = Operand::new(pass.dy(visit)?, &attributes.output_permutation);
    let input = Operand::new(pass.operand(visit, 0)?, &attributes.input_permutation);
    let kernel = Operand::new(pass.operand(visit, 1)?, &attributes.kernel_permutation);
    let canonical = Canonical {
        attributes,
        input: input.shape(pass.graph),
        kernel: kernel.shape(pass.graph),
        output: dy.shape(pass.graph),
    };
    if canonical.is_empty() {
        // Without contributions, the reverse pass uses zeros for both cotangents.
        return Ok(());
    }
    if pass.needs_cotangent(visit, 0) {
        let part = canonical.input(pass.graph, dy.clone(), kernel)?;
        pass.add_cotangent(visit, 0, part)?;
    }
    if pass.needs_cotangent(visit, 1) {
        let part = canonical.kernel(pass.graph, dy, input)?;
        pass.add_cotangent(visit, 1, part)?;
    }
    Ok(())
}

/// An operand of a convolution. Its canonical axis `i` is its axis `axes[i]`.
#[derive(Clone)]
struct Operand {
    id: ExprId,
    axes: Axes,
}

impl Operand {
    fn new(id: ExprId, axes: &Axes) -> Self {
        Self { id, axes: axes.clone() }
    }

    /// Returns the canonical shape.
    fn shape(&self, graph: &Graph) -> Shape {
        self.axes.iter().map(|&axis| graph.shape(self.id)[axis]).collect()
    }

    /// Exchanges the roles of the batch and channel axes, or of the axes of output and input
    /// channels.
    fn exchange_roles(self) -> Self {
        Self { axes: exchange(&self.axes), ..self }
    }

    /// Reverses the spatial axes.
    fn reverse_axes(self, graph: &mut Graph) -> Result<Self> {
        let mut axes: Vec<usize> = self.axes[2..].to_vec();
        axes.sort_unstable();
        Ok(Self { id: graph.make(Op::Reverse(axes.into()), &[self.id])?, ..self })
    }
}

/// Exchanges the first two entries of a permutation.
fn exchange(axes: &[usize]) -> Axes {
    let mut axes: Vec<usize> = axes.to_vec();
    axes.swap(0, 1);
    axes.into()
}

/// A convolution and the canonical shapes of its operands and result.
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

    /// Returns the number of feature or batch groups; at most one of these counts exceeds 1.
    fn groups(&self) -> usize {
        self.attributes.feature_groups * self.attributes.batch_groups
    }

    /// Returns the parameters of each spatial axis, by its index.
    fn spatial(&self, axis: impl Fn(usize) -> Spatial) -> Vec<Spatial> {
        (0..self.input.rank() - 2).map(axis).collect()
    }

    /// Computes the cotangent of the input. Element `p` of the dilated input receives `dy[j] k[t]`
    /// for all `j s + t d - low = p`. This is a convolution of `dy`, dilated by the stride, with
    /// the reversed kernel. The stride of this convolution is the input dilation `e`, because only
    /// every `e`-th element of the dilated input is an element of the input.
    ///
    /// With the stride 1, a large kernel stays as it is, and `dy` and the result are reversed.
    fn input(&self, graph: &mut Graph, dy: Operand, kernel: Operand) -> Result<ExprId> {
        let Conv { strides, input_dilation, kernel_dilation, padding, .. } = self.attributes;
        let mut spatial = self.spatial(|axis| {
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
        });
        let keeps_kernel = input_dilation.iter().all(|&step| step == 1)
            && self.kernel.size() > self.input.size() + self.output.size();
        let (dy, kernel) = if keeps_kernel {
            for Spatial { low, high, .. } in &mut spatial {
                std::mem::swap(low, high);
            }
            (dy.reverse_axes(graph)?, kernel)
        } else {
            (dy, kernel.reverse_axes(graph)?)
        };
        let kernel = if self.groups() == 1 {
            kernel.exchange_roles()
        } else {
            self.swap_in_groups(graph, kernel)?
        };
        let layout = match self.attributes.batch_groups {
            1 => self.attributes.input_permutation.clone(),
            _ => (0..self.input.rank()).collect(),
        };
        let result = convolve(graph, dy, kernel, &spatial, (self.groups(), 1), layout)?;
        let result = if keeps_kernel { result.reverse_axes(graph)? } else { result };
        self.channels_to_batch(graph, result)
    }

    /// Exchanges the output and input channels of each group of a kernel. The result has the
    /// canonical layout.
    fn swap_in_groups(&self, graph: &mut Graph, kernel: Operand) -> Result<Operand> {
        let (groups, rank) = (self.groups(), self.kernel.rank());
        let (outputs, channels) = (self.kernel[0] / groups, self.kernel[1]);
        let id = transpose(graph, kernel.id, kernel.axes)?;
        let id = reshape(graph, id, self.with_spatial(&[groups, outputs, channels], &self.kernel))?;
        let order = [0, 2, 1].into_iter().chain(3..=rank);
        let id = transpose(graph, id, order.collect())?;
        let merged = self.with_spatial(&[groups * channels, outputs], &self.kernel);
        Ok(Operand { id: reshape(graph, id, merged)?, axes: (0..rank).collect() })
    }

    /// Returns the cotangent of the input. Batch groups share no output channels; for `dy` they are
    /// feature groups, whose results are adjacent channels that are moved to the batch axis: from
    /// `[n, groups c, …]` to `[groups n, c, …]`.
    fn channels_to_batch(&self, graph: &mut Graph, result: Operand) -> Result<ExprId> {
        let groups = self.attributes.batch_groups;
        if groups == 1 {
            return Ok(result.id);
        }
        let (batch, channels) = (self.output[0], self.input[1]);
        let split = self.with_spatial(&[batch, groups, channels], &self.input);
        let split = reshape(graph, result.id, split)?;
        let order = [1, 0].into_iter().chain(2..=self.input.rank());
        let moved = transpose(graph, split, order.collect())?;
        let merged = reshape(graph, moved, self.input.clone())?;
        Ok(transpose(graph, merged, inverse_permutation(&self.attributes.input_permutation))?)
    }

    /// Computes the cotangent of the kernel. Tap `t` receives `dy[j] x[j s + t d - low]`, which is
    /// a convolution of the input with the kernel `dy`. The batch and channel axes exchange roles,
    /// and so do stride and kernel dilation; feature groups become batch groups and vice versa.
    fn kernel(&self, graph: &mut Graph, dy: Operand, input: Operand) -> Result<ExprId> {
        let Conv { strides, input_dilation, kernel_dilation, padding, .. } = self.attributes;
        let spatial = self.spatial(|axis| {
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
        });
        let groups = (self.attributes.batch_groups, self.attributes.feature_groups);
        let layout = exchange(&self.attributes.kernel_permutation);
        let (input, dy) = (input.exchange_roles(), dy.exchange_roles());
        Ok(convolve(graph, input, dy, &spatial, groups, layout)?.id)
    }

    /// Returns a shape of leading sizes followed by the spatial sizes of `shape`.
    fn with_spatial(&self, leading: &[usize], shape: &Shape) -> Shape {
        leading.iter().chain(&shape[2..]).copied().collect()
    }
}

/// Builds a convolution whose result has the given layout. Negative padding becomes a separate
/// `pad`, because not every backend supports it in a convolution.
fn convolve(
    graph: &mut Graph,
    input: Operand,
    kernel: Operand,
    spatial: &[Spatial],
    (feature_groups, batch_groups): (usize, usize),
    layout: Axes,
) -> Result<Operand> {
    let trims = spatial.iter().any(|axis| axis.low < 0 || axis.high < 0);
    let mut id = input.id;
    if trims {
        let mut padding = vec![Padding::NONE; input.axes.len()];
        for (&axis, spatial) in input.axes[2..].iter().zip(spatial) {
            let Spatial { low, high, input_dilation, .. } = *spatial;
            padding[axis] = Padding { low, high, interior: input_dilation - 1 };
        }
        id = pad_zeros(graph, id, &padding)?;
    }
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
        input_permutation: input.axes,
        kernel_permutation: kernel.axes,
        output_permutation: layout.clone(),
    };
    let id = graph.make(Op::Conv(Box::new(conv)), &[id, kernel.id])?;
    Ok(Operand { id, axes: layout })
}
