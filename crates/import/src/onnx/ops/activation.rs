//! Activation functions.

use nxla_expr::{BinaryOp, ExprId, Graph};
use nxla_tensor::Shape;

use super::{Operator, operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// Defines a row whose body is an expression over the graph, the input and attributes.
macro_rules! activation {
    ($name:literal, |$graph:ident, $x:ident $(, $attribute:ident = $default:literal)*| $body:expr) => {
        operator($name, |call| {
            let $x = call.input(0)?;
            $(let $attribute = call.float(stringify!($attribute), $default)?;)*
            let $graph = call.graph();
            Ok(vec![$body])
        })
    };
}

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    activation!("Celu", |graph, x, alpha = 1.0| graph.celu(x, alpha)?),
    activation!("Elu", |graph, x, alpha = 1.0| graph.elu(x, alpha)?),
    activation!("HardSwish", |graph, x| graph.hard_silu(x)?),
    activation!("LeakyRelu", |graph, x, alpha = 0.01| graph.leaky_relu(x, alpha)?),
    activation!("Mish", |graph, x| graph.mish(x)?),
    activation!("Softplus", |graph, x| graph.softplus(x)?),
    activation!("Softsign", |graph, x| graph.soft_sign(x)?),
    activation!("com.microsoft:Gelu", |graph, x| graph.gelu(x, false)?),
    operator("com.microsoft:BiasGelu", |call| biased_gelu(call, false)),
    operator("com.microsoft:FastGelu", |call| biased_gelu(call, true)),
    operator("Gelu", |call| {
        let x = call.input(0)?;
        let is_approximate = match call.text("approximate", "none")?.as_str() {
            "none" => false,
            "tanh" => true,
            other => {
                let why = format!("approximate: must be none or tanh; got {other:?}");
                return invalid(why);
            }
        };
        Ok(vec![call.graph().gelu(x, is_approximate)?])
    }),
    operator("HardSigmoid", |call| {
        let x = call.input(0)?;
        let (alpha, beta) = (call.float("alpha", 0.2)?, call.float("beta", 0.5)?);
        Ok(vec![hard_sigmoid(call, x, alpha, beta)?])
    }),
    operator("Hardmax", |call| map_input(call, hardmax)),
    operator("LogSoftmax", |call| {
        map_input(call, |graph, x, axis| Ok(graph.log_softmax(x, axis)?))
    }),
    operator("PRelu", prelu),
    operator("Relu", |call| {
        let x = call.input(0)?;
        Ok(vec![relu(call, x)?])
    }),
    operator("Selu", selu),
    operator("Shrink", shrink),
    operator("Softmax", softmax),
    operator("SwiGLU", |call| {
        let [gate, value] = call.inputs()?;
        let gate = swish(call, gate, 1.0)?;
        Ok(vec![call.graph().multiply(gate, value)?])
    }),
    operator("Swish", |call| {
        let x = call.input(0)?;
        Ok(vec![swish(call, x, 1.0)?])
    }),
    operator("com.microsoft:QuickGelu", |call| {
        let x = call.input(0)?;
        Ok(vec![swish(call, x, 1.702)?])
    }),
    operator("ThresholdedRelu", |call| {
        let x = call.input(0)?;
        let alpha = call.float("alpha", 1.0)?;
        Ok(vec![thresholded_relu(call, x, alpha, BinaryOp::Greater)?])
    }),
];

/// Adds the bias, if there is one, before the activation.
fn biased_gelu(call: &mut Call<'_, '_, '_>, is_approximate: bool) -> Built<Vec<ExprId>> {
    let (mut x, bias) = (call.input(0)?, call.optional(1));
    if let Some(bias) = bias {
        x = call.graph().add(x, bias)?;
    }
    Ok(vec![call.graph().gelu(x, is_approximate)?])
}

pub(super) fn relu(call: &mut Call<'_, '_, '_>, x: ExprId) -> Built<ExprId> {
    if call.dtype(x).is_float() {
        return Ok(call.graph().relu(x)?);
    }
    let zero = call.scalar(0.0, x)?;
    Ok(call.graph().max(x, zero)?)
}

/// Returns the elements whose comparison with `alpha` is true, and zeros. The operator passes elements
/// above `alpha`; the activation of recurrent layers also passes elements equal to `alpha`.
pub(super) fn thresholded_relu(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    alpha: f64,
    comparison: BinaryOp,
) -> Built<ExprId> {
    let (limit, zero) = (call.scalar(alpha, x)?, call.scalar(0.0, x)?);
    let graph = call.graph();
    let passes = graph.binary(comparison, x, limit)?;
    Ok(graph.select(passes, x, zero)?)
}

/// Returns `alpha x + beta`, limited to the range from 0 to 1.
pub(super) fn hard_sigmoid(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    alpha: f64,
    beta: f64,
) -> Built<ExprId> {
    let (alpha, beta) = (call.scalar(alpha, x)?, call.scalar(beta, x)?);
    let (zero, one) = (call.scalar(0.0, x)?, call.scalar(1.0, x)?);
    let graph = call.graph();
    let scaled = graph.multiply(x, alpha)?;
    let line = graph.add(scaled, beta)?;
    Ok(graph.clip(line, zero, one)?)
}

/// Returns `x sigmoid(alpha x)`.
fn swish(call: &mut Call<'_, '_, '_>, x: ExprId, default: f64) -> Built<ExprId> {
    let alpha = call.float("alpha", default)?;
    let alpha = call.scalar(alpha, x)?;
    let graph = call.graph();
    let scaled = graph.multiply(x, alpha)?;
    let gate = graph.sigmoid(scaled)?;
    Ok(graph.multiply(x, gate)?)
}

fn prelu(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, slope] = call.inputs()?;
    let zero = call.scalar(0.0, x)?;
    let graph = call.graph();
    let (is_negative, below) = (graph.less(x, zero)?, graph.multiply(x, slope)?);
    Ok(vec![graph.select(is_negative, below, x)?])
}

fn selu(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let (alpha, gamma) = (call.float("alpha", 1.673_263_2)?, call.float("gamma", 1.050_701)?);
    let gamma = call.scalar(gamma, x)?;
    let graph = call.graph();
    let curve = graph.elu(x, alpha)?;
    Ok(vec![graph.multiply(curve, gamma)?])
}

/// Moves numbers beyond a threshold toward zero by `bias`; other numbers become zero. The attributes
/// are converted to the dtype of the input, which truncates them for integers.
fn shrink(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let (mut threshold, mut bias) = (call.float("lambd", 0.5)?, call.float("bias", 0.0)?);
    if call.dtype(x).is_integer() {
        (threshold, bias) = (threshold.trunc(), bias.trunc());
    }
    let (high, low) = (call.scalar(threshold, x)?, call.scalar(-threshold, x)?);
    let (bias, zero) = (call.scalar(bias, x)?, call.scalar(0.0, x)?);
    let graph = call.graph();
    let (above, below) = (graph.greater(x, high)?, graph.less(x, low)?);
    let (less, more) = (graph.subtract(x, bias)?, graph.add(x, bias)?);
    let inner = graph.select(below, more, zero)?;
    Ok(vec![graph.select(above, less, inner)?])
}

/// Applies a function of a tensor and an axis to the axis of the node. Until version 12, the axes from
/// this axis on count as one.
fn map_input(
    call: &mut Call<'_, '_, '_>,
    function: impl Fn(&mut Graph, ExprId, i64) -> Built<ExprId>,
) -> Built<Vec<ExprId>> {
    let merges = call.version < 13;
    let (x, axis) = (call.input(0)?, call.int("axis", if merges { 1 } else { -1 })?);
    Ok(vec![map_along_axis(call, x, axis, merges, function)?])
}

/// Applies a function of a tensor and an axis. With `merges`, the axes from the axis on count as one.
pub(super) fn map_along_axis(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    axis: i64,
    merges: bool,
    function: impl Fn(&mut Graph, ExprId, i64) -> Built<ExprId>,
) -> Built<ExprId> {
    let shape = call.shape(x);
    let axis = call.axis(axis, shape.rank())?;
    let graph = call.graph();
    let (mut y, at) = (x, to_i64(axis));
    let is_last = axis + 1 == shape.rank();
    if merges && !is_last {
        let (rows, columns) = (Shape::from(&shape[..axis]), Shape::from(&shape[axis..]));
        y = graph.reshape(y, [rows.size(), columns.size()])?;
    }
    let y = function(graph, y, if merges { -1 } else { at })?;
    Ok(graph.reshape(y, shape)?)
}

fn softmax(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let outputs = map_input(call, |graph, x, axis| Ok(graph.softmax(x, axis)?))?;
    if call.version >= 13 {
        let (x, axis) = (call.input(0)?, call.int("axis", -1)?);
        call.importer.softmaxes.insert(outputs[0], (x, axis));
    }
    Ok(outputs)
}

/// Returns a softmax with a value in all elements of the rows in which `is_replaced` is true. The
/// logits of these rows become zeros first: the derivative of a softmax of `-inf` is NaN, and the
/// gradient of the replacement would multiply it by zero.
pub(super) fn softmax_with_replacement(
    call: &mut Call<'_, '_, '_>,
    (logits, axis): (ExprId, i64),
    is_replaced: ExprId,
    replacement: ExprId,
) -> Built<ExprId> {
    let zero = call.scalar(0.0, logits)?;
    let graph = call.graph();
    let safe = graph.select(is_replaced, zero, logits)?;
    let weights = graph.softmax(safe, axis)?;
    Ok(graph.select(is_replaced, replacement, weights)?)
}

/// Marks the first largest element along an axis by a one.
fn hardmax(graph: &mut Graph, x: ExprId, axis: i64) -> Built<ExprId> {
    let (ty, index) = (graph.tensor_type(x).clone(), nxla_tensor::DType::S64);
    let largest = graph.argmax(x, Some(axis), true, false, index)?;
    let places = graph.iota(ty.shape, Some(axis), index)?;
    let is_largest = graph.equal(places, largest)?;
    Ok(graph.as_type(is_largest, ty.dtype)?)
}
