//! The compiler of the trace under way, and the line that asks.

use pyo3::prelude::*;

/// The name of the compiler for which a function is being traced; None outside of a trace.
#[pyfunction]
fn current_compiler() -> Option<String> {
    nxla_runtime::current_compiler().map(|name| name.to_string())
}

/// The user's line that is running, as ``file.py:3``; None if there is none.
#[pyfunction]
fn user_line(py: Python<'_>) -> Option<String> {
    crate::source::current_line(py)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(current_compiler, module)?)?;
    module.add_function(wrap_pyfunction!(user_line, module)?)
}
