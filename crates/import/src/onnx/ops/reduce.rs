//! Reductions along axes, and cumulative reductions.

use nxla_expr::ExprId;
use nxla_expr::build::Cumulative;
use nxla_tensor::DType;

use super::{Operator, operator};
use crate::numbers::to_i64;
use crate::onnx::error::Built;
use crate::onnx::node::Call;

/// The function of a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    L1,
    L2,
    LogSum,
    LogSumExp,
    Max,
    Mean,
    Min,
    Product,
    Sum,
    SumSquare,
}

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("ArgMax", |call| arg_reduce(call, true)),
    operator("ArgMin", |call| arg_reduce(call, false)),
    operator("CumProd", |call| cumulative(call, Cumulative::Product)),
    operator("CumSum", |call| cumulative(call, Cumulative::Sum)),
    operator("ReduceL1", |call| reduce(call, Kind::L1)),
    operator("ReduceL2", |call| reduce(call, Kind::L2)),
    operator("ReduceLogSum", |call| reduce(call, Kind::LogSum)),
    operator("ReduceLogSumExp", |call| reduce(call, Kind::LogSumExp)),
    operator("ReduceMax", |call| reduce(call, Kind::Max)),
    operator("ReduceMean", |call| reduce(call, Kind::Mean)),
    operator("ReduceMin", |call| reduce(call, Kind::Min)),
    operator("ReduceProd", |call| reduce(call, Kind::Product)),
    operator("ReduceSum", |call| reduce(call, Kind::Sum)),
    operator("ReduceSumSquare", |call| reduce(call, Kind::SumSquare)),
];

fn reduce(call: &mut Call<'_, '_, '_>, kind: Kind) -> Built<Vec<ExprId>> {
    let mut x = call.input(0)?;
    let keeps = call.flag("keepdims", true)?;
    let axes = match call.int_list(1, "axes")? {
        Some(axes) if axes.is_empty() => None,
        axes => axes,
    };
    let dtype = call.dtype(x);
    let is_noop = axes.is_none() && call.flag("noop_with_empty_axes", false)?;
    let axes = axes.as_deref();
    let graph = call.graph();
    if matches!(kind, Kind::L2 | Kind::LogSum | Kind::LogSumExp) {
        // The result of integers is a float before it is truncated, and the sum can overflow 16 bits
        // although the result fits.
        let wide = if dtype.is_integer() { DType::F64 } else { dtype.at_least_f32() };
        x = graph.as_type(x, wide)?;
    }
    if is_noop {
        // The element-wise part of the function still applies.
        let result = match kind {
            Kind::L1 | Kind::L2 => graph.abs(x)?,
            Kind::LogSum => graph.log(x)?,
            Kind::SumSquare => graph.multiply(x, x)?,
            Kind::LogSumExp | Kind::Max | Kind::Mean | Kind::Min | Kind::Product | Kind::Sum => x,
        };
        return Ok(vec![graph.as_type(result, dtype)?]);
    }
    let result = match kind {
        Kind::L1 => {
            let size = graph.abs(x)?;
            graph.sum(size, axes, keeps)?
        }
        Kind::L2 => {
            let square = graph.multiply(x, x)?;
            let sum = graph.sum(square, axes, keeps)?;
            graph.sqrt(sum)?
        }
        Kind::LogSum => {
            let sum = graph.sum(x, axes, keeps)?;
            graph.log(sum)?
        }
        Kind::LogSumExp => graph.logsumexp(x, axes, keeps, None)?,
        Kind::Max => graph.reduce_max(x, axes, keeps)?,
        Kind::Min => graph.reduce_min(x, axes, keeps)?,
        Kind::Mean if dtype.is_integer() => {
            let count = graph.shape(x).size() as i64;
            let sum = graph.sum(x, axes, keeps)?;
            let kept = graph.shape(sum).size().max(1) as i64;
            let count = nxla_tensor::Scalar::Int(count / kept);
            let count = graph.scalar_constant(count, graph.dtype(sum))?;
            graph.quotient(sum, count)?
        }
        Kind::Mean => graph.mean(x, axes, keeps)?,
        Kind::Product => graph.product(x, axes, keeps)?,
        Kind::Sum => graph.sum(x, axes, keeps)?,
        Kind::SumSquare => {
            let square = graph.multiply(x, x)?;
            graph.sum(square, axes, keeps)?
        }
    };
    Ok(vec![call.graph().as_type(result, dtype)?])
}

fn arg_reduce(call: &mut Call<'_, '_, '_>, is_max: bool) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let axis = Some(call.int("axis", 0)?);
    let keeps = call.flag("keepdims", true)?;
    let last = call.flag("select_last_index", false)?;
    let graph = call.graph();
    Ok(vec![if is_max {
        graph.argmax(x, axis, keeps, last, DType::S64)?
    } else {
        graph.argmin(x, axis, keeps, last, DType::S64)?
    }])
}

/// With `exclusive`, a result does not contain its own element.
fn cumulative(call: &mut Call<'_, '_, '_>, op: Cumulative) -> Built<Vec<ExprId>> {
    let [mut x, axis] = call.inputs()?;
    let axis = call.integer(axis, "axis")?;
    let axis = call.axis(axis, call.rank(x))?;
    let at = to_i64(axis);
    let (exclusive, reverse) = (call.flag("exclusive", false)?, call.flag("reverse", false)?);
    let neutral = if op == Cumulative::Product { 1.0 } else { 0.0 };
    let neutral = call.scalar(neutral, x)?;
    let dtype = call.dtype(x);
    if exclusive && call.shape(x)[axis] > 0 {
        let widths = if reverse { (-1, 1) } else { (1, -1) };
        x = call.pad_axis(x, neutral, axis, widths)?;
    }
    let graph = call.graph();
    let result = graph.cumulative(op, x, at, reverse)?;
    Ok(vec![graph.as_type(result, dtype)?])
}
