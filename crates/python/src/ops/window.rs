//! Functions over sliding windows, and cumulative ones.

use std::borrow::Cow;

use nxla_runtime::graph::build::{Cumulative, WindowOptions, WindowPadding};
use nxla_runtime::graph::{ExprId, Graph, Padding};
use nxla_runtime::host::{Number, normalize_axis};
use nxla_runtime::{DType, Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use super::args::{Axis, Count, pairs};
use super::declare::{Argument, ArgumentContext, functions, plain_arguments};
use super::reduce::{convert, sum_dtype, with_type_of};
use crate::dtype::DTypeArg;
use crate::errors::{OrRaise, argument_error, kind_of, user_error};
use crate::numbers;

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
                    format!("must be \"valid\", \"same\" or a list of (low, high); got {other:?}"),
                )),
            };
        }
        Ok(PaddingArg(WindowPadding::Explicit(pairs("padding", &value)?)))
    }
}

impl From<&'static str> for PaddingArg {
    fn from(name: &'static str) -> Self {
        PaddingArg(if name == "same" { WindowPadding::Same } else { WindowPadding::Valid })
    }
}

plain_arguments! {
    PaddingArg as "Padding": WindowPadding = |PaddingArg(padding)| padding;
}

/// A count for all axes, or one count for each axis.
pub(super) enum PerAxis {
    All(Count),
    Each(Vec<Count>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for PerAxis {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match value.extract() {
            Ok(one) => return Ok(PerAxis::All(one)),
            Err(cause) if value.is_instance_of::<PyInt>() => return Err(cause),
            Err(_) => {}
        }
        value.extract().map(PerAxis::Each).map_err(|cause: PyErr| {
            match (cause.is_instance_of::<PyTypeError>(value.py()), kind_of(&value)) {
                (true, Ok(kind)) => PyTypeError::new_err(format!(
                    "must be an int or a sequence of ints; got {kind}"
                )),
                _ => cause,
            }
        })
    }
}

impl PerAxis {
    /// One count for each of `axes` axes.
    pub(super) fn of(self, axes: usize) -> Vec<usize> {
        match self {
            PerAxis::All(one) => vec![one.0; axes],
            PerAxis::Each(counts) => counts.into_iter().map(|Count(count)| count).collect(),
        }
    }
}

plain_arguments! {
    PerAxis as "PerAxis": PerAxis = |counts| counts;
}

/// The size of a window along each axis of the first operand, but for `BESIDE` of them.
pub(super) struct Window<const BESIDE: usize = 0>(PerAxis);

impl<'a, 'py, const BESIDE: usize> FromPyObject<'a, 'py> for Window<BESIDE> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(Window)
    }
}

impl<const BESIDE: usize> Argument for Window<BESIDE> {
    type Value = Vec<usize>;

    fn annotation() -> Cow<'static, str> {
        PerAxis::annotation()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Vec<usize>> {
        let axes = site.graph.shape(site.ids[0]).rank();
        Ok(self.0.of(axes.saturating_sub(BESIDE)))
    }
}

/// The strides of windows with these sizes.
fn window(
    dimensions: &[usize],
    strides: Option<PerAxis>,
    padding: WindowPadding,
    dilations: Option<PerAxis>,
) -> WindowOptions {
    let each = |given: Option<PerAxis>| given.map(|given| given.of(dimensions.len()));
    WindowOptions { strides: each(strides), padding, dilations: each(dilations) }
}

/// The only axis of a vector, for functions without an axis argument.
pub(super) fn only_axis(graph: &Graph, function: &str, x: ExprId) -> Result<i64> {
    match graph.shape(x).rank() {
        1 => Ok(0),
        rank => {
            let why = format!("axis: is required for a tensor with {rank} axes");
            Err(user_error(argument_error(function, why)))
        }
    }
}

/// The operand of a cumulative function, and its axis.
fn operand(
    graph: &mut Graph,
    function: &str,
    x: ExprId,
    axis: Option<i64>,
    dtype: Option<DType>,
) -> Result<(ExprId, i64)> {
    let axis = axis.map_or_else(|| only_axis(graph, function, x), Ok)?;
    let x = dtype.map_or(Ok(x), |dtype| graph.as_type(x, dtype))?;
    Ok((x, axis))
}

/// The result of a cumulative function, with the initial value if it is requested.
fn with_initial(
    graph: &mut Graph,
    result: ExprId,
    initial: i128,
    axis: i64,
    include: bool,
    reverse: bool,
) -> Result<ExprId> {
    if !include {
        return Ok(result);
    }
    let rank = graph.shape(result).rank();
    let mut padding = vec![Padding::NONE; rank];
    let axis = normalize_axis(axis, rank).expect("the accumulation has this axis");
    let one = &mut padding[axis];
    (one.low, one.high) = if reverse { (0, 1) } else { (1, 0) };
    let initial = graph.weak_number(Number::Int(initial), result)?;
    Ok(graph.pad(result, initial, &padding)?)
}

/// The dtype of cumulative sums and products, the same as for sums and products.
pub(super) fn cumulative_dtype(graph: &Graph, x: ExprId) -> DType {
    sum_dtype(graph, x).unwrap_or_else(|| Cumulative::Sum.widen(graph.dtype(x)))
}

/// The cumulative maximum or minimum, which is a boolean for booleans, except by the rules of Nx.
fn cumulative_extreme(
    graph: &mut Graph,
    op: Cumulative,
    x: ExprId,
    axis: Option<i64>,
    reverse: bool,
) -> Result<ExprId> {
    let (x, axis) = operand(graph, op.name(), x, axis, None)?;
    let is_boolean = graph.dtype(x).is_pred() && !numbers::are_of_nx();
    let result = graph.cumulative(op, x, axis, reverse)?;
    convert(graph, result, is_boolean.then_some(DType::Pred))
}

functions! {
    /// Sum the elements of each window.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers.
    /// dimensions : int or sequence of int
    ///     The size of the window, along all axes or along each.
    /// strides : int or sequence of int, optional
    ///     The stride of the windows; 1 by default.
    /// padding : {"valid", "same"} or sequence of (int, int)
    ///     Neutral elements around `x`: none, as many as keep the shape at stride 1, or as many as
    ///     given before and after each axis.
    /// dilations : int or sequence of int, optional
    ///     The dilation of the windows; 1 by default.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     One element for each window, and no elements if no window fits.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If there is not one size for each axis.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.window_sum([1, 2, 3, 4], (2,)).tolist()
    /// [3, 5, 7]
    /// >>> nx.window_sum([1, 2, 3, 4], (2,), strides=2, padding="same").tolist()
    /// [3, 7]
    /// >>> nx.window_sum(nx.ones((3, 3)), 2).tolist()
    /// [[4.0, 4.0], [4.0, 4.0]]
    fn window_sum(
        x, dimensions: Window, /, *, strides: Option<PerAxis> = None,
        padding: PaddingArg = "valid", dilations: Option<PerAxis> = None
    ) |graph| graph.window_sum(x, &dimensions, &window(&dimensions, strides, padding, dilations));

    /// Multiply the elements of each window.
    ///
    /// Parameters and errors are the same as for `window_sum`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.window_product([1, 2, 3, 4], (2,)).tolist()
    /// [2, 6, 12]
    fn window_product(
        x, dimensions: Window, /, *, strides: Option<PerAxis> = None,
        padding: PaddingArg = "valid", dilations: Option<PerAxis> = None
    ) |graph|
        graph.window_product(x, &dimensions, &window(&dimensions, strides, padding, dilations));

    /// Return the maximum of each window. Parameters and errors are the same as for `window_sum`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.window_max([1, 4, 2, 3], (2,)).tolist()
    /// [4, 4, 3]
    fn window_max(
        x, dimensions: Window, /, *, strides: Option<PerAxis> = None,
        padding: PaddingArg = "valid", dilations: Option<PerAxis> = None
    ) |graph| graph.window_max(x, &dimensions, &window(&dimensions, strides, padding, dilations));

    /// Return the minimum of each window. Parameters and errors are the same as for `window_sum`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.window_min([1, 4, 2, 3], (2,)).tolist()
    /// [1, 2, 2]
    fn window_min(
        x, dimensions: Window, /, *, strides: Option<PerAxis> = None,
        padding: PaddingArg = "valid", dilations: Option<PerAxis> = None
    ) |graph| graph.window_min(x, &dimensions, &window(&dimensions, strides, padding, dilations));

    /// Return the mean of each window; padding counts as zeros.
    ///
    /// Parameters and errors are the same as for `window_sum`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.window_mean([1, 2, 3, 4], (2,)).tolist()
    /// [1.5, 2.5, 3.5]
    fn window_mean(
        x, dimensions: Window, /, *, strides: Option<PerAxis> = None,
        padding: PaddingArg = "valid", dilations: Option<PerAxis> = None
    ) |graph| graph.window_mean(x, &dimensions, &window(&dimensions, strides, padding, dilations));

    /// Add each element of a source at the maximum of its window.
    ///
    /// It is the gradient of `window_max`. Of several equal elements, the last one in row-major order
    /// receives the source element. A NaN counts as larger than a number, and an element after a NaN
    /// counts as larger than the NaN.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     The tensor that determines the windows.
    /// source : tensor_like
    ///     One element for each window.
    /// initial : number or scalar tensor
    ///     The initial value of the result.
    /// dimensions, strides, padding
    ///     As for `window_sum`.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor with the shape of `x`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the source has not one element for each window.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.window_scatter_max([1, 4, 2, 3], [10, 20], 0, (2,), strides=2).tolist()
    /// [0, 10, 0, 20]
    fn window_scatter_max(
        x, source, initial, dimensions: Window, /, *, strides: Option<PerAxis> = None,
        padding: PaddingArg = "valid"
    ) |graph|
        graph.window_scatter_max(x, source, initial, &dimensions, &window(&dimensions, strides, padding, None));

    /// Add each element of a source at the minimum of its window.
    ///
    /// Parameters and errors are the same as for `window_scatter_max`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.window_scatter_min([1, 4, 2, 3], [10, 20], 0, (2,), strides=2).tolist()
    /// [10, 0, 20, 0]
    fn window_scatter_min(
        x, source, initial, dimensions: Window, /, *, strides: Option<PerAxis> = None,
        padding: PaddingArg = "valid"
    ) |graph|
        graph.window_scatter_min(x, source, initial, &dimensions, &window(&dimensions, strides, padding, None));

    /// Return the sum of all elements up to and including each one.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers, with at least one axis.
    /// axis : int or str, optional
    ///     The axis; optional for a tensor with one axis.
    /// dtype : dtype_like, optional
    ///     The dtype of the accumulation and of the result; by default as for `sum`.
    /// include_initial : bool
    ///     If True, the result starts with the empty sum, zero, and the axis is longer by one.
    /// reverse : bool
    ///     If True, accumulate from the end.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The sums, with the shape of `x`; the axis is longer by one with `include_initial`.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If `axis` is omitted and `x` has several axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> x = [1, 2, 3]
    /// >>> nx.cumulative_sum(x).tolist(), nx.cumulative_sum(x, reverse=True).tolist()
    /// ([1, 3, 6], [6, 5, 3])
    fn cumulative_sum(
        x, /, axis: Option<Axis> = None, *, dtype: Option<DTypeArg> = None,
        include_initial: bool = false, reverse: bool = false
    ) |graph| {
        let dtype = dtype.unwrap_or_else(|| cumulative_dtype(graph, x));
        let (converted, axis) = operand(graph, "cumulative_sum", x, axis, Some(dtype))?;
        let result = graph.cumulative(Cumulative::Sum, converted, axis, reverse);
        let result = result.map_err(|error| with_type_of(graph, x, error))?;
        with_initial(graph, result, 0, axis, include_initial, reverse)
    };

    /// Return the product of all elements up to and including each one.
    ///
    /// Parameters and errors are the same as for `cumulative_sum`; the product of no element is
    /// one.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.cumulative_prod([1, 2, 3], include_initial=True).tolist()
    /// [1, 1, 2, 6]
    fn cumulative_prod(
        x, /, axis: Option<Axis> = None, *, dtype: Option<DTypeArg> = None,
        include_initial: bool = false, reverse: bool = false
    ) |graph| {
        let dtype = dtype.unwrap_or_else(|| cumulative_dtype(graph, x));
        let (converted, axis) = operand(graph, "cumulative_prod", x, axis, Some(dtype))?;
        let result = graph.cumulative(Cumulative::Product, converted, axis, reverse);
        let result = result.map_err(|error| with_type_of(graph, x, error))?;
        with_initial(graph, result, 1, axis, include_initial, reverse)
    };

    /// Return the maximum of all elements up to and including each one.
    ///
    /// Parameters and errors are the same as for `cumulative_sum`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.cumulative_max([1, 3, 2]).tolist()
    /// [1, 3, 3]
    fn cumulative_max(x, /, axis: Option<Axis> = None, *, reverse: bool = false) |graph| {
        cumulative_extreme(graph, Cumulative::Max, x, axis, reverse)
    };

    /// Return the minimum of all elements up to and including each one.
    ///
    /// Parameters and errors are the same as for `cumulative_sum`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.cumulative_min([3, 1, 2]).tolist()
    /// [3, 1, 1]
    fn cumulative_min(x, /, axis: Option<Axis> = None, *, reverse: bool = false) |graph| {
        cumulative_extreme(graph, Cumulative::Min, x, axis, reverse)
    };
}

/// Folds each window with `function(element, accumulator)`, inside a trace.
#[pyfunction]
#[pyo3(signature = (x, initial, function, dimensions, strides=None, padding=PaddingArg(WindowPadding::Valid), dilations=None))]
fn window_reduce(
    x: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    function: &Bound<'_, PyAny>,
    dimensions: Window,
    strides: Option<PerAxis>,
    padding: PaddingArg,
    dilations: Option<PerAxis>,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let (trace, mut values) = super::control::in_trace(py, "window_reduce", [x, initial])?;
    if !numbers::are_of_nx() {
        // A boolean has no room for the numbers that a fold of booleans counts.
        let x = trace.build(|graph| {
            let (own, initial) = (graph.dtype(values[0].0), graph.dtype(values[1].0));
            let dtype = if own.is_pred() { initial } else { own };
            graph.as_type(values[0].0, dtype)
        });
        values[0].0 = x.or_raise()?;
    }
    let given = trace.build(|graph| {
        let ids = [values[0].0];
        let mut site = ArgumentContext::new("window_reduce", graph, &ids);
        site.argument = "dimensions";
        let dimensions = dimensions.into_value(&mut site)?;
        site.argument = "strides";
        let strides = strides.into_value(&mut site)?;
        site.argument = "dilations";
        let options = window(&dimensions, strides, padding.0, dilations.into_value(&mut site)?);
        Ok::<_, Error>((dimensions, options))
    });
    let (dimensions, options) = given.or_raise()?;
    let fold = trace.build(|graph| graph.open_window_fold(values[0].0, values[1].0));
    let fold = fold.map_err(|error| error.in_function("window_reduce")).or_raise()?;
    let call = || super::reduce::call_fold(&trace, function, fold.element(), fold.accumulator());
    let result = trace.drop_hooks_on_error(call)?;
    let result = result.ok_or_else(|| {
        let why = "function: must not use vectorized values; use nx.vmap of slices instead";
        argument_error("window_reduce", why)
    })?;
    super::reduce::fold_by_function(
        "window_reduce",
        function,
        trace,
        &fold,
        result,
        values,
        |graph, function, operands| {
            Ok(graph.window_reduce_with(function, operands, &dimensions, &options)?)
        },
    )
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    declared_functions(module)?;
    module.add_function(wrap_pyfunction!(window_reduce, module)?)
}
