//! Matrix products and convolutions.

use nxla_expr::ExprId;
use nxla_expr::build::{ConvOptions, SliceStart, WindowPadding};
use nxla_tensor::{DType, Shape};

use super::window::{Windows, spatial_sizes};
use super::{Operator, operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("CausalConvWithState", causal_conv),
    operator("Conv", |call| {
        let [x, kernel] = call.inputs()?;
        let bias = call.optional(2);
        conv(call, x, kernel, bias)
    }),
    operator("ConvInteger", conv_integer),
    operator("ConvTranspose", conv_transpose),
    operator("Det", |call| {
        let x = call.input(0)?;
        Ok(vec![call.graph().determinant(x)?])
    }),
    operator("Einsum", |call| {
        let (operands, equation) = (call.inputs_from(0)?, call.text("equation", "")?);
        Ok(vec![call.graph().einsum(&equation, &operands, None)?])
    }),
    operator("Gemm", gemm),
    operator("MatMul", |call| {
        let [x, y] = call.inputs()?;
        Ok(vec![call.graph().matmul(x, y)?])
    }),
    operator("MatMulInteger", matmul_integer),
];

/// Returns `alpha op(a) op(b) + beta c`.
pub(super) fn gemm(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [mut a, mut b] = call.inputs()?;
    let (alpha, beta) = (call.float("alpha", 1.0)?, call.float("beta", 1.0)?);
    let (left, right) = (call.flag("transA", false)?, call.flag("transB", false)?);
    let graph = call.graph();
    if left {
        a = graph.transpose(a, None)?;
    }
    if right {
        b = graph.transpose(b, None)?;
    }
    let product = graph.dot(a, b)?;
    let mut result = scale_by(call, product, alpha)?;
    if let Some(c) = call.optional(2) {
        let c = scale_by(call, c, beta)?;
        result = call.graph().add(result, c)?;
    }
    let dtype = call.dtype(product);
    Ok(vec![call.graph().as_type(result, dtype)?])
}

/// Multiplies by a factor. Integers times a fraction are `f64`, so that the caller truncates only
/// its final result.
pub(super) fn scale_by(call: &mut Call<'_, '_, '_>, mut x: ExprId, factor: f64) -> Built<ExprId> {
    if factor == 1.0 {
        return Ok(x);
    }
    if call.dtype(x).is_integer() && factor.fract() != 0.0 {
        x = call.graph().as_type(x, DType::F64)?;
    }
    let factor = call.scalar(factor, x)?;
    Ok(call.graph().multiply(x, factor)?)
}

/// Reshapes a scale or a zero point so that it broadcasts. A vector has an element for each index of
/// one axis, which is counted from the end.
pub(super) fn along_axis(
    call: &mut Call<'_, '_, '_>,
    parameter: ExprId,
    from_end: usize,
) -> Built<ExprId> {
    let shape = match call.shape(parameter) {
        shape if shape.size() == 1 => Shape::scalar(),
        shape if shape.rank() == 1 => {
            std::iter::once(shape[0]).chain(std::iter::repeat_n(1, from_end - 1)).collect()
        }
        _ => return Ok(parameter),
    };
    Ok(call.graph().reshape(parameter, shape)?)
}

/// Subtracts the zero point of integers, in 32 bits; see [`along_axis`].
pub(super) fn subtract_zero_point(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    zero_point: Option<ExprId>,
    from_end: usize,
) -> Built<ExprId> {
    let wide = call.graph().as_type(x, DType::S32)?;
    let Some(zero_point) = zero_point else { return Ok(wide) };
    let zero = along_axis(call, zero_point, from_end)?;
    let graph = call.graph();
    let zero = graph.as_type(zero, DType::S32)?;
    Ok(graph.subtract(wide, zero)?)
}

fn matmul_integer(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [a, b] = call.inputs()?;
    let (a_zero, b_zero) = (call.optional(2), call.optional(3));
    let a = subtract_zero_point(call, a, a_zero, 2)?;
    let b = subtract_zero_point(call, b, b_zero, 1)?;
    Ok(vec![call.graph().matmul(a, b)?])
}

fn conv_integer(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, kernel] = call.inputs()?;
    let (x_zero, kernel_zero) = (call.optional(2), call.optional(3));
    let rank = 2 + spatial_sizes(call, kernel)?.len();
    let x = subtract_zero_point(call, x, x_zero, 1)?;
    let kernel = subtract_zero_point(call, kernel, kernel_zero, rank)?;
    // Convolutions compute in floats; 64 bits hold every sum of products of 8-bit integers exactly.
    let graph = call.graph();
    let (x, kernel) = (graph.as_type(x, DType::F64)?, graph.as_type(kernel, DType::F64)?);
    let result = conv(call, x, kernel, None)?[0];
    Ok(vec![call.graph().as_type(result, DType::S32)?])
}

/// Adds a bias along the channels.
pub(super) fn add_bias(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    bias: Option<ExprId>,
) -> Built<ExprId> {
    let Some(bias) = bias else { return Ok(x) };
    let mut shape = vec![1; call.rank(x)];
    shape[1] = call.shape(bias).size();
    let graph = call.graph();
    let bias = graph.reshape(bias, shape)?;
    Ok(graph.add(x, bias)?)
}

pub(super) fn conv(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    kernel: ExprId,
    bias: Option<ExprId>,
) -> Built<Vec<ExprId>> {
    let sizes = spatial_sizes(call, x)?;
    let window = spatial_sizes(call, kernel)?;
    let windows = Windows::read(call, &window, &sizes)?;
    let options = ConvOptions {
        strides: Some(windows.strides),
        padding: WindowPadding::Explicit(windows.padding),
        kernel_dilation: Some(windows.dilations),
        feature_groups: call.positive("group", 1)?,
        ..ConvOptions::default()
    };
    let result = call.graph().conv(x, kernel, &options)?;
    Ok(vec![add_bias(call, result, bias)?])
}

/// Convolves each channel of a sequence with its own kernel, which reads no later elements. The state
/// holds the elements before the first one, and the second result the state of the next call.
fn causal_conv(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, kernel] = call.inputs()?;
    let ([batch, channels, _], Some(&width)) = (
        call.shape(x)[..].try_into().unwrap_or([0; 3]),
        call.shape(kernel).get(2).filter(|&&width| width > 0),
    ) else {
        let (x, kernel) = (call.ty(x), call.ty(kernel));
        return invalid(format!("input, weight: must have 3 axes; got {x}, {kernel}"));
    };
    let past = match call.optional(3) {
        Some(past) => past,
        None => {
            let zero = call.scalar(0.0, x)?;
            call.broadcast(zero, &[batch, channels, width - 1])?
        }
    };
    let bias = call.optional(2);
    let options = ConvOptions { feature_groups: channels, ..ConvOptions::default() };
    let graph = call.graph();
    let sequence = graph.concatenate(&[past, x], 2)?;
    let length = graph.shape(sequence)[2];
    let present = SliceStart::at((length + 1).saturating_sub(width));
    let present = graph.slice_along_axis(sequence, present, width - 1, 2, 1)?;
    let result = graph.conv(sequence, kernel, &options)?;
    let result = add_bias(call, result, bias)?;
    Ok(match call.text("activation", "none")?.as_str() {
        "none" | "" => vec![result, present],
        "silu" | "swish" => vec![call.graph().silu(result)?, present],
        other => {
            let why = format!("activation: must be none, silu or swish; got {other:?}");
            return invalid(why);
        }
    })
}

/// A convolution of the reversed kernel over the input with zeros between its elements.
fn conv_transpose(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, kernel] = call.inputs()?;
    let (sizes, window) = (spatial_sizes(call, x)?, spatial_sizes(call, kernel)?);
    let spatial = sizes.len();
    if window.len() != spatial {
        let found = call.ty(kernel);
        return invalid(format!("W: must have {} axes; got {found}", spatial + 2));
    }
    let groups = call.positive("group", 1)?;
    let (strides, dilations) = Windows::strides_and_dilations(call, spatial)?;
    let padding = transposed_padding(call, [&sizes, &window, &strides, &dilations])?;
    let shape = call.shape(kernel);
    let (channels, each) = (shape[0], shape[1]);
    if !channels.is_multiple_of(groups) {
        return invalid(format!("group: must divide {channels} channels; got {groups}"));
    }
    // From [groups * in, out, …] to [groups * out, in, …].
    let mut split = vec![groups, channels / groups, each];
    split.extend(&window);
    let mut merged = vec![groups * each, channels / groups];
    merged.extend(&window);
    let reversed: Vec<i64> = (2..).take(spatial).collect();
    let graph = call.graph();
    let kernel = graph.reshape(kernel, split)?;
    let kernel = graph.swap_axes(kernel, 1, 2)?;
    let kernel = graph.reshape(kernel, merged)?;
    let kernel = graph.reverse(kernel, Some(&reversed))?;
    let options = ConvOptions {
        padding: WindowPadding::Explicit(padding),
        input_dilation: Some(strides),
        kernel_dilation: Some(dilations),
        feature_groups: groups,
        ..ConvOptions::default()
    };
    let result = graph.conv(x, kernel, &options)?;
    let bias = call.optional(2);
    Ok(vec![add_bias(call, result, bias)?])
}

/// Returns the padding of the convolution that computes a transposed convolution.
fn transposed_padding(
    call: &Call<'_, '_, '_>,
    [sizes, window, strides, dilations]: [&[usize]; 4],
) -> Built<Vec<(i64, i64)>> {
    let spatial = sizes.len();
    let extra = call.ints_of_length("output_padding", spatial)?;
    let extra = extra.unwrap_or_else(|| vec![0; spatial]);
    let mut wanted = call.ints_of_length("output_shape", spatial)?;
    let auto = call.text("auto_pad", "NOTSET")?;
    if wanted.is_none() && auto.starts_with("SAME") {
        wanted = Some(
            (0..spatial).map(|axis| to_i64(sizes[axis].saturating_mul(strides[axis]))).collect(),
        );
    }
    let pads = call.ints_of_length("pads", 2 * spatial)?;
    let pads = pads.unwrap_or_else(|| vec![0; 2 * spatial]);
    let mut padding = Vec::with_capacity(spatial);
    for axis in 0..spatial {
        let reach = to_i64(window[axis].saturating_sub(1).saturating_mul(dilations[axis]));
        let (low, high) = match &wanted {
            None => (pads[axis], pads[spatial + axis]),
            Some(wanted) => {
                let gaps = to_i64(sizes[axis].saturating_sub(1).saturating_mul(strides[axis]));
                let full = gaps.saturating_add(extra[axis]).saturating_add(reach).saturating_add(1);
                let total = full.saturating_sub(wanted[axis]);
                let half = total.div_euclid(2);
                match auto.as_str() {
                    "SAME_UPPER" => (half, total - half),
                    // A negative number adds elements, which are at the end.
                    _ if total < 0 => (0, total),
                    _ => (total - half, half),
                }
            }
        };
        let high = reach.saturating_sub(high).saturating_add(extra[axis]);
        padding.push((reach.saturating_sub(low), high));
    }
    Ok(padding)
}
