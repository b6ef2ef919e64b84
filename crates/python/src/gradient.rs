//! The two halves of a gradient, between which Python runs the function.

use std::sync::Mutex;

use nxla_runtime::{Gradient, Trace};
use pyo3::prelude::*;

use crate::errors::{OrRaise, argument_error, trace_error};
use crate::expr::PyExpr;
use crate::function::output;
use crate::source;

/// A gradient in the making: ``stand_ins`` are what the function is called with.
#[pyclass(name = "GradientTape", module = "nxla", frozen)]
struct PyGradient {
    trace: Trace,
    gradient: Mutex<Option<Gradient>>,
}

#[pymethods]
impl PyGradient {
    /// Starts a gradient with respect to values of the current trace.
    #[new]
    fn new(wrt: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(trace) = Trace::current() else {
            return Err(trace_error("a gradient is taken inside a trace"));
        };
        let wrt = wrt.iter().map(|value| leaf(&trace, value)).collect::<PyResult<Vec<_>>>()?;
        let gradient = trace.begin_gradient(&wrt).or_raise()?;
        Ok(Self { trace, gradient: Mutex::new(Some(gradient)) })
    }

    /// What the function is to be called with, one for each value.
    #[getter]
    fn stand_ins(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let gradient = self.gradient.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let gradient = gradient.as_ref().ok_or_else(finished)?;
        gradient.stand_ins().into_iter().map(|expr| PyExpr::wrap(py, expr)).collect()
    }

    /// The gradient to take instead, with the function called again, if ``value`` has vectorized
    /// axes that the stand-ins have not: each entry has a gradient of its own then.
    fn per_entry(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let value = leaf(&self.trace, value)?;
        let gradient = self.gradient.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let again = gradient.as_ref().ok_or_else(finished)?.per_entry(&value).or_raise()?;
        let with =
            |gradient| Self { trace: self.trace.clone(), gradient: Mutex::new(Some(gradient)) };
        Ok(again.map(with))
    }

    /// The results in terms of the values, and the gradients of the sum of ``value``.
    fn finish(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        results: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<Py<PyAny>>, Vec<Py<PyAny>>)> {
        let gradient =
            self.gradient.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let gradient = gradient.ok_or_else(finished)?;
        let value = leaf(&self.trace, value)?;
        let results =
            results.iter().map(|result| leaf(&self.trace, result)).collect::<PyResult<Vec<_>>>()?;
        source::mark(py, &self.trace)?;
        let (results, gradients) = py.detach(|| gradient.finish(&value, &results)).or_raise()?;
        let wrap = |exprs: Vec<nxla_runtime::Expr>| -> PyResult<Vec<Py<PyAny>>> {
            exprs.into_iter().map(|expr| PyExpr::wrap(py, expr)).collect()
        };
        Ok((wrap(results)?, wrap(gradients)?))
    }
}

/// A tensor, a traced value or a number as a value of the trace.
fn leaf(trace: &Trace, value: &Bound<'_, PyAny>) -> PyResult<nxla_runtime::Expr> {
    match output(trace, value)? {
        Some(expr) => Ok(expr),
        None => {
            let kind = value.get_type().name()?;
            Err(argument_error("grad", format!("expected one tensor to differentiate, got {kind}")))
        }
    }
}

fn finished() -> PyErr {
    trace_error("this gradient is finished")
}

/// Whether a trace is under way on this thread.
#[pyfunction]
fn is_tracing() -> bool {
    Trace::current().is_some()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGradient>()?;
    module.add_function(wrap_pyfunction!(is_tracing, module)?)
}
