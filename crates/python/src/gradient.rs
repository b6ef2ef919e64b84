//! Gradients; Python runs the function.

use nxla_runtime::{Differentiated, Trace, values_and_gradients};
use pyo3::prelude::*;

use crate::derivative::{Values, leaves, wrap};
use crate::errors::{OrRaise, argument_error, kind_of, trace_error, user_error};
use crate::function::output;
use crate::source;

/// Calls a function with tracers for values of the current trace. The function returns the
/// differentiated value and its results. Returns the results in terms of the values, and the
/// gradients.
#[pyfunction]
fn values_and_grads(
    py: Python<'_>,
    values: Vec<Bound<'_, PyAny>>,
    function: &Bound<'_, PyAny>,
) -> PyResult<(Values, Values)> {
    let Some(trace) = Trace::current() else {
        return Err(trace_error("grad: must be called in a traced function"));
    };
    let values = leaves(&trace, "grad", values)?;
    let call = |tracers| {
        let (value, results): (Bound<'_, PyAny>, Vec<Bound<'_, PyAny>>) =
            function.call1((wrap(py, tracers)?,))?.extract()?;
        let Some(value) = output(&trace, &value)? else {
            let kind = kind_of(&value)?;
            let why = format!("function: must return a tensor to differentiate; got {kind}");
            return Err(argument_error("grad", why));
        };
        let results = leaves(&trace, "grad", results)?;
        source::mark(py, &trace)?;
        Ok(Differentiated { value, results, more: () })
    };
    let called = values_and_gradients(&trace, &values, |tracers| call(tracers).map_err(user_error));
    let (results, gradients, ()) = called.or_raise()?;
    Ok((wrap(py, results)?, wrap(py, gradients)?))
}

/// Returns whether the thread is tracing.
#[pyfunction]
fn is_tracing() -> bool {
    Trace::current().is_some()
}

/// Returns the number of derivatives that are being traced on the thread, each inside the function of
/// another one.
#[pyfunction]
fn derivative_depth() -> usize {
    nxla_runtime::derivative_depth()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(values_and_grads, module)?)?;
    module.add_function(wrap_pyfunction!(is_tracing, module)?)?;
    module.add_function(wrap_pyfunction!(derivative_depth, module)?)
}
