//! Quantiles, reductions that ignore NaN, and counts and sums by index.

use nxla_runtime::graph::build::{
    Cumulative, Extrapolation, Quantile, QuantileMethod, Segment, Side,
};
use nxla_runtime::graph::{ExprId, Graph, ReduceOp};
use nxla_runtime::host::Number;
use nxla_runtime::{DType, Error, Result};
use pyo3::prelude::*;

use super::add_functions;
use super::args::{Axis, AxisList, Count};
use super::declare::{Choice, Choices, Precise, functions};
use super::reduce::{correction_or_ddof, reduce_in, sum_dtype};
use super::window::cumulative_dtype;
use crate::apply::{apply, one};
use crate::errors::argument_error;
use crate::operands::{Role, pair};
use crate::value::{FromPython, Value};

impl Choices for QuantileMethod {
    const ALL: &'static [(&'static str, Self)] = &[
        ("linear", QuantileMethod::Linear),
        ("lower", QuantileMethod::Lower),
        ("higher", QuantileMethod::Higher),
        ("midpoint", QuantileMethod::Midpoint),
        ("nearest", QuantileMethod::Nearest),
    ];
}

/// A quantile, optionally in per cent.
fn quantile(
    graph: &mut Graph,
    [x, q]: [ExprId; 2],
    axes: Option<Vec<i64>>,
    options: Quantile,
    percent: bool,
) -> Result<ExprId> {
    let q = if percent {
        let q = graph.as_type(q, DType::F64)?;
        let hundred = graph.weak_number(Number::Float(100.0), q)?;
        graph.divide(q, hundred)?
    } else {
        q
    };
    Ok(graph.quantile(x, q, axes.as_deref(), options)?)
}

/// The sum or product of the elements that are not NaN, in the dtype of `sum`.
fn total_of_numbers(
    graph: &mut Graph,
    op: ReduceOp,
    x: ExprId,
    axes: Option<Vec<i64>>,
    keep_axes: bool,
) -> Result<ExprId> {
    let dtype = sum_dtype(graph, x);
    reduce_in(graph, x, dtype, |graph, x| graph.nan_reduction(op, x, axes.as_deref(), keep_axes))
}

functions! {
    /// Return quantiles: the values below which fractions of the elements lie.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers count as ``float32``. NaN in `x` produces NaN.
    /// q : tensor_like
    ///     From 0 to 1: one fraction, or a vector, whose axis comes first in the result.
    ///     Other values produce NaN.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    /// method : {"linear", "lower", "higher", "midpoint", "nearest"}
    ///     The result for a quantile between two elements.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If `x` is empty.
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.quantile([1.0, 2.0, 3.0, 10.0], [0.0, 0.5, 1.0]).tolist()
    /// [1.0, 2.5, 10.0]
    fn quantile_of "quantile"(
        x, q: Precise<'_>, /, axis: Option<AxisList> = None, *,
        method: Choice<QuantileMethod> = "linear", keepdims: bool = false
    ) |graph| {
        let options = Quantile { method, keep_axes: keepdims, ignore_nan: false };
        quantile(graph, [x, q], axis, options, false)
    };

    /// Return percentiles: the values below which percentages of the elements lie.
    ///
    /// It is `quantile` with `q` from 0 to 100.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.percentile([1.0, 2.0, 3.0, 10.0], 50).item()
    /// 2.5
    fn percentile(
        x, q: Precise<'_>, /, axis: Option<AxisList> = None, *,
        method: Choice<QuantileMethod> = "linear", keepdims: bool = false
    ) |graph| {
        let options = Quantile { method, keep_axes: keepdims, ignore_nan: false };
        quantile(graph, [x, q], axis, options, true)
    };

    /// Return quantiles of the elements that are not NaN; NaN if all elements are NaN.
    ///
    /// Parameters and errors are the same as for `quantile`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanquantile([1.0, float("nan"), 3.0], 0.5).item()
    /// 2.0
    fn nanquantile(
        x, q: Precise<'_>, /, axis: Option<AxisList> = None, *,
        method: Choice<QuantileMethod> = "linear", keepdims: bool = false
    ) |graph| {
        let options = Quantile { method, keep_axes: keepdims, ignore_nan: true };
        quantile(graph, [x, q], axis, options, false)
    };

    /// Return percentiles of the elements that are not NaN; NaN if all elements are NaN.
    ///
    /// Parameters and errors are the same as for `percentile`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanpercentile([1.0, float("nan"), 3.0], 100).item()
    /// 3.0
    fn nanpercentile(
        x, q: Precise<'_>, /, axis: Option<AxisList> = None, *,
        method: Choice<QuantileMethod> = "linear", keepdims: bool = false
    ) |graph| {
        let options = Quantile { method, keep_axes: keepdims, ignore_nan: true };
        quantile(graph, [x, q], axis, options, true)
    };

    /// Return the median of the elements that are not NaN, as a float; NaN if all are NaN.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers count as ``float32``.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanmedian([1.0, float("nan"), 3.0]).item()
    /// 2.0
    fn nanmedian(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph| {
        let half = graph.weak_number(Number::Float(0.5), x)?;
        let options = Quantile { keep_axes: keepdims, ignore_nan: true, ..Quantile::default() };
        quantile(graph, [x, half], axis, options, false)
    };

    /// Sum the elements that are not NaN.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers of any dtype; narrow integers are summed in 32 bits, and booleans count as
    ///     ``int32``.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nansum([1.0, float("nan"), 3.0]).item()
    /// 4.0
    fn nansum(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph| {
        total_of_numbers(graph, ReduceOp::Sum, x, axis, keepdims)
    };

    /// Multiply the elements that are not NaN. Parameters are the same as for `nansum`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanprod([2.0, float("nan"), 3.0]).item()
    /// 6.0
    fn nanprod(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph| {
        total_of_numbers(graph, ReduceOp::Product, x, axis, keepdims)
    };

    /// Return the maximum of the elements that are not NaN, or NaN if all are.
    ///
    /// Parameters are the same as for `nansum`, but for complex numbers, which have no order.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanmax([[1.0, float("nan")], [float("nan")] * 2], axis=1).tolist()
    /// [1.0, nan]
    fn nanmax(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph|
        graph.nan_reduction(ReduceOp::Max, x, axis.as_deref(), keepdims);

    /// Return the minimum of the elements that are not NaN, or NaN if all are.
    ///
    /// Parameters are the same as for `nanmax`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanmin([float("nan"), 2.0, 1.0]).item()
    /// 1.0
    fn nanmin(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph|
        graph.nan_reduction(ReduceOp::Min, x, axis.as_deref(), keepdims);

    /// Return the mean of the elements that are not NaN; NaN if all elements are NaN.
    ///
    /// Parameters are the same as for `nansum`; integers become floats.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanmean([1.0, float("nan"), 3.0]).item()
    /// 2.0
    fn nanmean(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph|
        graph.nan_mean(x, axis.as_deref(), keepdims);

    /// Return the variance of the elements that are not NaN.
    ///
    /// The result is NaN if their number is at most the correction.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers; integers count as ``float32``.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    /// correction : float
    ///     The sum is divided by the number of elements minus this number; 1 for a sample.
    /// ddof : float, optional
    ///     NumPy's name of `correction`.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanvar([1.0, float("nan"), 3.0]).item()
    /// 1.0
    fn nanvar(
        x, /, axis: Option<AxisList> = None, *, correction: f64 = 0, keepdims: bool = false,
        ddof: Option<f64> = None
    ) |graph| {
        let correction = correction_or_ddof("nanvar", correction, ddof)?;
        graph.nan_variance(x, axis.as_deref(), keepdims, correction)
    };

    /// Return the standard deviation of the elements that are not NaN.
    ///
    /// The root of `nanvar`, with its parameters.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanstd([1.0, float("nan"), 5.0]).item()
    /// 2.0
    fn nanstd(
        x, /, axis: Option<AxisList> = None, *, correction: f64 = 0, keepdims: bool = false,
        ddof: Option<f64> = None
    ) |graph| {
        let correction = correction_or_ddof("nanstd", correction, ddof)?;
        graph.nan_standard_deviation(x, axis.as_deref(), keepdims, correction)
    };

    /// Return the index of the largest element that is not NaN; -1 if all elements are NaN.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers.
    /// axis : int or str, optional
    ///     The axis; by default the result is the row-major index among all elements.
    /// keepdims : bool
    ///     If True, keep the axis with size 1.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanargmax([float("nan"), 1.0, 2.0]).item()
    /// 2
    fn nanargmax(x, /, axis: Option<Axis> = None, *, keepdims: bool = false) |graph|
        graph.nan_arg(x, axis, keepdims, true);

    /// Return the index of the smallest element that is not NaN; -1 if all elements are NaN.
    ///
    /// Parameters are the same as for `nanargmax`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nanargmin([float("nan"), 1.0, 2.0]).item()
    /// 1
    fn nanargmin(x, /, axis: Option<Axis> = None, *, keepdims: bool = false) |graph|
        graph.nan_arg(x, axis, keepdims, false);

    /// Return the cumulative sum along an axis, with NaN as 0.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers; narrow integers are summed in 32 bits.
    /// axis : int or str, optional
    ///     The axis; by default the elements in row-major order.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nancumsum([1.0, float("nan"), 3.0]).tolist()
    /// [1.0, 1.0, 4.0]
    fn nancumsum(x, /, axis: Option<Axis> = None) |graph|
        nan_cumulative(graph, Cumulative::Sum, x, axis);

    /// Return the cumulative product along an axis, with NaN as 1.
    ///
    /// Parameters are the same as for `nancumsum`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nancumprod([2.0, float("nan"), 3.0]).tolist()
    /// [2.0, 2.0, 6.0]
    fn nancumprod(x, /, axis: Option<Axis> = None) |graph|
        nan_cumulative(graph, Cumulative::Product, x, axis);

    /// Return values of a piecewise linear function.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Where to evaluate it: real numbers of any shape.
    /// xp, fp : tensor_like
    ///     The points: two vectors of equal length. `xp` must increase unless there is a period.
    /// left, right : tensor_like, optional
    ///     The values before the first and after the last point; by default the values of these
    ///     points.
    /// period : float, optional
    ///     The period after which the function repeats itself; `left` and `right` do not matter
    ///     then.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the points are not two non-empty vectors of equal length.
    /// ArgumentError
    ///     If the period is 0.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.interp([0.5, 2.5, 9.0], [0.0, 1.0, 3.0], [0.0, 10.0, 30.0]).tolist()
    /// [5.0, 25.0, 30.0]
    fn interp(
        x, xp, fp, /, left: Option<Bound<'_, PyAny>> = None,
        right: Option<Bound<'_, PyAny>> = None, period: Option<f64> = None
    ) |graph| graph.interpolate(x, xp, fp, &Extrapolation { left, right, period });
}

/// Cumulative results along an axis, or of the elements in row-major order.
fn nan_cumulative(
    graph: &mut Graph,
    op: Cumulative,
    x: ExprId,
    axis: Option<i64>,
) -> Result<ExprId> {
    let x = if axis.is_none() { graph.flatten(x, None)? } else { x };
    let x = graph.as_type(x, cumulative_dtype(graph, x))?;
    Ok(graph.nan_cumulative(op, x, axis.unwrap_or(0))?)
}

/// Combines the entries of segments.
#[pyfunction]
fn segment(
    kind: &str,
    x: &Bound<'_, PyAny>,
    numbers: &Bound<'_, PyAny>,
    segments: usize,
) -> PyResult<Py<PyAny>> {
    let (name, kind) = match kind {
        "sum" => ("segment_sum", Segment::Sum),
        "prod" => ("segment_prod", Segment::Product),
        "max" => ("segment_max", Segment::Max),
        "min" => ("segment_min", Segment::Min),
        other => return Err(argument_error("segment", format!("kind: unknown name {other:?}"))),
    };
    let operands = [Value::of(x, name)?, Value::of(numbers, name)?];
    apply(x.py(), name, &operands, |graph, ids| one(graph.segment(kind, ids[0], ids[1], segments)))
}

/// The indices at which elements can be inserted into a sorted vector.
#[pyfunction]
#[pyo3(name = "places_in_order")]
fn searchsorted(
    sorted: &Bound<'_, PyAny>,
    x: &Bound<'_, PyAny>,
    right: bool,
) -> PyResult<Py<PyAny>> {
    let side = if right { Side::Right } else { Side::Left };
    let operands = pair([sorted, x], "searchsorted", Role::Compared)?;
    apply(x.py(), "searchsorted", &operands, |graph, ids| {
        one(graph.searchsorted(ids[0], ids[1], side))
    })
}

/// The number of occurrences of each integer.
#[pyfunction]
#[pyo3(name = "count_numbers")]
fn bincount(
    x: &Bound<'_, PyAny>,
    weights: Option<&Bound<'_, PyAny>>,
    length: usize,
) -> PyResult<Py<PyAny>> {
    let mut operands = vec![Value::of(x, "bincount")?];
    if let Some(weights) = weights {
        operands.push(Value::of(weights, "bincount")?);
    }
    apply(x.py(), "bincount", &operands, |graph, ids| {
        one(graph.bincount(ids[0], ids.get(1).copied(), length))
    })
}

/// The edges of a histogram's bins.
#[pyfunction]
fn bin_edges(x: &Bound<'_, PyAny>, bins: Count, range: Option<(f64, f64)>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "histogram")?;
    apply(x.py(), "histogram", &[operand], |graph, ids| one(graph.bin_edges(ids[0], bins.0, range)))
}

/// The counts of a histogram.
#[pyfunction]
#[pyo3(name = "histogram_of")]
fn histogram(
    x: &Bound<'_, PyAny>,
    edges: &Bound<'_, PyAny>,
    weights: Option<&Bound<'_, PyAny>>,
    density: bool,
) -> PyResult<Py<PyAny>> {
    let mut operands = vec![Value::of(x, "histogram")?, Value::of(edges, "histogram")?];
    if let Some(weights) = weights {
        operands.push(Value::of(weights, "histogram")?);
    }
    apply(x.py(), "histogram", &operands, |graph, ids| -> std::result::Result<_, Error> {
        one(graph.histogram(ids[0], ids[1], ids.get(2).copied(), density))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    declared_functions(module)?;
    add_functions!(module: segment, searchsorted, bincount, bin_edges, histogram);
    Ok(())
}
