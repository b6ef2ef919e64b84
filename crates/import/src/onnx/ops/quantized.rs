//! Operators of `com.microsoft` on integers with a scale and a zero point.

use nxla_expr::ExprId;
use nxla_expr::build::Formula;
use nxla_tensor::DType;

use super::activation::map_along_axis;
use super::contract::{along_axis, subtract_zero_point};
use super::quantize::{quantize_to_range, round_to_dtype};
use super::window::average_pool;
use super::{Operator, operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("com.microsoft:DynamicQuantizeMatMul", dynamic_matmul),
    operator("com.microsoft:MatMulIntegerToFloat", |call| {
        let [a, b, a_scale, b_scale] = call.inputs()?;
        let (a, b) = ((a, a_scale, call.optional(4)), (b, b_scale, call.optional(5)));
        let bias = call.optional(6);
        Ok(vec![matmul_integer_to_float(call, a, b, bias)?])
    }),
    operator("com.microsoft:QGemm", gemm),
    operator("com.microsoft:QLinearAdd", |call| {
        let (x, y) = (read_dequantized(call, 0)?, read_dequantized(call, 3)?);
        let sum = call.graph().add(x, y)?;
        write_quantized(call, sum, 6)
    }),
    operator("com.microsoft:QLinearAveragePool", |call| pool(call, average_pool)),
    operator("com.microsoft:QLinearConcat", concatenate),
    operator("com.microsoft:QLinearGlobalAveragePool", |call| {
        pool(call, |call, x| {
            let axes: Vec<i64> = (2..to_i64(call.rank(x))).collect();
            Ok(call.graph().mean(x, Some(&axes), true)?)
        })
    }),
    operator("com.microsoft:QLinearLeakyRelu", |call| {
        let (x, alpha) = (read_dequantized(call, 0)?, call.float("alpha", 0.01)?);
        let result = call.graph().leaky_relu(x, alpha)?;
        write_quantized(call, result, 3)
    }),
    operator("com.microsoft:QLinearMul", |call| {
        let (x, y) = (read_dequantized(call, 0)?, read_dequantized(call, 3)?);
        let product = call.graph().multiply(x, y)?;
        write_quantized(call, product, 6)
    }),
    operator("com.microsoft:QLinearSigmoid", |call| {
        let x = read_dequantized(call, 0)?;
        let result = call.graph().sigmoid(x)?;
        write_quantized(call, result, 3)
    }),
    operator("com.microsoft:QLinearSoftmax", |call| {
        let (x, axis, version) =
            (read_dequantized(call, 0)?, call.int("axis", -1)?, call.int("opset", 13)?);
        let result = map_along_axis(call, x, axis, version < 13, |graph, x, axis| {
            Ok(graph.softmax(x, axis)?)
        })?;
        write_quantized(call, result, 3)
    }),
];

/// Returns a scale or zero point, which must be one number, as a scalar.
fn scalar(call: &mut Call<'_, '_, '_>, parameter: ExprId, name: &str) -> Built<ExprId> {
    if call.shape(parameter).size() != 1 {
        let found = call.ty(parameter);
        return unsupported(format!("{name}: must be one number; got {found}"));
    }
    along_axis(call, parameter, 1)
}

/// Returns the numbers of an input whose scale and zero point are the next inputs.
fn read_dequantized(call: &mut Call<'_, '_, '_>, index: usize) -> Built<ExprId> {
    let (x, scale, zero) = (call.input(index)?, call.input(index + 1)?, call.optional(index + 2));
    let scale = scalar(call, scale, &format!("input {}", index + 1))?;
    let zero = zero.map(|zero| scalar(call, zero, &format!("input {}", index + 2))).transpose()?;
    let wide = subtract_zero_point(call, x, zero, 1)?;
    let formula = Formula::new(call.graph());
    let [wide, scale] = formula.terms([wide, scale]);
    Ok((wide.as_type(DType::F32) * scale.as_type(DType::F32)).id()?)
}

/// Quantizes a result with the scale and zero point that are inputs. Without a zero point, the result
/// has the dtype of the first input.
fn write_quantized(
    call: &mut Call<'_, '_, '_>,
    result: ExprId,
    index: usize,
) -> Built<Vec<ExprId>> {
    let (scale, zero) = (call.input(index)?, call.optional(index + 1));
    let dtype = call.dtype(match zero {
        Some(zero) => zero,
        None => call.input(0)?,
    });
    let scale = scalar(call, scale, &format!("input {index}"))?;
    let zero = zero.map(|zero| scalar(call, zero, &format!("input {}", index + 1))).transpose()?;
    let scaled = call.graph().divide(result, scale)?;
    Ok(vec![round_to_dtype(call, scaled, zero, dtype)?])
}

/// Applies a function of `[batch, channels, …]` to numbers that may have their channels last.
fn pool(
    call: &mut Call<'_, '_, '_>,
    function: impl FnOnce(&mut Call<'_, '_, '_>, ExprId) -> Built<ExprId>,
) -> Built<Vec<ExprId>> {
    let mut x = read_dequantized(call, 0)?;
    if call.rank(x) < 3 {
        return invalid(format!("X: must have spatial axes; got {}", call.ty(x)));
    }
    let is_last = call.flag("channels_last", false)?;
    if is_last {
        x = call.graph().move_axes(x, &[-1], &[1])?;
    }
    let mut result = function(call, x)?;
    if is_last {
        result = call.graph().move_axes(result, &[1], &[-1])?;
    }
    write_quantized(call, result, 3)
}

/// The inputs are the scale and zero point of the result, and then each part with its own.
fn concatenate(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let mut parts = Vec::new();
    for index in (2..call.inputs.len()).step_by(3) {
        parts.push(read_dequantized(call, index)?);
    }
    let zero = call.input(1)?;
    let (scale, dtype) = (call.input(0)?, call.dtype(zero));
    let scale = scalar(call, scale, "Y_scale")?;
    let zero = scalar(call, zero, "Y_zero_point")?;
    let axis = call.int("axis", 0)?;
    let graph = call.graph();
    let all = graph.concatenate(&parts, axis)?;
    let scaled = graph.divide(all, scale)?;
    Ok(vec![round_to_dtype(call, scaled, Some(zero), dtype)?])
}

/// A matrix of integers with its scale and its zero point.
type Quantized = (ExprId, ExprId, Option<ExprId>);

/// Subtracts the zero points of the operands of a product, and returns the differences and the product
/// of the scales. The second matrix may have a scale and a zero point for each column.
fn read_operands(
    call: &mut Call<'_, '_, '_>,
    (a, a_scale, a_zero): Quantized,
    (b, b_scale, b_zero): Quantized,
) -> Built<[ExprId; 3]> {
    let a_scale = scalar(call, a_scale, "scale of the first matrix")?;
    let a_zero = a_zero.map(|zero| scalar(call, zero, "zero point of the first matrix"));
    let a = subtract_zero_point(call, a, a_zero.transpose()?, 1)?;
    let b = subtract_zero_point(call, b, b_zero, 1)?;
    let b_scale = along_axis(call, b_scale, 1)?;
    let scale = call.graph().multiply(a_scale, b_scale)?;
    Ok([a, b, scale])
}

/// Returns the product of integers times their scales plus an optional bias, in the dtype of the
/// scales.
pub(super) fn matmul_integer_to_float(
    call: &mut Call<'_, '_, '_>,
    a: Quantized,
    b: Quantized,
    bias: Option<ExprId>,
) -> Built<ExprId> {
    let [a, b, scale] = read_operands(call, a, b)?;
    let graph = call.graph();
    let product = graph.matmul(a, b)?;
    let formula = Formula::new(graph);
    let [product, scale] = formula.terms([product, scale]);
    let mut result = product.as_type(DType::F32) * scale;
    if let Some(bias) = bias {
        result = result + formula.term(bias);
    }
    Ok(result.as_type(scale.dtype()).id()?)
}

/// Quantizes the first matrix to bytes whose scale fits its range.
fn dynamic_matmul(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [a, b, b_scale] = call.inputs()?;
    let b_zero = call.optional(3);
    let [integers, scale, zero] = quantize_to_range(call, a)?;
    let bias = call.optional(4);
    let a = (integers, scale, Some(zero));
    Ok(vec![matmul_integer_to_float(call, a, (b, b_scale, b_zero), bias)?])
}

/// Returns `alpha (op(a) op(b) + c)`, quantized if the result has a scale. `c` has the scale of the
/// product.
fn gemm(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let (mut a, mut b) = (call.input(0)?, call.input(3)?);
    let (a_scale, a_zero) = (call.input(1)?, call.optional(2));
    let (b_scale, b_zero) = (call.input(4)?, call.optional(5));
    for (x, name) in [(&mut a, "transA"), (&mut b, "transB")] {
        if call.flag(name, false)? {
            *x = call.graph().transpose(*x, None)?;
        }
    }
    let alpha = call.float("alpha", 1.0)?;
    let [a, b, scale] = read_operands(call, (a, a_scale, a_zero), (b, b_scale, b_zero))?;
    let c = call.optional(6);
    let graph = call.graph();
    let mut sums = graph.dot(a, b)?;
    if let Some(c) = c {
        sums = graph.add(sums, c)?;
    }
    let formula = Formula::new(graph);
    let [sums, scale] = formula.terms([sums, scale]);
    let result = (sums.as_type(DType::F32) * (scale * alpha)).id()?;
    if call.optional(7).is_none() {
        return Ok(vec![result]);
    }
    write_quantized(call, result, 7)
}
