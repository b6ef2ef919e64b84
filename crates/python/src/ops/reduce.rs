//! Functions that reduce axes.

use std::fmt::Display;
use std::sync::Arc;

use nxla_runtime::DType;
use nxla_runtime::graph::build::Fold;
use nxla_runtime::graph::{ErrorKind, ExprId, Graph, Program};
use nxla_runtime::vectors::control::Vectorized;
use nxla_runtime::{Error, RawExpr, Result, Trace, vectors};
use pyo3::prelude::*;

use super::args::{Axis, AxisList, Integer, axes_of};
use super::declare::{Choice, Choices, functions};
use crate::dtype::DTypeArg;
use crate::errors::{OrRaise, argument_error};
use crate::expr::PyExpr;
use crate::numbers;
use crate::value::number_of;

/// True if the last of equal elements is selected, rather than the first.
#[derive(Clone, Copy)]
struct TieHigh(bool);

impl Choices for TieHigh {
    const ALL: &'static [(&'static str, Self)] =
        &[("low", TieHigh(false)), ("high", TieHigh(true))];
}

/// `x` in a dtype, if one is given.
pub(super) fn convert(graph: &mut Graph, x: ExprId, dtype: Option<DType>) -> Result<ExprId> {
    Ok(match dtype {
        Some(dtype) => graph.as_type(x, dtype)?,
        None => x,
    })
}

/// Applies a reduction to `x` in a dtype, if one is given. Errors about axes show the type of `x`.
pub(super) fn reduce_in(
    graph: &mut Graph,
    x: ExprId,
    dtype: Option<DType>,
    reduce: impl FnOnce(&mut Graph, ExprId) -> nxla_runtime::graph::Result<ExprId>,
) -> Result<ExprId> {
    let converted = convert(graph, x, dtype)?;
    let result = reduce(graph, converted).map_err(|error| with_type_of(graph, x, error))?;
    convert(graph, result, dtype)
}

/// Replaces the type of a converted operand in an error about an axis by the type of `x`.
pub(super) fn with_type_of(
    graph: &Graph,
    x: ExprId,
    mut error: nxla_runtime::graph::Error,
) -> nxla_runtime::graph::Error {
    if let ErrorKind::Axis { ty, .. } = &mut error.kind {
        **ty = graph.tensor_type(x).clone();
    }
    error
}

/// The dtype of sums and products if it differs from Nx: of `u64`, which is `s64` there with the
/// same bits, and of booleans, which count as integers of the default dtype.
pub(super) fn sum_dtype(graph: &Graph, x: ExprId) -> Option<DType> {
    match graph.dtype(x) {
        DType::U64 => Some(DType::U64),
        DType::Pred if !numbers::are_of_nx() => Some(DType::S32),
        _ => None,
    }
}

/// The correction of a variance, which NumPy and JAX call `ddof`.
pub(super) fn correction_or_ddof<T: Default + Display + PartialEq>(
    op: &str,
    correction: T,
    ddof: Option<T>,
) -> Result<T> {
    match ddof {
        Some(ddof) if correction != T::default() => Err(Error::Arguments {
            function: op.into(),
            why: format!("ddof: must not be passed together with correction; got {ddof}"),
        }),
        Some(ddof) => Ok(ddof),
        None => Ok(correction),
    }
}

functions! {
    /// Sum the elements.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers of any dtype.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    /// dtype : dtype_like, optional
    ///     The dtype of the accumulation and of the result. By default, booleans and narrow signed
    ///     integers become ``int32``, narrow unsigned integers ``uint32``; other dtypes do not change.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The sums, with the dtype `dtype` and the shape of `x` without the reduced axes.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an axis does not exist or is repeated.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.sum([[1, 2], [3, 4]]).item(), nx.sum([[1, 2], [3, 4]], axis=0).tolist()
    /// (10, [4, 6])
    fn sum(
        x, /, axis: Option<AxisList> = None, dtype: Option<DTypeArg> = None, *,
        keepdims: bool = false
    ) |graph| {
        let dtype = dtype.or(sum_dtype(graph, x));
        reduce_in(graph, x, dtype, |graph, x| graph.sum(x, axis.as_deref(), keepdims))
    };

    /// Multiply the elements. Parameters and errors are the same as for `sum`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.prod([[1, 2], [3, 4]], axis=1).tolist()
    /// [2, 12]
    fn prod(
        x, /, axis: Option<AxisList> = None, dtype: Option<DTypeArg> = None, *,
        keepdims: bool = false
    ) |graph| {
        let dtype = dtype.or(sum_dtype(graph, x));
        reduce_in(graph, x, dtype, |graph, x| graph.product(x, axis.as_deref(), keepdims))
    };

    /// Return the maximum, or NaN if an element is NaN.
    ///
    /// The maximum of no element is the smallest value of the dtype: minus infinity for floats.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The maxima, with the dtype of `x` and the shape of `x` without the reduced axes.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.max([[1, 5], [3, 4]], axis=1).tolist()
    /// [5, 4]
    fn max(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph|
        graph.reduce_max(x, axis.as_deref(), keepdims);

    /// Return the minimum, or NaN if an element is NaN.
    ///
    /// The minimum of no element is the largest value of the dtype: infinity for floats.
    /// Parameters and errors are the same as for `max`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.min([[1, 5], [3, 4]], axis=1).tolist()
    /// [1, 3]
    fn min(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph|
        graph.reduce_min(x, axis.as_deref(), keepdims);

    /// Return whether no element is zero, as booleans.
    ///
    /// Parameters are the same as for `max`; elements of any dtype are accepted.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.all([[1, 0], [3, 4]], axis=1).tolist()
    /// [False, True]
    fn all(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph|
        graph.all(x, axis.as_deref(), keepdims);

    /// Return whether an element is not zero, as booleans.
    ///
    /// Parameters are the same as for `max`; elements of any dtype are accepted.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.any([[0, 0], [3, 0]], axis=1).tolist()
    /// [False, True]
    fn any(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph|
        graph.any(x, axis.as_deref(), keepdims);

    /// Count the elements that are not zero, as ``int32``. Parameters are the same as for `max`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.count_nonzero([[0, 1], [2, 3]]).item()
    /// 3
    fn count_nonzero(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph| {
        let zero = graph.zero_like(x)?;
        let counted = graph.not_equal(x, zero)?;
        let counted = graph.as_type(counted, DType::S32)?;
        graph.sum(counted, axis.as_deref(), keepdims)
    };

    /// Return the arithmetic mean.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers; integers count as ``float32``.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    /// dtype : dtype_like, optional
    ///     The dtype of the computation and of the result; by default the dtype of `x`, or ``float32``
    ///     for integers.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The means, with the shape of `x` without the reduced axes.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an axis does not exist or is repeated.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.mean([[1, 2], [3, 4]], axis=0).tolist()
    /// [2.0, 3.0]
    /// >>> nx.mean([1, 2], dtype="f64").dtype
    /// f64
    fn mean(
        x, /, axis: Option<AxisList> = None, dtype: Option<DTypeArg> = None, *,
        keepdims: bool = false
    ) |graph| {
        reduce_in(graph, x, dtype, |graph, x| graph.mean(x, axis.as_deref(), keepdims))
    };

    /// Return the mean, with a weight for each element.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers; integers count as ``float32``.
    /// weights : tensor_like
    ///     A tensor with the shape of `x`, or with one axis for each of `axis`.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The means, with the shape of `x` without the reduced axes.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the weights have another shape.
    /// ArgumentError
    ///     If the weights have another shape and `axis` is omitted.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.weighted_mean([1.0, 3.0], [3, 1]).item()
    /// 1.5
    fn weighted_mean(
        x, weights, /, axis: Option<AxisList> = None, *, keepdims: bool = false
    ) |graph| graph.weighted_mean(x, weights, axis.as_deref(), keepdims);

    /// Return the variance: the mean squared distance from the mean.
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
    /// Returns
    /// -------
    /// Tensor
    ///     The variances, with the shape of `x` without the reduced axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.var([1.0, 2.0, 3.0, 4.0]).item()
    /// 1.25
    fn var(
        x, /, axis: Option<AxisList> = None, *, correction: f64 = 0, keepdims: bool = false,
        ddof: Option<f64> = None
    ) |graph| {
        let correction = correction_or_ddof("var", correction, ddof)?;
        graph.variance(x, axis.as_deref(), keepdims, correction)
    };

    /// Return the standard deviation, the root of `var`, with its parameters.
    ///
    /// Notes
    /// -----
    /// The squares are computed in the dtype of `x`, or in ``float32`` if it is narrower. They overflow
    /// from about 1e19 on in ``float32``; divide `x` by a number first if its elements are that large.
    /// The derivative for equal elements is NaN, because the root is not smooth at zero. A small number
    /// added to the variance makes it smooth: ``nx.sqrt(nx.var(x) + 1e-12)``.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.std([1.0, 3.0]).item()
    /// 1.0
    fn standard_deviation "std"(
        x, /, axis: Option<AxisList> = None, *, correction: f64 = 0, keepdims: bool = false,
        ddof: Option<f64> = None
    ) |graph| {
        let correction = correction_or_ddof("std", correction, ddof)?;
        graph.standard_deviation(x, axis.as_deref(), keepdims, correction)
    };

    /// Return the covariance of columns.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Matrices, one row for each observation, in the last two axes.
    /// mean : tensor_like, optional
    ///     One number for each column; computed by default.
    /// correction : int
    ///     The correction: sums are divided by the number of rows minus this number.
    /// ddof : int, optional
    ///     NumPy's name of `correction`.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A matrix with a row and a column for each column of `x`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If there are fewer than two axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.covariance([[1.0, 2.0], [3.0, 6.0]]).tolist()
    /// [[1.0, 2.0], [2.0, 4.0]]
    fn covariance(
        x, /, mean: Option<Bound<'_, PyAny>> = None, *, correction: Integer = 0,
        ddof: Option<Integer> = None
    ) |graph| {
        let correction = correction_or_ddof("covariance", correction, ddof)?;
        graph.covariance(x, mean, correction)
    };

    /// Return the median: the middle element, or the mean of two of them for an even number.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The medians, with the shape of `x` without the reduced axes, ``float32`` for integers.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an axis does not exist or is repeated.
    /// ArgumentError
    ///     If the reduced axes have no elements.
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.median([3, 1, 2]).item(), nx.median([4.0, 1.0, 2.0, 3.0]).item()
    /// (2, 2.5)
    fn median(x, /, axis: Option<AxisList> = None, *, keepdims: bool = false) |graph|
        graph.median(x, axis.as_deref(), keepdims);

    /// Return the most frequent element, the smallest of several.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers.
    /// axis : int or str, optional
    ///     The axis; all elements by default.
    /// keepdims : bool
    ///     If True, keep the axis with size 1.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The elements, with the dtype of `x` and the shape of `x` without the axis.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the axis does not exist.
    /// ArgumentError
    ///     If the axis has no elements.
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.mode([3, 1, 3, 2]).item()
    /// 3
    fn mode(x, /, axis: Option<Axis> = None, *, keepdims: bool = false) |graph|
        graph.mode(x, axis, keepdims);

    /// Return the index of the maximum, or of the first NaN.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers.
    /// axis : int or str, optional
    ///     The axis; by default the result is the row-major index among all elements.
    /// keepdims : bool
    ///     If True, keep the axis with size 1.
    /// tie_break : {"low", "high"}
    ///     The selected index among equal elements: the first or the last. Among several NaN, the same
    ///     rule selects.
    /// dtype : dtype_like
    ///     The dtype of the index.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The indices, ``int32`` by default, with the shape of `x` without the axis; a scalar without
    ///     `axis`.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` is complex.
    /// ShapeError
    ///     If the axis does not exist.
    /// ArgumentError
    ///     If the reduced axes have no elements.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.argmax([[1, 5], [3, 3]], axis=1).tolist()
    /// [1, 0]
    fn argmax(
        x, /, axis: Option<Axis> = None, *, keepdims: bool = false,
        tie_break: Choice<TieHigh> = "low", dtype: DTypeArg = "int32"
    ) |graph| graph.argmax(x, axis, keepdims, tie_break.0, dtype);

    /// Return the index of the minimum. Parameters and errors are the same as for `argmax`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.argmin([3, 1, 1], tie_break="high").item()
    /// 2
    fn argmin(
        x, /, axis: Option<Axis> = None, *, keepdims: bool = false,
        tie_break: Choice<TieHigh> = "low", dtype: DTypeArg = "int32"
    ) |graph| graph.argmin(x, axis, keepdims, tie_break.0, dtype);

    /// Return the logarithm of the sum of exponentials, without overflow.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers; integers count as ``float32``.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    /// scale : tensor_like, optional
    ///     A factor for each exponential.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The logarithms, with the shape of `x` without the reduced axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.logsumexp([1000.0, 1000.0]).item()
    /// 1000.6931762695312
    fn logsumexp(
        x, /, axis: Option<AxisList> = None, *, keepdims: bool = false,
        scale: Option<Bound<'_, PyAny>> = None
    ) |graph| graph.logsumexp(x, axis.as_deref(), keepdims, scale);
}

/// Folds elements with `function(element, accumulator)`. The function must be called inside a trace;
/// the Python package starts one otherwise. Returns None if the function uses vectorized values, so that its results
/// differ between entries: a loop computes such a fold.
#[pyfunction]
#[pyo3(signature = (x, initial, function, axis=None, keepdims=false))]
fn fold(
    x: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    function: &Bound<'_, PyAny>,
    axis: Option<AxisList>,
    keepdims: bool,
) -> PyResult<Option<Py<PyAny>>> {
    let py = x.py();
    let (trace, values) = super::control::in_trace(py, "reduce", [x, initial])?;
    let start = trace.edit(|graph| graph.mark()).or_raise()?;
    let fold = trace.build(|graph| graph.open_fold(values[0].0, values[1].0));
    let fold = fold.map_err(|error| error.in_function("reduce")).or_raise()?;
    let call = || call_fold(&trace, function, fold.element(), fold.accumulator());
    let Some(result) = trace.drop_hooks_on_error(call)? else {
        trace.edit(|graph| graph.drop_effects(start)).or_raise()?;
        return Ok(None);
    };
    let result = fold_by_function(
        "reduce",
        function,
        trace,
        &fold,
        result,
        values,
        |graph, function, operands| {
            let axis = axes_of(&axis, graph, operands[0])?;
            Ok(graph.reduce_with(function, operands, axis.as_deref(), keepdims)?)
        },
    );
    result.map(Some)
}

/// A fold of values by a function of Python, of each entry if they are vectorized. An error names
/// the function `called` by the user.
pub(super) fn fold_by_function(
    called: &str,
    user: &Bound<'_, PyAny>,
    trace: Trace,
    fold: &Fold,
    result: ExprId,
    values: Vec<Vectorized>,
    build: impl FnOnce(&mut Graph, Arc<Program>, &[ExprId]) -> Result<ExprId, Error>,
) -> PyResult<Py<PyAny>> {
    let py = user.py();
    let name = user.getattr_opt("__name__")?.and_then(|name| name.extract::<String>().ok());
    let build = |graph: &mut Graph, function: Arc<Program>, operands: &[ExprId]| {
        let function = match name {
            Some(name) => Arc::new(Program::clone(&function).with_name(name)),
            None => function,
        };
        build(graph, function, operands)
    };
    let vectors = values.into_iter().map(|(_, vectors)| vectors);
    let built = trace.build(|graph| vectors::fold_per_entry(graph, fold, result, vectors, build));
    let (id, vectors) = built.map_err(|error| error.in_function(called)).or_raise()?;
    PyExpr::wrap(py, RawExpr::with_vectors(trace, id, vectors))
}

/// Calls the function of a fold on its two parameters. Returns None for a vectorized result. A Python
/// scalar takes the dtype of the accumulator.
pub(super) fn call_fold(
    trace: &Trace,
    function: &Bound<'_, PyAny>,
    element: ExprId,
    accumulator: ExprId,
) -> PyResult<Option<ExprId>> {
    let py = function.py();
    let parameter = |id| PyExpr::wrap(py, RawExpr::new(trace.clone(), id));
    let result = function.call1((parameter(element)?, parameter(accumulator)?))?;
    if let Some(number) = number_of(&result)? {
        return trace.build(|graph| graph.weak_number(number, accumulator)).or_raise().map(Some);
    }
    match crate::function::output(trace, &result)? {
        Some(expr) if !expr.vectors().is_empty() => Ok(None),
        Some(expr) => trace.id(&expr).or_raise().map(Some),
        None => Err(argument_error("reduce", "function: must return one scalar")),
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    declared_functions(module)?;
    module.add_function(wrap_pyfunction!(fold, module)?)
}
