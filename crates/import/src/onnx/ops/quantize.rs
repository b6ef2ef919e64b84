//! Conversions between floats and integers with a scale and a zero point.

use nxla_expr::ExprId;
use nxla_tensor::{DType, Shape};

use super::contract::{along_axis, conv, subtract_zero_point};
use super::elementwise::convert;
use super::window::spatial_sizes;
use super::{Operator, operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("DequantizeLinear", dequantize),
    operator("DynamicQuantizeLinear", |call| {
        let x = call.input(0)?;
        Ok(quantize_to_range(call, x)?.to_vec())
    }),
    operator("QLinearConv", quantized_conv),
    operator("QLinearMatMul", quantized_matmul),
    operator("QuantizeLinear", quantize),
    operator("com.microsoft:DequantizeLinear", dequantize),
    operator("com.microsoft:QuantizeLinear", quantize),
];

/// Returns a scale or zero point in the shape of `x`: it is one number, one for each index of an
/// axis, or one for each block of an axis.
fn broadcast_parameter(call: &mut Call<'_, '_, '_>, x: ExprId, parameter: ExprId) -> Built<ExprId> {
    let (shape, own) = (call.shape(x), call.shape(parameter));
    if own.size() == 1 && own.rank() <= 1 {
        return Ok(call.graph().reshape(parameter, Shape::scalar())?);
    }
    let axis = call.axis(call.int("axis", 1)?, shape.rank())?;
    if own.rank() == 1 {
        let mut sizes = vec![1; shape.rank()];
        sizes[axis] = own[0];
        return Ok(call.graph().reshape(parameter, sizes)?);
    }
    let block = usize::try_from(call.int("block_size", 0)?).unwrap_or(0);
    if block == 0 || own.rank() != shape.rank() {
        let found = call.ty(parameter);
        return invalid(format!("block_size: must be positive for a scale {found}"));
    }
    repeat_blocks(call, parameter, (axis, block, shape[axis]))
}

/// Repeats the parameter of each block of an axis for the elements of the block. The last block may
/// be shorter.
pub(super) fn repeat_blocks(
    call: &mut Call<'_, '_, '_>,
    parameter: ExprId,
    (axis, block, length): (usize, usize, usize),
) -> Built<ExprId> {
    let along = to_i64(axis);
    let graph = call.graph();
    // A block may be longer than the axis.
    let repeated = graph.repeat(parameter, &[block.min(length.max(1))], along)?;
    let size = graph.shape(repeated)[axis].min(length);
    Ok(graph.slice_along_axis(repeated, 0, size, along, 1)?)
}

/// Rounds to a dtype, limited to its range.
pub(super) fn round_to_dtype(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    zero_point: Option<ExprId>,
    dtype: DType,
) -> Built<ExprId> {
    if dtype.is_float() {
        let saturates = call.flag("saturate", true)?;
        return convert(call.graph(), x, dtype, saturates);
    }
    let wide = call.dtype(x);
    let (low, high) = (dtype.min_value(), dtype.max_value());
    let graph = call.graph();
    let mut y = graph.round_half_even(x)?;
    if let Some(zero) = zero_point {
        let zero = graph.as_type(zero, wide)?;
        y = graph.add(y, zero)?;
    }
    let low = graph.scalar_constant(low.cast(wide), wide)?;
    let high = graph.scalar_constant(high.cast(wide), wide)?;
    let limited = graph.clip(y, low, high)?;
    Ok(graph.as_type(limited, dtype)?)
}

fn quantize(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, scale] = call.inputs()?;
    let dtype = match call.optional(2) {
        Some(zero) => call.dtype(zero),
        None => call.data_type("output_dtype")?.unwrap_or(DType::U8),
    };
    let scale = broadcast_parameter(call, x, scale)?;
    let zero = call.optional(2).map(|zero| broadcast_parameter(call, x, zero)).transpose()?;
    let graph = call.graph();
    let wide = graph.as_type(x, DType::F32)?;
    let scale = graph.as_type(scale, DType::F32)?;
    let divided = graph.divide(wide, scale)?;
    Ok(vec![round_to_dtype(call, divided, zero, dtype)?])
}

fn dequantize(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, scale] = call.inputs()?;
    let dtype = call.data_type("output_dtype")?.unwrap_or_else(|| call.dtype(scale));
    let scale = broadcast_parameter(call, x, scale)?;
    let zero = call.optional(2).map(|zero| broadcast_parameter(call, x, zero)).transpose()?;
    let graph = call.graph();
    let mut wide = graph.as_type(x, DType::F32)?;
    if let Some(zero) = zero {
        let zero = graph.as_type(zero, DType::F32)?;
        wide = graph.subtract(wide, zero)?;
    }
    let scale = graph.as_type(scale, DType::F32)?;
    let result = graph.multiply(wide, scale)?;
    Ok(vec![graph.as_type(result, dtype)?])
}

/// Quantizes to `u8` with the scale and zero point that fit the range of the data. The results are the
/// integers, the scale and the zero point.
pub(super) fn quantize_to_range(call: &mut Call<'_, '_, '_>, x: ExprId) -> Built<[ExprId; 3]> {
    let zero = call.scalar(0.0, x)?;
    let (steps, one) = (call.scalar(255.0, x)?, call.scalar(1.0, x)?);
    let graph = call.graph();
    let (low, high) = (graph.reduce_min(x, None, false)?, graph.reduce_max(x, None, false)?);
    let (low, high) = (graph.min(low, zero)?, graph.max(high, zero)?);
    let span = graph.subtract(high, low)?;
    let scale = graph.divide(span, steps)?;
    let is_zero = graph.equal(scale, zero)?;
    let scale = graph.select(is_zero, one, scale)?;
    let start = graph.divide(low, scale)?;
    let start = graph.negate(start)?;
    let zero_point = round_to_dtype(call, start, None, DType::U8)?;
    let graph = call.graph();
    let divided = graph.divide(x, scale)?;
    let result = round_to_dtype(call, divided, Some(zero_point), DType::U8)?;
    Ok([result, scale, zero_point])
}

/// Multiplies integers exactly, then quantizes the product.
fn quantized_matmul(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero] = call.inputs()?;
    let a = subtract_zero_point(call, a, Some(a_zero), 2)?;
    let b = subtract_zero_point(call, b, Some(b_zero), 1)?;
    let product = call.graph().matmul(a, b)?;
    // Vectors have an element for each row of `a` and of the result, and for each column of `b`.
    let scales = [(a_scale, 2), (b_scale, 1), (y_scale, 2)];
    Ok(vec![requantize(call, product, scales, (y_zero, 2))?])
}

/// Convolves integers exactly, then quantizes the sums. The scale of the kernel may have an entry for
/// each output channel.
fn quantized_conv(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, x_scale, x_zero, kernel, kernel_scale, kernel_zero, y_scale, y_zero] = call.inputs()?;
    let rank = 2 + spatial_sizes(call, kernel)?.len();
    let x = subtract_zero_point(call, x, Some(x_zero), 1)?;
    let kernel = subtract_zero_point(call, kernel, Some(kernel_zero), rank)?;
    let graph = call.graph();
    let (x, kernel) = (graph.as_type(x, DType::F64)?, graph.as_type(kernel, DType::F64)?);
    let bias = call.optional(8).map(|bias| call.graph().as_type(bias, DType::F64)).transpose()?;
    let sums = conv(call, x, kernel, bias)?[0];
    let channels = rank - 1;
    let scales = [(x_scale, 1), (kernel_scale, channels), (y_scale, channels)];
    Ok(vec![requantize(call, sums, scales, (y_zero, channels))?])
}

/// Quantizes a product of integers with the scales of its factors and of the result, and the zero
/// point of the result, each with the axis of its vectors; see [`along_axis`].
fn requantize(
    call: &mut Call<'_, '_, '_>,
    product: ExprId,
    mut scales: [(ExprId, usize); 3],
    (y_zero, from_end): (ExprId, usize),
) -> Built<ExprId> {
    let dtype = call.dtype(y_zero);
    for (scale, from_end) in &mut scales {
        let aligned = along_axis(call, *scale, *from_end)?;
        *scale = call.graph().as_type(aligned, DType::F32)?;
    }
    let zero = along_axis(call, y_zero, from_end)?;
    let [(a, _), (b, _), (y, _)] = scales;
    let graph = call.graph();
    let product = graph.as_type(product, DType::F32)?;
    let scale = graph.multiply(a, b)?;
    let scale = graph.divide(scale, y)?;
    let scaled = graph.multiply(product, scale)?;
    round_to_dtype(call, scaled, Some(zero), dtype)
}
