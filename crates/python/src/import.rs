//! Readers of StableHLO modules and ONNX models.

use std::sync::Arc;

use nxla_runtime::RawTensor;
use nxla_runtime::import::stablehlo::{Module, Weights};
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::program::PyExpression;
use crate::tensor::PyTensor;

/// The expression of a module, the names of its inputs and outputs, and the values of the inputs that
/// were constants.
type Imported = (PyExpression, Vec<Option<String>>, Vec<Option<String>>, Vec<Py<PyAny>>);

/// Returns the main function of a StableHLO module, the names of its inputs and outputs, and the
/// constants that become inputs with ``weights``.
#[pyfunction]
fn read_stablehlo(py: Python<'_>, text: &str, weights: bool) -> PyResult<Imported> {
    let weights = if weights { Weights::Inputs } else { Weights::Constants };
    let module = py.detach(|| Module::from_text_with(text, weights));
    let module = module.map_err(nxla_runtime::Error::from).or_raise()?;
    let expression = PyExpression::of_program(Arc::new(module.program().clone()));
    let values =
        module.weights().iter().map(|value| PyTensor::wrap(py, RawTensor::from(value.clone())));
    let values = values.collect::<PyResult<Vec<_>>>()?;
    Ok((expression, module.input_names().to_vec(), module.output_names().to_vec(), values))
}

/// Adds the classes and functions of this file to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_stablehlo, module)?)
}
