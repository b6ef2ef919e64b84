//! Derivatives beyond the gradient; Python runs the function.

use nxla_runtime::{Called, Differentiable, LinearMap, Mode, RawExpr, Trace, differentiable};
use pyo3::prelude::*;

use crate::errors::{OrRaise, argument_error, trace_error, user_error};
use crate::expr::PyExpr;
use crate::function::output;
use crate::source;

/// Calls a function with tracers for values of the current trace. The function returns the
/// differentiated results and auxiliary results. Returns the traced function. Entries along
/// vectorized axes of the results have separate derivatives; with ``tangents``, only along axes of
/// the tangents.
#[pyfunction]
#[pyo3(signature = (values, function, tangents = None))]
fn trace_derivative(
    py: Python<'_>,
    values: Vec<Bound<'_, PyAny>>,
    function: &Bound<'_, PyAny>,
    tangents: Option<Vec<Bound<'_, PyAny>>>,
) -> PyResult<PyDifferentiable> {
    let Some(trace) = Trace::current() else {
        return Err(trace_error("derivative: must be called in a traced function"));
    };
    let values = leaves(&trace, "derivative", values)?;
    let tangents = tangents.map(|tangents| leaves(&trace, "derivative", tangents)).transpose()?;
    let call = |tracers| {
        let (results, passed_on): (Vec<Bound<'_, PyAny>>, Vec<Bound<'_, PyAny>>) =
            function.call1((wrap(py, tracers)?,))?.extract()?;
        let results = leaves(&trace, "derivative", results)?;
        let passed_on = leaves(&trace, "derivative", passed_on)?;
        Ok(Called { results, passed_on, more: () })
    };
    let call = |tracers| call(tracers).map_err(user_error);
    let traced = differentiable(&trace, &values, tangents.as_deref(), call);
    let (function, _, ()) = traced.or_raise()?;
    Ok(PyDifferentiable { trace, function })
}

/// A traced function with the values of its call.
#[pyclass(name = "Differentiable", module = "nxla", frozen)]
struct PyDifferentiable {
    trace: Trace,
    function: Differentiable,
}

/// Nodes for Python.
pub(crate) type Values = Vec<Py<PyAny>>;

#[pymethods]
impl PyDifferentiable {
    /// The results, the auxiliary results, and the tangents of the results.
    fn jvp(&self, py: Python<'_>, tangents: Vec<Bound<'_, PyAny>>) -> PyResult<(Values, Values)> {
        let tangents = leaves(&self.trace, "derivative", tangents)?;
        source::mark(py, &self.trace)?;
        let (results, changes) = py.detach(|| self.function.jvp(&tangents)).or_raise()?;
        Ok((wrap(py, results)?, wrap(py, changes)?))
    }

    /// The results, the auxiliary results, the residuals of a linear map, and the map.
    fn linear(&self, py: Python<'_>, forward: bool) -> PyResult<(Values, Values, PyLinearMap)> {
        source::mark(py, &self.trace)?;
        let mode = if forward { Mode::Forward } else { Mode::Reverse };
        let (results, found) = py.detach(|| self.function.linear(mode)).or_raise()?;
        let map = PyLinearMap { map: found.map };
        Ok((wrap(py, results)?, wrap(py, found.known)?, map))
    }

    /// The results, the auxiliary results, and for each result a derivative by each value; in the
    /// cheaper mode if ``forward`` is None.
    #[pyo3(signature = (forward = None))]
    fn jacobian(&self, py: Python<'_>, forward: Option<bool>) -> PyResult<(Values, Vec<Values>)> {
        source::mark(py, &self.trace)?;
        let mode = match forward {
            Some(true) => Mode::Forward,
            Some(false) => Mode::Reverse,
            None => self.function.cheaper_mode(),
        };
        let (results, rows) = py.detach(|| self.function.jacobian(mode)).or_raise()?;
        let rows = rows.into_iter().map(|row| wrap(py, row)).collect::<PyResult<_>>()?;
        Ok((wrap(py, results)?, rows))
    }

    /// The derivative of each element of a result by the same element of the value of the same
    /// position.
    fn diagonal(&self, py: Python<'_>) -> PyResult<Values> {
        source::mark(py, &self.trace)?;
        let found = py.detach(|| self.function.diagonal()).or_raise()?;
        wrap(py, found)
    }
}

/// A derivative at one point, which can be applied in any trace.
#[pyclass(name = "LinearMap", module = "nxla", frozen)]
struct PyLinearMap {
    map: LinearMap,
}

#[pymethods]
impl PyLinearMap {
    /// The results of the map, from its residuals and its arguments.
    fn apply(
        &self,
        py: Python<'_>,
        known: Vec<Bound<'_, PyAny>>,
        arguments: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Values> {
        let Some(trace) = Trace::current() else {
            return Err(trace_error("derivative: must be called in a traced function"));
        };
        let (known, arguments) =
            (leaves(&trace, "derivative", known)?, leaves(&trace, "derivative", arguments)?);
        source::mark(py, &trace)?;
        wrap(py, self.map.apply(&trace, &known, &arguments).or_raise()?)
    }
}

pub(crate) fn wrap(py: Python<'_>, exprs: Vec<RawExpr>) -> PyResult<Values> {
    exprs.into_iter().map(|expr| PyExpr::wrap(py, expr)).collect()
}

/// A tensor, a traced value or a number as a value of the trace.
fn leaf(trace: &Trace, function: &str, value: &Bound<'_, PyAny>) -> PyResult<RawExpr> {
    output(trace, value)?.ok_or_else(|| {
        let kind = value.get_type();
        argument_error(
            function,
            format!("values: must be tensors to be differentiated; got {kind}"),
        )
    })
}

/// Tensors, traced values and numbers as values of the trace.
pub(crate) fn leaves(
    trace: &Trace,
    function: &str,
    values: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<RawExpr>> {
    values.iter().map(|value| leaf(trace, function, value)).collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trace_derivative, module)?)?;
    module.add_class::<PyDifferentiable>()?;
    module.add_class::<PyLinearMap>()
}
