//! Derivatives beyond the gradient, between whose halves Python runs the function.

use std::sync::Mutex;

use nxla_runtime::{Differentiable, Expr, LinearMap, Mode, Tape, Trace};
use pyo3::prelude::*;

use crate::errors::{OrRaise, argument_error, trace_error};
use crate::expr::PyExpr;
use crate::function::output;
use crate::source;

/// A function that is being traced: ``stand_ins`` are what it is called with.
#[pyclass(name = "DerivativeTape", module = "nxla", frozen)]
struct PyTape {
    trace: Trace,
    tape: Mutex<Option<Tape>>,
}

impl PyTape {
    fn take(&self) -> PyResult<Tape> {
        let mut tape = self.tape.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tape.take().ok_or_else(|| trace_error("this derivative is finished"))
    }

    fn with<T>(&self, read: impl FnOnce(&Tape) -> PyResult<T>) -> PyResult<T> {
        let tape = self.tape.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        read(tape.as_ref().ok_or_else(|| trace_error("this derivative is finished"))?)
    }
}

#[pymethods]
impl PyTape {
    /// Starts a derivative with respect to values of the current trace.
    #[new]
    fn new(values: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(trace) = Trace::current() else {
            return Err(trace_error("a derivative is taken inside a trace"));
        };
        let values = leaves(&trace, values)?;
        let tape = Tape::begin(&trace, &values).or_raise()?;
        Ok(Self { trace, tape: Mutex::new(Some(tape)) })
    }

    /// What the function is to be called with, one for each value.
    #[getter]
    fn stand_ins(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        wrap(py, self.with(|tape| Ok(tape.stand_ins()))?)
    }

    /// The tape to take instead, with the function called again, if results have vectorized axes
    /// that the stand-ins have not: each entry has cotangents of its own then.
    fn per_entry(&self, results: Vec<Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        let results = leaves(&self.trace, results)?;
        let again = self.with(|tape| tape.per_entry(&results).or_raise())?;
        let trace = || self.trace.clone();
        Ok(again.map(|tape| Self { trace: trace(), tape: Mutex::new(Some(tape)) }))
    }

    /// Ends the tracing: the function gave these results, and more that is passed on.
    #[pyo3(signature = (results, passed_on = Vec::new()))]
    fn close(
        &self,
        results: Vec<Bound<'_, PyAny>>,
        passed_on: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<PyDifferentiable> {
        let results = leaves(&self.trace, results)?;
        let passed_on = leaves(&self.trace, passed_on)?;
        let function = self.take()?.close(&results, &passed_on).or_raise()?;
        Ok(PyDifferentiable { trace: self.trace.clone(), function })
    }
}

/// A function that has been traced, with the values that it was called with.
#[pyclass(name = "Differentiable", module = "nxla", frozen)]
struct PyDifferentiable {
    trace: Trace,
    function: Differentiable,
}

/// Nodes for Python.
type Values = Vec<Py<PyAny>>;

#[pymethods]
impl PyDifferentiable {
    /// The results with what is passed on, and how the results change.
    fn jvp(&self, py: Python<'_>, tangents: Vec<Bound<'_, PyAny>>) -> PyResult<(Values, Values)> {
        let tangents = leaves(&self.trace, tangents)?;
        source::mark(py, &self.trace)?;
        let (results, changes) = py.detach(|| self.function.jvp(&tangents)).or_raise()?;
        Ok((wrap(py, results)?, wrap(py, changes)?))
    }

    /// The results with what is passed on, what a map has to know of the values, and the map.
    fn linear(&self, py: Python<'_>, forward: bool) -> PyResult<(Values, Values, PyLinearMap)> {
        source::mark(py, &self.trace)?;
        let mode = if forward { Mode::Forward } else { Mode::Reverse };
        let (results, found) = py.detach(|| self.function.linear(mode)).or_raise()?;
        let map = PyLinearMap { map: found.map };
        Ok((wrap(py, results)?, wrap(py, found.known)?, map))
    }

    /// The results with what is passed on, and for each result a derivative by each value; in the cheaper mode if
    /// ``forward`` is None.
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

/// A derivative at one point, to be applied in any trace.
#[pyclass(name = "LinearMap", module = "nxla", frozen)]
struct PyLinearMap {
    map: LinearMap,
}

#[pymethods]
impl PyLinearMap {
    /// What the map gives, from what it has to know and its arguments.
    fn apply(
        &self,
        py: Python<'_>,
        known: Vec<Bound<'_, PyAny>>,
        arguments: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Values> {
        let Some(trace) = Trace::current() else {
            return Err(trace_error("a derivative is applied inside a trace"));
        };
        let (known, arguments) = (leaves(&trace, known)?, leaves(&trace, arguments)?);
        source::mark(py, &trace)?;
        wrap(py, self.map.apply(&trace, &known, &arguments).or_raise()?)
    }
}

fn wrap(py: Python<'_>, exprs: Vec<Expr>) -> PyResult<Values> {
    exprs.into_iter().map(|expr| PyExpr::wrap(py, expr)).collect()
}

/// Tensors, traced values and numbers as values of the trace.
fn leaves(trace: &Trace, values: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Expr>> {
    let mut found = Vec::with_capacity(values.len());
    for value in values {
        match output(trace, &value)? {
            Some(expr) => found.push(expr),
            None => {
                let kind = value.get_type().name()?;
                let why = format!("expected tensors to differentiate, got {kind}");
                return Err(argument_error("derivative", why));
            }
        }
    }
    Ok(found)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTape>()?;
    module.add_class::<PyDifferentiable>()?;
    module.add_class::<PyLinearMap>()
}
