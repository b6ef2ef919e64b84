//! Functions that reduce axes.

use std::sync::Arc;

use nxla_runtime::DType;
use nxla_runtime::graph::build::Fold;
use nxla_runtime::graph::{ExprId, Graph, Program, ReduceOp};
use nxla_runtime::vectors::control::Vectorized;
use nxla_runtime::vectors::per_entry;
use nxla_runtime::{Error, Expr, Trace, Vectors};
use pyo3::prelude::*;

use super::args::{Axis, AxisList, axes_of};
use super::functions;
use crate::apply::{apply, one};
use crate::dtype::DTypeArg;
use crate::errors::{OrRaise, argument_error};
use crate::expr::PyExpr;
use crate::value::{FromPython, Value};

fn reduction(
    op: ReduceOp,
    x: &Bound<'_, PyAny>,
    axes: Option<AxisList>,
    keep_axes: bool,
) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, op.name())?;
    apply(x.py(), &[operand], |graph, ids| {
        let axes = axes_of(&axes, graph, op.name(), ids[0])?;
        one(graph.reduction(op, ids[0], axes.as_deref(), keep_axes))
    })
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $function:ident $op:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (x, axes=None, keep_axes=false))]
            fn $function(
                x: &Bound<'_, PyAny>,
                axes: Option<AxisList>,
                keep_axes: bool,
            ) -> PyResult<Py<PyAny>> {
                reduction(ReduceOp::$op, x, axes, keep_axes)
            }
        )*
    };
}

reductions! {
    /// The sum over axes.
    sum Sum;
    /// The product over axes.
    product Product;
    /// Whether all elements are non-zero.
    all All;
    /// Whether any element is non-zero.
    any Any;
    /// The largest element.
    reduce_max Max;
    /// The smallest element.
    reduce_min Min;
}

/// The arithmetic mean.
#[pyfunction]
#[pyo3(signature = (x, axes=None, keep_axes=false))]
fn mean(x: &Bound<'_, PyAny>, axes: Option<AxisList>, keep_axes: bool) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "mean")?;
    apply(x.py(), &[operand], |graph, ids| {
        let axes = axes_of(&axes, graph, "mean", ids[0])?;
        one(graph.mean(ids[0], axes.as_deref(), keep_axes))
    })
}

/// The logarithm of the sum of exponentials, each scaled by `scale`.
#[pyfunction]
#[pyo3(signature = (x, axes=None, keep_axes=false, scale=None))]
fn logsumexp(
    x: &Bound<'_, PyAny>,
    axes: Option<AxisList>,
    keep_axes: bool,
    scale: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let mut operands = vec![Value::of(x, "logsumexp")?];
    if let Some(scale) = scale {
        operands.push(Value::of(scale, "logsumexp")?);
    }
    apply(x.py(), &operands, |graph, ids| {
        let (&x, scale) = ids.split_first().expect("there is an operand");
        let axes = axes_of(&axes, graph, "logsumexp", x)?;
        one(graph.logsumexp(x, axes.as_deref(), keep_axes, scale.first().copied()))
    })
}

/// Generates the two measures of spread.
macro_rules! spreads {
    ($($(#[$doc:meta])* $function:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (x, axes=None, keep_axes=false, ddof=0))]
            fn $function(
                x: &Bound<'_, PyAny>,
                axes: Option<AxisList>,
                keep_axes: bool,
                ddof: i64,
            ) -> PyResult<Py<PyAny>> {
                let operand = Value::of(x, stringify!($function))?;
                apply(x.py(), &[operand], |graph, ids| {
                    let axes = axes_of(&axes, graph, stringify!($function), ids[0])?;
                    one(graph.$function(ids[0], axes.as_deref(), keep_axes, ddof))
                })
            }
        )*
    };
}

spreads! {
    /// The mean squared distance from the mean, with `ddof` fewer in the denominator.
    variance;
    /// The square root of the variance.
    standard_deviation;
}

/// The mean with a weight for each element.
#[pyfunction]
#[pyo3(signature = (x, weights, axes=None, keep_axes=false))]
fn weighted_mean(
    x: &Bound<'_, PyAny>,
    weights: &Bound<'_, PyAny>,
    axes: Option<AxisList>,
    keep_axes: bool,
) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(weights, "weighted_mean")?, Value::of(x, "weighted_mean")?];
    apply(x.py(), &operands, |graph, ids| {
        let axes = axes_of(&axes, graph, "weighted_mean", ids[1])?;
        one(graph.weighted_mean(ids[1], ids[0], axes.as_deref(), keep_axes))
    })
}

/// The covariance of the columns of matrices.
#[pyfunction]
#[pyo3(signature = (x, mean=None, ddof=0))]
fn covariance(
    x: &Bound<'_, PyAny>,
    mean: Option<&Bound<'_, PyAny>>,
    ddof: i64,
) -> PyResult<Py<PyAny>> {
    let mut operands = vec![Value::of(x, "covariance")?];
    if let Some(mean) = mean {
        operands.push(Value::of(mean, "covariance")?);
    }
    apply(x.py(), &operands, |graph, ids| one(graph.covariance(ids[0], ids.get(1).copied(), ddof)))
}

/// Generates the two order statistics.
macro_rules! statistics {
    ($($(#[$doc:meta])* $function:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (x, axis=None, keep_axis=false))]
            fn $function(
                x: &Bound<'_, PyAny>,
                axis: Option<Axis>,
                keep_axis: bool,
            ) -> PyResult<Py<PyAny>> {
                let operand = Value::of(x, stringify!($function))?;
                apply(x.py(), &[operand], |graph, ids| {
                    let name = stringify!($function);
                    let axis = axis.as_ref().map(|axis| axis.of(graph, name, ids[0])).transpose()?;
                    one(graph.$function(ids[0], axis, keep_axis))
                })
            }
        )*
    };
}

statistics! {
    /// The middle element in order; the mean of the two middle ones for an even number.
    median;
    /// The most frequent element, the smallest of several.
    mode;
}

/// The index of the largest element.
#[pyfunction]
#[pyo3(signature = (x, axis=None, keep_axis=false, tie_break="low", dtype=None))]
fn argmax(
    x: &Bound<'_, PyAny>,
    axis: Option<Axis>,
    keep_axis: bool,
    tie_break: &str,
    dtype: Option<DTypeArg>,
) -> PyResult<Py<PyAny>> {
    arg_reduction(x, axis, keep_axis, tie_break, dtype, true)
}

/// The index of the smallest element.
#[pyfunction]
#[pyo3(signature = (x, axis=None, keep_axis=false, tie_break="low", dtype=None))]
fn argmin(
    x: &Bound<'_, PyAny>,
    axis: Option<Axis>,
    keep_axis: bool,
    tie_break: &str,
    dtype: Option<DTypeArg>,
) -> PyResult<Py<PyAny>> {
    arg_reduction(x, axis, keep_axis, tie_break, dtype, false)
}

fn arg_reduction(
    x: &Bound<'_, PyAny>,
    axis: Option<Axis>,
    keep_axis: bool,
    tie_break: &str,
    dtype: Option<DTypeArg>,
    max: bool,
) -> PyResult<Py<PyAny>> {
    let name = if max { "argmax" } else { "argmin" };
    let tie_high = match tie_break {
        "low" => false,
        "high" => true,
        other => {
            let why = format!("tie_break must be \"low\" or \"high\", got {other:?}");
            return Err(argument_error(name, why));
        }
    };
    let dtype = dtype.map_or(DType::S32, |dtype| dtype.0);
    let operand = Value::of(x, name)?;
    apply(x.py(), &[operand], |graph, ids| {
        let axis = axis.as_ref().map(|axis| axis.of(graph, name, ids[0])).transpose()?;
        one(match max {
            true => graph.argmax(ids[0], axis, keep_axis, tie_high, dtype),
            false => graph.argmin(ids[0], axis, keep_axis, tie_high, dtype),
        })
    })
}

/// Folds elements with `function(element, accumulator)`. Only inside a trace; the Python package
/// traces it otherwise.
#[pyfunction]
#[pyo3(signature = (x, initial, function, axes=None, keep_axes=false))]
fn reduce(
    x: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    function: &Bound<'_, PyAny>,
    axes: Option<AxisList>,
    keep_axes: bool,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let (trace, values) = super::control::in_trace(py, "reduce", &[x, initial])?;
    let fold = trace.build(|graph| graph.open_fold(values[0].0, values[1].0)).or_raise()?;
    let result = call_fold(&trace, function, fold.element(), fold.accumulator())?;
    folded(py, trace, &fold, result, values, |graph, function, operands| {
        let axes = axes_of(&axes, graph, "reduce", operands[0])?;
        Ok(graph.reduce_with(function, operands, axes.as_deref(), keep_axes)?)
    })
}

/// A fold of values, of each entry if they are vectorized.
pub(super) fn folded(
    py: Python<'_>,
    trace: Trace,
    fold: &Fold,
    result: ExprId,
    values: Vec<Vectorized>,
    build: impl FnOnce(&mut Graph, Arc<Program>, &[ExprId]) -> Result<ExprId, Error>,
) -> PyResult<Py<PyAny>> {
    let built = trace.build(|graph| {
        let (function, operands) = graph.close_fold(fold, result)?;
        if values.iter().all(|(_, vectors)| vectors.is_empty()) {
            return Ok((build(graph, function, &operands)?, Vectors::NONE));
        }
        // What the function mentions comes after its own operands, and is the same for all.
        let vectors = values.into_iter().map(|(_, vectors)| vectors);
        let vectors = vectors.chain(std::iter::repeat(Vectors::NONE));
        let operands: Vec<Vectorized> = operands.into_iter().zip(vectors).collect();
        let (ids, vectors) =
            per_entry(graph, &operands, |graph, ids| one(build(graph, function, ids)))?;
        Ok::<_, Error>((ids[0], vectors))
    });
    let (id, vectors) = built.or_raise()?;
    PyExpr::wrap(py, Expr::with_vectors(trace, id, vectors))
}

/// Calls the function of a fold on its two parameters.
pub(super) fn call_fold(
    trace: &Trace,
    function: &Bound<'_, PyAny>,
    element: ExprId,
    accumulator: ExprId,
) -> PyResult<ExprId> {
    let py = function.py();
    let element = PyExpr::wrap(py, Expr::new(trace.clone(), element))?;
    let accumulator = PyExpr::wrap(py, Expr::new(trace.clone(), accumulator))?;
    let result = function.call1((element, accumulator))?;
    match crate::function::output(trace, &result)? {
        Some(expr) if !expr.vectors().is_empty() => {
            let why = format!(
                "the function must give one scalar, not one for each of {}",
                expr.vectors()
            );
            Err(argument_error("reduce", why))
        }
        Some(expr) => trace.id(&expr).or_raise(),
        None => Err(argument_error("reduce", "the function must give one scalar")),
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module: sum, product, all, any, reduce_max, reduce_min, mean, logsumexp, variance,
        standard_deviation, weighted_mean, covariance, median, mode, argmax, argmin, reduce);
    Ok(())
}
