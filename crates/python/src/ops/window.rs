//! Functions over sliding windows.

use nxla_runtime::graph::WindowOp;
use nxla_runtime::graph::build::{Cumulative, WindowOptions, WindowPadding};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::args::{Axis, count, counts, rows};
use super::functions;
use crate::apply::{apply, one};
use crate::errors::{OrRaise, argument_error};
use crate::value::{FromPython, Value};

/// `"valid"`, `"same"`, or `(low, high)` for each axis.
pub(super) struct PaddingArg(pub(super) WindowPadding);

impl<'a, 'py> FromPyObject<'a, 'py> for PaddingArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = value.cast::<PyString>() {
            return match &*name.to_cow()?.to_lowercase() {
                "valid" => Ok(PaddingArg(WindowPadding::Valid)),
                "same" => Ok(PaddingArg(WindowPadding::Same)),
                other => Err(argument_error(
                    "padding",
                    format!("must be \"valid\", \"same\" or a list of (low, high), got {other:?}"),
                )),
            };
        }
        let pairs = rows::<2>(&value)?.into_iter().map(|[low, high]| (low, high));
        Ok(PaddingArg(WindowPadding::Explicit(pairs.collect())))
    }
}

/// One number for all axes, or one for each.
pub(super) enum PerAxis {
    All(i64),
    Each(Vec<i64>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for PerAxis {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match value.extract::<i64>() {
            Ok(one) => Ok(PerAxis::All(one)),
            Err(_) => Ok(PerAxis::Each(value.extract()?)),
        }
    }
}

impl PerAxis {
    /// One number for each of `axes` axes.
    pub(super) fn repeated(
        self,
        function: &str,
        argument: &str,
        axes: usize,
    ) -> PyResult<Vec<usize>> {
        match self {
            PerAxis::All(one) => Ok(vec![count(function, argument, one)?; axes]),
            PerAxis::Each(numbers) => counts(function, argument, &numbers),
        }
    }
}

/// The sizes of a window, and how it moves.
fn window(
    function: &str,
    dimensions: &[i64],
    strides: Option<PerAxis>,
    padding: Option<PaddingArg>,
    dilations: Option<PerAxis>,
) -> PyResult<(Vec<usize>, WindowOptions)> {
    let axes = dimensions.len();
    let per_axis = |argument: &str, given: Option<PerAxis>| {
        given.map(|given| given.repeated(function, argument, axes)).transpose()
    };
    let options = WindowOptions {
        strides: per_axis("strides", strides)?,
        padding: padding.map_or(WindowPadding::Valid, |padding| padding.0),
        dilations: per_axis("dilations", dilations)?,
    };
    Ok((counts(function, "dimensions", dimensions)?, options))
}

macro_rules! window_functions {
    ($($(#[$doc:meta])* $function:ident $op:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (x, dimensions, strides=None, padding=None, dilations=None))]
            fn $function(
                x: &Bound<'_, PyAny>,
                dimensions: Vec<i64>,
                strides: Option<PerAxis>,
                padding: Option<PaddingArg>,
                dilations: Option<PerAxis>,
            ) -> PyResult<Py<PyAny>> {
                let operand = Value::of(x, stringify!($function))?;
                let name = stringify!($function);
                let (dimensions, options) = window(name, &dimensions, strides, padding, dilations)?;
                apply(x.py(), &[operand], |graph, ids| {
                    one(graph.window_reduction(WindowOp::$op, ids[0], &dimensions, &options))
                })
            }
        )*
    };
}

window_functions! {
    /// The sum of each window.
    window_sum Sum;
    /// The product of each window.
    window_product Product;
    /// The largest element of each window.
    window_max Max;
    /// The smallest element of each window.
    window_min Min;
}

/// The mean of each window.
#[pyfunction]
#[pyo3(signature = (x, dimensions, strides=None, padding=None, dilations=None))]
fn window_mean(
    x: &Bound<'_, PyAny>,
    dimensions: Vec<i64>,
    strides: Option<PerAxis>,
    padding: Option<PaddingArg>,
    dilations: Option<PerAxis>,
) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "window_mean")?;
    let (dimensions, options) = window("window_mean", &dimensions, strides, padding, dilations)?;
    apply(x.py(), &[operand], |graph, ids| one(graph.window_mean(ids[0], &dimensions, &options)))
}

macro_rules! scatter_functions {
    ($($(#[$doc:meta])* $function:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (x, source, initial, dimensions, strides=None, padding=None))]
            fn $function(
                x: &Bound<'_, PyAny>,
                source: &Bound<'_, PyAny>,
                initial: &Bound<'_, PyAny>,
                dimensions: Vec<i64>,
                strides: Option<PerAxis>,
                padding: Option<PaddingArg>,
            ) -> PyResult<Py<PyAny>> {
                let name = stringify!($function);
                let operands = [
                    Value::of(x, name)?,
                    Value::of(initial, name)?,
                    Value::of(source, name)?,
                ];
                let (dimensions, options) = window(name, &dimensions, strides, padding, None)?;
                apply(x.py(), &operands, |graph, ids| {
                    one(graph.$function(ids[0], ids[2], ids[1], &dimensions, &options))
                })
            }
        )*
    };
}

scatter_functions! {
    /// Sends each source element to the position of its window's largest element.
    window_scatter_max;
    /// Sends each source element to the position of its window's smallest element.
    window_scatter_min;
}

/// Folds each window with `function(element, accumulator)`, inside a trace.
#[pyfunction]
#[pyo3(signature = (x, initial, function, dimensions, strides=None, padding=None, dilations=None))]
fn window_reduce(
    x: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    function: &Bound<'_, PyAny>,
    dimensions: Vec<i64>,
    strides: Option<PerAxis>,
    padding: Option<PaddingArg>,
    dilations: Option<PerAxis>,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let (dimensions, options) = window("window_reduce", &dimensions, strides, padding, dilations)?;
    let (trace, values) = super::control::in_trace(py, "window_reduce", &[x, initial])?;
    let fold = trace.build(|graph| graph.open_window_fold(values[0].0, values[1].0)).or_raise()?;
    let result = super::reduce::call_fold(&trace, function, fold.element(), fold.accumulator())?;
    super::reduce::folded(py, trace, &fold, result, values, |graph, function, operands| {
        Ok(graph.window_reduce_with(function, operands, &dimensions, &options)?)
    })
}

macro_rules! cumulative_functions {
    ($($(#[$doc:meta])* $function:ident $op:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (x, axis=Axis::Number(0), reverse=false))]
            fn $function(x: &Bound<'_, PyAny>, axis: Axis, reverse: bool) -> PyResult<Py<PyAny>> {
                let operand = Value::of(x, stringify!($function))?;
                apply(x.py(), &[operand], |graph, ids| {
                    let axis = axis.of(graph, stringify!($function), ids[0])?;
                    one(graph.cumulative(Cumulative::$op, ids[0], axis, reverse))
                })
            }
        )*
    };
}

cumulative_functions! {
    /// The sum of all elements up to each one.
    cumulative_sum Sum;
    /// The product of all elements up to each one.
    cumulative_product Product;
    /// The largest element up to each one.
    cumulative_max Max;
    /// The smallest element up to each one.
    cumulative_min Min;
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module: window_sum, window_product, window_max, window_min, window_mean,
        window_scatter_max, window_scatter_min, window_reduce, cumulative_sum,
        cumulative_product, cumulative_max, cumulative_min);
    Ok(())
}
