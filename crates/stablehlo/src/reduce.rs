//! Reductions: sums and extrema, positions of extrema, and folds with a user's function.

use nxla_expr::{ArgReduce, ArgReduceOp, Op, Reduce, ReduceFun, ReduceOp, TensorType};
use nxla_tensor::{DType, Scalar, Shape};
use smallvec::SmallVec;

use crate::context::Cx;
use crate::error::{LowerError, Result};
use crate::fold;
use crate::options::ShapeLimits;
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

fn reduced_axes(attributes: &Reduce, rank: usize) -> SmallVec<[usize; 8]> {
    match &attributes.axes {
        Some(axes) => SmallVec::from_slice(axes),
        None => (0..rank).collect(),
    }
}

fn uniform(
    cx: &mut Cx<'_>,
    op: ReduceOp,
    attributes: &Reduce,
    x: Source,
    ty: &TensorType,
) -> Result<Value> {
    let (name, neutral, compute) = match op {
        ReduceOp::Sum => ("stablehlo.add", Scalar::UInt(0), widen::accumulator(ty.dtype)),
        ReduceOp::Product => ("stablehlo.multiply", Scalar::UInt(1), widen::accumulator(ty.dtype)),
        ReduceOp::All => ("stablehlo.and", Scalar::UInt(1), DType::Pred),
        ReduceOp::Any => ("stablehlo.or", Scalar::UInt(0), DType::Pred),
        ReduceOp::Max => ("stablehlo.maximum", ty.dtype.min_value(), widen::stored(ty.dtype)),
        ReduceOp::Min => ("stablehlo.minimum", ty.dtype.max_value(), widen::stored(ty.dtype)),
    };
    let is_value = matches!(x, Source::Value(_));
    let mut x = cx.cast(x, compute);
    let mut axes = reduced_axes(attributes, cx.shape(x.ty).rank());
    let initial = cx.splat(neutral, compute, &Shape::scalar());
    let sum = |cx: &mut Cx<'_>, x: Value, axes: &[usize]| {
        let results = cx.reduce(&[x], &[initial], axes, |cx, accumulators, elements| {
            Ok(Values::from_slice(&[cx.uniform(name, &[accumulators[0], elements[0]])]))
        })?;
        Ok::<_, LowerError>(results[0])
    };
    if let Some(limits) = cx.options.shape_limits.filter(|_| is_value && compute == DType::F32) {
        let is_there = cx.takes_from_memory();
        let rows = Rows::of(cx.shape(x.ty), &axes, limits);
        if rows.length >= limits.least_row && !(is_there && rows.are_whole(limits)) {
            if !is_there {
                x = cx.barrier(x);
            }
            x = cx.reshape(x, &rows.shape);
            let last = rows.shape.rank() - 1;
            axes = if rows.others.is_empty() {
                SmallVec::from_slice(&[last])
            } else {
                let sums = sum(cx, x, &[last])?;
                x = cx.barrier(sums);
                rows.others
            };
        }
    }
    let result = sum(cx, x, &axes)?;
    let result = cx.reshape(result, &ty.shape);
    Ok(cx.convert(result, ty.dtype))
}

/// The last axes of a reduction as rows of at most [`ShapeLimits::most_row`] elements, or of a multiple of
/// that. Longer rows are cut into parts of equal length, if there is such a length.
struct Rows {
    /// Elements of the last axes, if these are reduced.
    length: usize,
    /// The operand with these axes as one of parts of a row, if there are several, and one of a part.
    shape: Shape,
    /// The axes of this shape that are reduced besides the last one.
    others: SmallVec<[usize; 8]>,
}

impl Rows {
    fn of(shape: &Shape, axes: &[usize], limits: ShapeLimits) -> Self {
        let is_reduced = |axis: &usize| axes.contains(axis);
        let kept = shape.rank() - (0..shape.rank()).rev().take_while(is_reduced).count();
        let length: usize = shape[kept..].iter().product();
        let part = part(length, limits).unwrap_or(length);
        let mut others: SmallVec<[usize; 8]> = (0..kept).filter(is_reduced).collect();
        let mut sizes: Vec<usize> = shape[..kept].to_vec();
        if part < length {
            others.push(kept);
            sizes.push(length / part);
        }
        sizes.push(part);
        Self { length, shape: sizes.into(), others }
    }

    /// Whether rows need no cut, or cannot be cut.
    fn are_whole(&self, limits: ShapeLimits) -> bool {
        self.length.is_multiple_of(limits.most_row) || self.shape.last() == Some(&self.length)
    }
}

/// Returns the length of the parts that a row is cut into: all of a short row, `None` if there is none.
fn part(length: usize, limits: ShapeLimits) -> Option<usize> {
    if length <= limits.most_row {
        Some(length)
    } else {
        (limits.least_row..=limits.most_row).rev().find(|&part| length.is_multiple_of(part))
    }
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
    let compute = widen::ordered(cx.dtype(x.ty));
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
    // A position that loses every tie.
    let nowhere = if attributes.tie_high { Scalar::Int(-1) } else { index.max_value() };
    let initial =
        [cx.splat(worst, compute, &Shape::scalar()), cx.splat(nowhere, index, &Shape::scalar())];
    let results = cx.reduce(&[x, positions], &initial, &[axis], |cx, left, right| {
        Ok(better(cx, op, attributes.tie_high, left, right))
    })?;
    let result = cx.reshape(results[1], &ty.shape);
    Ok(cx.convert(result, ty.dtype))
}

/// Of two pairs of a value and its position, the one with NaN or else the more extreme value.
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
    // With a tie, only the positions count.
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
    let axes = reduced_axes(&attributes.reduce, shape.rank());
    let kept = (0..shape.rank()).filter(|axis| !axes.contains(axis));
    let permutation: SmallVec<[usize; 8]> = axes.iter().copied().chain(kept).collect();
    let height: usize = axes.iter().map(|&axis| shape[axis]).product();
    let rows = Shape::from([height, ty.shape.size()]);
    let x = cx.transpose(x, &permutation);
    let x = cx.reshape(x, &rows);
    let result = fold::rows(cx, x, initial, &function)?;
    Ok(cx.reshape(result, &ty.shape))
}
