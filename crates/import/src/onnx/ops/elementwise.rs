//! Arithmetic, comparisons, logic and conversions, element by element.

use nxla_expr::{BinaryOp, ExprId, Graph, UnaryOp};
use nxla_tensor::DType;

use super::{Operator, operator};
use crate::onnx::error::{Built, Fault};
use crate::onnx::node::Call;
use crate::onnx::tensors::dtype_of;

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

const UNARY: &[Operator] = unary!(
    "Abs" Abs, "Acos" Acos, "Acosh" Acosh, "Asin" Asin, "Asinh" Asinh, "Atan" Atan, "Atanh" Atanh,
    "BitwiseNot" BitwiseNot, "Ceil" Ceil, "Cos" Cos, "Cosh" Cosh, "Erf" Erf, "Exp" Exp,
    "Floor" Floor, "IsNaN" IsNan, "Log" Log, "Neg" Negate, "Not" LogicalNot, "Round" RoundEven,
    "Sigmoid" Sigmoid, "Sign" Sign, "Sin" Sin, "Sinh" Sinh, "Sqrt" Sqrt, "Tan" Tan, "Tanh" Tanh,
);

const BINARY: &[Operator] = binary!(
    "Add" Add, "And" LogicalAnd, "BitwiseAnd" BitwiseAnd, "BitwiseOr" BitwiseOr,
    "BitwiseXor" BitwiseXor, "Equal" Equal, "Greater" Greater, "GreaterOrEqual" GreaterEqual,
    "Less" Less, "LessOrEqual" LessEqual, "Mul" Multiply, "Or" LogicalOr, "Sub" Subtract,
    "Xor" LogicalXor,
);

const OTHER: &[Operator] = &[
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
    operator("Where", |call| {
        let [condition, x, y] = call.inputs()?;
        Ok(vec![call.graph().select(condition, x, y)?])
    }),
];

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &{
    const COUNT: usize = UNARY.len() + BINARY.len() + OTHER.len();
    const LISTS: [&[Operator]; 3] = [UNARY, BINARY, OTHER];
    let mut all = [const { operator("Identity", identity) }; COUNT];
    let (mut list, mut index, mut count) = (0, 0, 0);
    while list < LISTS.len() {
        while index < LISTS[list].len() {
            all[count] =
                Operator { name: LISTS[list][index].name, build: LISTS[list][index].build };
            index += 1;
            count += 1;
        }
        list += 1;
        index = 0;
    }
    all
};

fn identity(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    Ok(vec![call.input(0)?])
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
    #[expect(clippy::cast_precision_loss, reason = "a number of inputs")]
    let count = call.scalar(call.inputs.len() as f64, sum)?;
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
    Ok(vec![match call.flag("fmod")? {
        true => call.graph().remainder(x, y)?,
        false => call.graph().floor_remainder(x, y)?,
    }])
}

/// The result has the dtype of the base.
fn power(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, y] = call.inputs()?;
    let (dtype, graph) = (call.dtype(x), call.graph());
    let result = graph.pow(x, y)?;
    Ok(vec![graph.as_type(result, dtype)?])
}

fn bit_shift(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, y] = call.inputs()?;
    match call.text("direction", "")?.as_str() {
        "LEFT" => Ok(vec![call.graph().left_shift(x, y)?]),
        "RIGHT" => Ok(vec![call.graph().right_shift(x, y)?]),
        other => Err(Fault(format!("direction: must be LEFT or RIGHT; got {other:?}"))),
    }
}

fn is_infinite(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let (negative, positive) = (call.int("detect_negative", 1)?, call.int("detect_positive", 1)?);
    let zero = call.scalar(0.0, x)?;
    let graph = call.graph();
    let infinite = graph.is_infinity(x)?;
    let sign = match (negative != 0, positive != 0) {
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

fn cast(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let dtype = dtype_of(call.int("to", 0)?).map_err(|why| Fault(format!("to: {why}")))?;
    let saturates = call.int("saturate", 1)? != 0;
    Ok(vec![convert(call.graph(), x, dtype, saturates)?])
}

fn cast_like(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, like] = call.inputs()?;
    let (dtype, saturates) = (call.dtype(like), call.int("saturate", 1)? != 0);
    Ok(vec![convert(call.graph(), x, dtype, saturates)?])
}

fn bit_cast(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let dtype = dtype_of(call.int("to", 0)?).map_err(|why| Fault(format!("to: {why}")))?;
    Ok(vec![call.graph().bitcast(x, dtype)?])
}

/// Converts to a dtype. A number beyond the range of an 8-bit float becomes its largest number if
/// the conversion saturates.
pub(super) fn convert(
    graph: &mut Graph,
    x: ExprId,
    dtype: DType,
    saturates: bool,
) -> Built<ExprId> {
    let from = graph.dtype(x);
    if dtype.is_pred() {
        let zero = graph.zero_like(x)?;
        return Ok(graph.not_equal(x, zero)?);
    }
    let largest = match dtype {
        DType::F8E4M3FN => Some(448.0),
        DType::F8E5M2 => Some(57344.0),
        _ => None,
    };
    let mut x = x;
    if let (Some(largest), true, true) = (largest, saturates, from.is_float() && from != dtype) {
        let wide = from.at_least_f32();
        x = graph.as_type(x, wide)?;
        let high = graph.scalar_constant(nxla_tensor::Scalar::Float(largest), wide)?;
        let low = graph.scalar_constant(nxla_tensor::Scalar::Float(-largest), wide)?;
        x = graph.clip(x, low, high)?;
    }
    Ok(graph.as_type(x, dtype)?)
}
