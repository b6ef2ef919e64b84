//! The compiler of the trace under way.

use pyo3::prelude::*;

/// The name of the compiler for which a function is being traced; None outside of a trace.
#[pyfunction]
fn current_compiler() -> Option<String> {
    nxla_runtime::current_compiler().map(|name| name.to_string())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(current_compiler, module)?)
}
