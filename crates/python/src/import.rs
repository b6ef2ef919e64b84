//! Readers of StableHLO modules and ONNX models.

use pyo3::prelude::*;

/// Adds the classes and functions of this file to the module.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
