//! The compiler of the current trace, and the current source line.

use pyo3::prelude::*;

/// The name of the compiler of the current trace; None outside a trace.
#[pyfunction]
fn current_compiler() -> Option<String> {
    nxla_runtime::current_compiler().map(|name| name.to_string())
}

/// The current line of the user's code, as ``file.py:3``; None if unknown.
#[pyfunction]
fn user_line(py: Python<'_>) -> Option<String> {
    crate::source::current_line(py)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(current_compiler, module)?)?;
    module.add_function(wrap_pyfunction!(user_line, module)?)
}
