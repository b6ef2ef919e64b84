//! Tracebacks without the frames of the package.
//!
//! An error in a traced function would otherwise show the frames of `grad`, `vmap` and `scan`
//! between the user's frames, and an error of an eager function would end with frames of the package.
//! The environment variable `NXLA_FULL_TRACEBACKS=1` keeps all frames.

use std::sync::LazyLock;

use pyo3::exceptions::PyBaseException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTraceback;

use crate::errors::is_of_nxla;
use crate::source::is_internal;

static IS_FULL: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("NXLA_FULL_TRACEBACKS").is_some_and(|value| value == "1"));

/// Removes the frames of the package from the traceback of an exception. An exception that is not
/// of the package keeps all frames if the package itself raises it, since it may be a bug.
pub(crate) fn without_package_frames(py: Python<'_>, error: PyErr) -> PyErr {
    if !*IS_FULL && let Err(failed) = filter(py, &error) {
        return failed;
    }
    error
}

/// Removes the frames of the package from the traceback of an exception that a function raises.
#[pyfunction]
fn filter_traceback(error: &Bound<'_, PyBaseException>) -> PyResult<()> {
    let py = error.py();
    let raised = without_package_frames(py, PyErr::from_value(error.clone().into_any()));
    // In Python 3.11 `PyErr` stores the traceback itself and does not set it on the exception.
    error.setattr(intern!(py, "__traceback__"), raised.traceback(py))
}

fn filter(py: Python<'_>, error: &PyErr) -> PyResult<()> {
    let mut entry = error.traceback(py).map(Bound::into_any);
    let (mut kept, mut count, mut ends_inside) = (Vec::new(), 0, false);
    while let Some(current) = entry {
        let code = current.getattr(intern!(py, "tb_frame"))?.getattr(intern!(py, "f_code"))?;
        let next = current.getattr(intern!(py, "tb_next"))?;
        (count, ends_inside) = (count + 1, is_internal(&code)?);
        if !ends_inside {
            kept.push(current);
        }
        entry = (!next.is_none()).then_some(next);
    }
    if kept.len() == count || ends_inside && !is_of_nxla(py, error)? {
        return Ok(());
    }
    let class = py.get_type::<PyTraceback>();
    let mut rest: Option<Bound<'_, PyAny>> = None;
    for entry in kept.into_iter().rev() {
        let [frame, instruction, line] = [
            entry.getattr(intern!(py, "tb_frame"))?,
            entry.getattr(intern!(py, "tb_lasti"))?,
            entry.getattr(intern!(py, "tb_lineno"))?,
        ];
        rest = Some(class.call1((rest, frame, instruction, line))?);
    }
    let rest = rest.map(Bound::cast_into::<PyTraceback>).transpose()?;
    error.set_traceback(py, rest);
    Ok(())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(filter_traceback, module)?)
}
