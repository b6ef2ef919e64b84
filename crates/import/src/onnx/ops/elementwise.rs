//! Arithmetic, comparisons, logic and conversions, element by element.

use nxla_expr::{BinaryOp, ExprId, Graph, Op, UnaryOp};
use nxla_tensor::DType;

use super::activation::softmax_with_replacement;
use super::{Operator, operator};
use crate::float8::to_float8;
use crate::numbers::to_f64;
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

macro_rules! unary {
    ($($name:literal $op:ident),* $(,)?) => {
        &[$(operator($name, |call| {
            let x = call.input(0)?;
            Ok(vec![call.graph().unary(UnaryOp::$op, x)?])
        })),*]
    };
}

macro_rules! binary {
    ($($name:literal $op:ident),* $(,)?) => {
        &[$(operator($name, |call| {
            let [x, y] = call.inputs()?;
            Ok(vec![call.graph().binary(BinaryOp::$op, x, y)?])
        })),*]
    };
}

/// The operators on one tensor.
pub(super) const UNARY: &[Operator] = unary!(
    "Abs" Abs, "Acos" Acos, "Acosh" Acosh, "Asin" Asin, "Asinh" Asinh, "Atan" Atan, "Atanh" Atanh,
    "BitwiseNot" BitwiseNot, "Ceil" Ceil, "Cos" Cos, "Cosh" Cosh, "Erf" Erf, "Exp" Exp,
    "Floor" Floor, "IsNaN" IsNan, "Log" Log, "Neg" Negate, "Not" LogicalNot, "Round" RoundEven,
    "Sigmoid" Sigmoid, "Sign" Sign, "Sin" Sin, "Sinh" Sinh, "Sqrt" Sqrt, "Tan" Tan, "Tanh" Tanh,
);

/// The operators on two tensors.
pub(super) const BINARY: &[Operator] = binary!(
    "Add" Add, "And" LogicalAnd, "BitwiseAnd" BitwiseAnd, "BitwiseOr" BitwiseOr,
    "BitwiseXor" BitwiseXor, "Equal" Equal, "Greater" Greater, "GreaterOrEqual" GreaterEqual,
    "Less" Less, "LessOrEqual" LessEqual, "Mul" Multiply, "Or" LogicalOr, "Sub" Subtract,
    "Xor" LogicalXor,
);

/// Further operators of this family.
pub(super) const OTHER: &[Operator] = &[
    operator("BitShift", bit_shift),
    operator("Cast", cast),
    operator("CastLike", cast_like),
    operator("BitCast", bit_cast),
    operator("Clip", clip),
    operator("Div", divide),
    operator("IsInf", is_infinite),
    operator("Max", |call| fold(call, BinaryOp::Max)),
    operator("Mean", mean),
    operator("Min", |call| fold(call, BinaryOp::Min)),
    operator("Mod", modulo),
    operator("Pow", power),
    operator("Reciprocal", |call| {
        let x = call.input(0)?;
        Ok(vec![call.graph().reciprocal(x)?])
    }),
    operator("Sum", |call| fold(call, BinaryOp::Add)),
    operator("Where", choose),
];

/// Selects elements. PyTorch replaces the NaN of queries that may read no key:
/// `Where(IsNaN(weights), 0, weights)` for the weights `Softmax(logits)`.
fn choose(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [condition, x, y] = call.inputs()?;
    let graph = call.graph();
    let is_replaced_nan = matches!(graph.op(condition), Op::Unary(UnaryOp::IsNan))
        && graph.operands(condition) == [y]
        && graph.shape(x).size() == 1
        && graph.shape(x).rank() <= graph.shape(y).rank();
    let Some(&(logits, axis)) = call.importer.softmaxes.get(&y).filter(|_| is_replaced_nan) else {
        return Ok(vec![call.graph().select(condition, x, y)?]);
    };
    // A row of the softmax is NaN exactly if its largest logit is not finite.
    let graph = call.graph();
    let largest = graph.reduce_max(logits, Some(&[axis]), true)?;
    let is_finite = graph.is_finite(largest)?;
    let is_nan = graph.logical_not(is_finite)?;
    Ok(vec![softmax_with_replacement(call, (logits, axis), is_nan, x)?])
}

fn fold(call: &mut Call<'_, '_, '_>, op: BinaryOp) -> Built<Vec<ExprId>> {
    let mut result = call.input(0)?;
    for x in call.inputs_from(1)? {
        result = call.graph().binary(op, result, x)?;
    }
    Ok(vec![result])
}

fn mean(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let sum = fold(call, BinaryOp::Add)?[0];
    let count = call.scalar(to_f64(call.inputs.len()), sum)?;
    Ok(vec![call.graph().divide(sum, count)?])
}

/// Integers are divided toward zero.
fn divide(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, y] = call.inputs()?;
    let op = if call.dtype(x).is_integer() { BinaryOp::Quotient } else { BinaryOp::Divide };
    Ok(vec![call.graph().binary(op, x, y)?])
}

fn modulo(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, y] = call.inputs()?;
    Ok(vec![if call.flag("fmod", false)? {
        call.graph().remainder(x, y)?
    } else {
        call.graph().floor_remainder(x, y)?
    }])
}

/// The result has the dtype of the base.
fn power(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [mut x, y] = call.inputs()?;
    let (dtype, exponent) = (call.dtype(x), call.dtype(y));
    let graph = call.graph();
    if dtype.is_integer() && exponent.is_float() {
        // The promoted dtype can be `f32`, which does not represent all integers of 32 bits.
        x = graph.as_type(x, DType::F64)?;
    }
    let result = graph.pow(x, y)?;
    Ok(vec![graph.as_type(result, dtype)?])
}

fn bit_shift(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, y] = call.inputs()?;
    match call.text("direction", "")?.as_str() {
        "LEFT" => Ok(vec![call.graph().left_shift(x, y)?]),
        "RIGHT" => Ok(vec![call.graph().right_shift(x, y)?]),
        other => invalid(format!("direction: must be LEFT or RIGHT; got {other:?}")),
    }
}

fn is_infinite(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let negative = call.flag("detect_negative", true)?;
    let positive = call.flag("detect_positive", true)?;
    let zero = call.scalar(0.0, x)?;
    let graph = call.graph();
    let infinite = graph.is_infinity(x)?;
    let sign = match (negative, positive) {
        (true, true) => return Ok(vec![infinite]),
        (true, false) => graph.less(x, zero)?,
        (false, true) => graph.greater(x, zero)?,
        (false, false) => graph.not_equal(zero, zero)?,
    };
    Ok(vec![graph.logical_and(infinite, sign)?])
}

/// The limits are inputs, or attributes in old operator sets.
fn clip(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let mut x = call.input(0)?;
    for (index, name, op) in [(1, "min", BinaryOp::Max), (2, "max", BinaryOp::Min)] {
        let limit = match (call.optional(index), call.maybe_float(name)?) {
            (Some(limit), _) => limit,
            (None, Some(limit)) => call.scalar(limit, x)?,
            (None, None) => continue,
        };
        x = call.graph().binary(op, x, limit)?;
    }
    Ok(vec![x])
}

fn target(call: &Call<'_, '_, '_>) -> Built<DType> {
    call.data_type("to")?.ok_or_else(|| "to: must not be missing".into())
}

fn cast(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let dtype = target(call)?;
    let saturates = call.flag("saturate", true)?;
    Ok(vec![convert(call.graph(), x, dtype, saturates)?])
}

fn cast_like(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, like] = call.inputs()?;
    let (dtype, saturates) = (call.dtype(like), call.flag("saturate", true)?);
    Ok(vec![convert(call.graph(), x, dtype, saturates)?])
}

fn bit_cast(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let dtype = target(call)?;
    Ok(vec![call.graph().bitcast(x, dtype)?])
}

/// Converts to a dtype. A number beyond the range of an 8-bit float becomes its largest number if
/// the conversion saturates, and otherwise infinite or NaN. Floats become integers of fewer than
/// 32 bits and `u32` through wider signed integers, whose low bits remain: -1.5 becomes 255 in `u8`, as
/// in ONNX Runtime, PyTorch and NumPy. No wider signed integer exists for `u64`.
pub(super) fn convert(
    graph: &mut Graph,
    x: ExprId,
    dtype: DType,
    saturates: bool,
) -> Built<ExprId> {
    if dtype.is_pred() {
        let zero = graph.zero_like(x)?;
        return Ok(graph.not_equal(x, zero)?);
    }
    if matches!(dtype, DType::F8E4M3FN | DType::F8E5M2) {
        return Ok(to_float8(graph, x, dtype, saturates)?);
    }
    let mut x = x;
    if graph.dtype(x).is_float() && dtype.is_integer() {
        if dtype.bits() < 32 {
            x = graph.as_type(x, DType::S32)?;
        } else if dtype == DType::U32 {
            x = graph.as_type(x, DType::S64)?;
        }
    }
    Ok(graph.as_type(x, dtype)?)
}
