//! Deformable convolutions, whose kernels read the image at computed positions.

use nxla_expr::ExprId;
use nxla_expr::build::SliceStart;
use nxla_tensor::{DType, Scalar, Shape};

use super::contract::add_bias;
use super::sampling::{Sampling, interpolate};
use super::window::{Windows, spatial_sizes};
use super::{Operator, operator};
use crate::numbers::{to_f64, to_i64};
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[operator("DeformConv", deformable_conv)];

/// The sizes of a deformable convolution.
struct Sizes {
    windows: Windows,
    /// The sizes of the spatial axes of the image and of the result.
    image: Vec<usize>,
    result: Vec<usize>,
    /// The groups of channels that are read at the same positions.
    offset_groups: usize,
    /// The shape of the positions: batch, offset group, axes of the kernel, axes of the result.
    position_shape: Vec<usize>,
    /// The numbers of elements of the kernel, the image and the result.
    taps: usize,
    elements: usize,
    count: usize,
}

impl Sizes {
    fn read(call: &Call<'_, '_, '_>, x: ExprId, kernel: ExprId) -> Built<Sizes> {
        let (image, window) = (spatial_sizes(call, x)?, spatial_sizes(call, kernel)?);
        if image.contains(&0) {
            return invalid(format!("X: must have elements; got {}", call.ty(x)));
        }
        let windows = Windows::read(call, &window, &image)?;
        let offset_groups = call.positive("offset_group", 1)?;
        let [batch, channels] = [call.shape(x)[0], call.shape(x)[1]];
        if !channels.is_multiple_of(offset_groups) {
            let why = format!("must divide the channels of {}; got {offset_groups}", call.ty(x));
            return invalid(format!("offset_group: {why}"));
        }
        let mut result = Vec::with_capacity(image.len());
        for (axis, &size) in image.iter().enumerate() {
            let (low, high) = windows.padding[axis];
            let reach = to_i64((window[axis] - 1).saturating_mul(windows.dilations[axis]));
            let room = to_i64(size).saturating_add(low + high).saturating_sub(reach);
            let room = usize::try_from(room).unwrap_or(0);
            result.push(room.div_ceil(windows.strides[axis]));
        }
        let mut position_shape = vec![batch, offset_groups];
        position_shape.extend(window.iter().chain(&result));
        let total = |sizes: &[usize]| {
            Shape::from(sizes).checked_size().ok_or("X, W: must have fewer elements")
        };
        let (taps, elements, count) = (total(&window)?, total(&image)?, total(&result)?);
        Ok(Sizes { windows, image, result, offset_groups, position_shape, taps, elements, count })
    }

    /// Reshapes an operand with the channels `[offset group, axes of the kernel, entries]` to the shape
    /// of the positions, with the entries as the last axis.
    fn reshape_channels(
        &self,
        call: &mut Call<'_, '_, '_>,
        x: ExprId,
        entries: usize,
        argument: &str,
    ) -> Built<ExprId> {
        let rank = self.image.len();
        let own = self.taps.saturating_mul(entries);
        let mut expected = vec![self.position_shape[0], self.offset_groups.saturating_mul(own)];
        expected.extend(&self.result);
        if call.shape(x)[..] != expected[..] {
            let found = call.ty(x);
            return invalid(format!("{argument}: must have the shape {expected:?}; got {found}"));
        }
        let mut split = self.position_shape.clone();
        split.insert(2 + rank, entries);
        let graph = call.graph();
        let split = graph.reshape(x, split)?;
        Ok(graph.move_axes(split, &[to_i64(2 + rank)], &[-1])?)
    }

    /// Returns the positions along an axis of the image: the positions of a convolution plus the offsets.
    fn positions(
        &self,
        call: &mut Call<'_, '_, '_>,
        offsets: ExprId,
        axis: usize,
    ) -> Built<ExprId> {
        let rank = self.image.len();
        let dtype = call.dtype(offsets);
        let graph = call.graph();
        let offset = graph.slice_along_axis(offsets, SliceStart::at(axis), 1, -1, 1)?;
        let mut position = graph.squeeze(offset, Some(&[-1]))?;
        for (along, step) in [
            (2 + axis, self.windows.dilations[axis]),
            (2 + rank + axis, self.windows.strides[axis]),
        ] {
            let shape = Shape::from(self.position_shape.as_slice());
            let index = graph.iota(shape, Some(to_i64(along)), dtype)?;
            let step = graph.scalar_constant(Scalar::Float(to_f64(step)), dtype)?;
            let moved = graph.multiply(index, step)?;
            position = graph.add(position, moved)?;
        }
        let low = graph.scalar_constant(Scalar::Int(self.windows.padding[axis].0), dtype)?;
        Ok(graph.subtract(position, low)?)
    }
}

/// Computes a convolution whose kernel reads the image at positions that are moved by offsets, and
/// multiplies what it reads by a mask.
fn deformable_conv(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, kernel, offsets] = call.inputs()?;
    let (bias, mask) = (call.optional(3), call.optional(4));
    let sizes = Sizes::read(call, x, kernel)?;
    let (rank, dtype) = (sizes.image.len(), call.dtype(x));
    let wide = dtype.at_least_f32();
    let offsets = call.graph().as_type(offsets, wide)?;
    let offsets = sizes.reshape_channels(call, offsets, rank, "offset")?;
    let positions: Vec<ExprId> =
        (0..rank).map(|axis| sizes.positions(call, offsets, axis)).collect::<Built<_>>()?;
    let (batch, channels) = (call.shape(x)[0], call.shape(x)[1]);
    let own = channels / sizes.offset_groups;
    let graph = call.graph();
    let neighbors = Sampling::LINEAR.neighbors_in_image(graph, &positions, &sizes.image)?;
    let flat = graph.as_type(x, wide)?;
    let flat = graph.reshape(flat, [batch, sizes.offset_groups, own, sizes.elements])?;
    let flat = graph.swap_axes(flat, -1, -2)?;
    let shape = Shape::from(sizes.position_shape.as_slice());
    let outer = [0, 1].map(|axis| graph.iota(shape.clone(), Some(axis), DType::S64));
    let [batches, of_group] = outer;
    let mut columns = interpolate(graph, flat, &[batches?, of_group?], &neighbors)?;
    if let Some(mask) = mask {
        let mask = call.graph().as_type(mask, wide)?;
        let mask = sizes.reshape_channels(call, mask, 1, "mask")?;
        columns = call.graph().multiply(columns, mask)?;
    }
    let result = multiply_columns(call, &sizes, columns, kernel)?;
    let result = call.graph().as_type(result, dtype)?;
    Ok(vec![add_bias(call, result, bias)?])
}

/// Multiplies the kernel by what it reads: `columns` has the shape of the positions and the channels of
/// an offset group.
fn multiply_columns(
    call: &mut Call<'_, '_, '_>,
    sizes: &Sizes,
    columns: ExprId,
    kernel: ExprId,
) -> Built<ExprId> {
    let (groups, kernel_shape, dtype) =
        (call.positive("group", 1)?, call.shape(kernel), call.dtype(columns));
    let (batch, outputs) = (sizes.position_shape[0], kernel_shape[0]);
    let inner = kernel_shape[1].saturating_mul(sizes.taps);
    let channels = call.shape(columns).last().copied().unwrap_or(0) * sizes.offset_groups;
    if kernel_shape[1].checked_mul(groups) != Some(channels) || !outputs.is_multiple_of(groups) {
        let found = call.ty(kernel);
        return invalid(format!("W: must fit {channels} channels in {groups} groups; got {found}"));
    }
    let graph = call.graph();
    let columns = graph.move_axes(columns, &[-1], &[2])?;
    let columns = graph.reshape(columns, [batch, groups, inner, sizes.count])?;
    let kernel = graph.as_type(kernel, dtype)?;
    let kernel = graph.reshape(kernel, [groups, outputs / groups, inner])?;
    let result = graph.matmul(kernel, columns)?;
    let mut shape = vec![batch, outputs];
    shape.extend(&sizes.result);
    Ok(graph.reshape(result, shape)?)
}
