//! Reductions: sums and extrema, positions of extrema, and folds with a user's function.

use nxla_expr::{ArgReduce, ArgReduceOp, Op, Reduce, ReduceFun, ReduceOp, TensorType};
use nxla_tensor::{DType, Scalar, Shape};
use smallvec::SmallVec;

use crate::context::Cx;
use crate::error::Result;
use crate::fold;
use crate::region::Source;
use crate::widen;
use crate::writer::{Value, Values};

pub(crate) fn lower<'a>(
    cx: &mut Cx<'a>,
    op: &'a Op,
    operands: &[Source],
    ty: &TensorType,
) -> Result<Value> {
    match op {
        Op::Reduce(op, attributes) => uniform(cx, *op, attributes, operands[0], ty),
        Op::ArgReduce(op, attributes) => arg_reduce(cx, *op, attributes, operands[0], ty),
        Op::ReduceFun(attributes) => reduce_fun(cx, attributes, operands, ty),
        op @ nxla_expr::outside!(reduce) => unreachable!("{} is of another family", op.name()),
    }
}

/// Returns the op that combines elements, the value that it ignores, and the dtype of the accumulator for a result of
/// a dtype.
pub(crate) fn accumulation(op: ReduceOp, result: DType) -> (&'static str, Scalar, DType) {
    match op {
        ReduceOp::Sum => ("stablehlo.add", Scalar::UInt(0), widen::accumulator(result)),
        ReduceOp::Product => ("stablehlo.multiply", Scalar::UInt(1), widen::accumulator(result)),
        ReduceOp::All => ("stablehlo.and", Scalar::UInt(1), DType::Pred),
        ReduceOp::Any => ("stablehlo.or", Scalar::UInt(0), DType::Pred),
        ReduceOp::Max => ("stablehlo.maximum", result.min_value(), widen::storage(result)),
        ReduceOp::Min => ("stablehlo.minimum", result.max_value(), widen::storage(result)),
    }
}

fn uniform(
    cx: &mut Cx<'_>,
    op: ReduceOp,
    attributes: &Reduce,
    x: Source,
    ty: &TensorType,
) -> Result<Value> {
    let (name, neutral, compute) = accumulation(op, ty.dtype);
    let x = cx.cast(x, compute);
    let axes = attributes.axes_of(cx.shape(x.ty).rank());
    let result = cx.reduce_by(name, neutral, x, &axes)?;
    let result = cx.reshape(result, &ty.shape);
    Ok(cx.convert(result, ty.dtype))
}

/// Carries the extremum and its position along. The order in which pairs are compared is not
/// defined, so ties are decided by the positions themselves.
fn arg_reduce(
    cx: &mut Cx<'_>,
    op: ArgReduceOp,
    attributes: &ArgReduce,
    x: Source,
    ty: &TensorType,
) -> Result<Value> {
    let mut x = cx.value(x);
    let compute = widen::comparison(cx.dtype(x.ty));
    x = cx.convert(x, compute);
    let axis = attributes.axis.unwrap_or(0);
    if attributes.axis.is_none() {
        let flat = Shape::from([cx.shape(x.ty).size()]);
        x = cx.reshape(x, &flat);
    }
    let shape = cx.shape(x.ty).clone();
    let index = widen::index(shape[axis]);
    let positions = cx.iota(axis, index, &shape);
    let worst = match op {
        ArgReduceOp::Argmax => compute.min_value(),
        ArgReduceOp::Argmin => compute.max_value(),
    };
    // This initial position loses every tie.
    let nowhere = if attributes.tie_high { Scalar::Int(-1) } else { index.max_value() };
    let initial =
        [cx.splat(worst, compute, &Shape::scalar()), cx.splat(nowhere, index, &Shape::scalar())];
    let results = cx.reduce(&[x, positions], &initial, &[axis], |cx, left, right| {
        Ok(better(cx, op, attributes.tie_high, left, right))
    })?;
    let result = cx.reshape(results[1], &ty.shape);
    Ok(cx.convert(result, ty.dtype))
}

/// Selects one of two pairs of a value and its position: the pair with NaN, or else the pair with
/// the more extreme value.
fn better(
    cx: &mut Cx<'_>,
    op: ArgReduceOp,
    tie_high: bool,
    left: &[Value],
    right: &[Value],
) -> Values {
    let beats = match op {
        ArgReduceOp::Argmax => "GT",
        ArgReduceOp::Argmin => "LT",
    };
    let is_float = cx.dtype(left[0].ty).is_float();
    let mut left_wins = cx.compare(beats, left[0], right[0]);
    let mut ties = cx.compare("EQ", left[0], right[0]);
    if is_float {
        let left_nan = cx.compare("NE", left[0], left[0]);
        let right_nan = cx.compare("NE", right[0], right[0]);
        let both_nan = cx.uniform("stablehlo.and", &[left_nan, right_nan]);
        left_wins = cx.uniform("stablehlo.or", &[left_wins, left_nan]);
        ties = cx.uniform("stablehlo.or", &[ties, both_nan]);
    }
    let before = cx.compare(if tie_high { "GT" } else { "LT" }, left[1], right[1]);
    // In a tie, the position decides.
    let takes_left = cx.select(ties, before, left_wins);
    let value = cx.select(takes_left, left[0], right[0]);
    let position = cx.select(takes_left, left[1], right[1]);
    Values::from_slice(&[value, position])
}

fn reduce_fun<'a>(
    cx: &mut Cx<'a>,
    attributes: &'a ReduceFun,
    operands: &[Source],
    ty: &TensorType,
) -> Result<Value> {
    let (x, initial) = (cx.value(operands[0]), cx.value(operands[1]));
    let function = fold::Function { program: &attributes.function, captures: operands[2..].into() };
    // The reduced axes come first, and become one.
    let shape = cx.shape(x.ty).clone();
    let axes = &attributes.reduce.axes_of(shape.rank());
    let kept = (0..shape.rank()).filter(|axis| !axes.contains(axis));
    let permutation: SmallVec<[usize; 8]> = axes.iter().copied().chain(kept).collect();
    let height = shape.size_along(axes.iter().copied());
    let rows = Shape::from([height, ty.shape.size()]);
    let x = cx.transpose(x, &permutation);
    let x = cx.reshape(x, &rows);
    let result = fold::rows(cx, x, initial, &function)?;
    Ok(cx.reshape(result, &ty.shape))
}
