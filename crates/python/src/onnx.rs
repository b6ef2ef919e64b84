//! ONNX models as parts of programs.

use std::path::PathBuf;

use nxla_runtime::import::onnx::{Dim, Model, ValueInfo};
use nxla_runtime::{RawTensor, build_onnx, load_onnx, read_onnx};
use pyo3::prelude::*;

use crate::apply::{apply_parts, many};
use crate::dtype::PyDType;
use crate::errors::OrRaise;
use crate::tensor::PyTensor;
use crate::value::{FromPython, Value};

/// An ONNX model that was read; the base of ``from_onnx``.
#[pyclass(name = "OnnxModel", module = "nxla._core", frozen)]
pub(crate) struct PyOnnxModel(Model);

/// Name, dtype if declared, and the size or name of each axis if the rank is declared.
type PythonValue = (String, Option<PyDType>, Option<Vec<Option<String>>>);

fn values_to_python(values: &[ValueInfo]) -> Vec<PythonValue> {
    let dim = |dim: &Dim| match dim {
        Dim::Size(size) => Some(size.to_string()),
        Dim::Named(name) => Some(name.clone()),
        Dim::Any => None,
    };
    let shape = |value: &ValueInfo| Some(value.shape.as_ref()?.iter().map(dim).collect());
    values
        .iter()
        .map(|value| (value.name.clone(), value.dtype.map(PyDType), shape(value)))
        .collect()
}

#[pymethods]
impl PyOnnxModel {
    /// Reads a file, and the files with weights in the same folder.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| load_onnx(&path)).or_raise().map(Self)
    }

    /// Reads bytes.
    #[staticmethod]
    fn read(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        py.detach(|| read_onnx(data)).or_raise().map(Self)
    }

    /// The name of the graph.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Name, dtype and shape of each input.
    #[getter]
    fn inputs(&self) -> Vec<PythonValue> {
        values_to_python(self.0.inputs())
    }

    /// Name, dtype and shape of each output.
    #[getter]
    fn outputs(&self) -> Vec<PythonValue> {
        values_to_python(self.0.outputs())
    }

    /// Name and value of each weight.
    fn weights(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyAny>)>> {
        let weights = self.0.weights().iter();
        weights
            .map(|(name, value)| {
                Ok((name.clone(), PyTensor::wrap(py, RawTensor::from(value.clone()))?))
            })
            .collect()
    }

    /// Applies the model to weights and inputs.
    fn apply(
        &self,
        py: Python<'_>,
        weights: Vec<Bound<'_, PyAny>>,
        inputs: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let count = weights.len();
        let operands = weights.iter().chain(&inputs);
        let operands: Vec<Value> =
            operands.map(|value| Value::of(value, "from_onnx")).collect::<PyResult<_>>()?;
        apply_parts(py, "from_onnx", &operands, |graph, ids| {
            let (weights, inputs) = ids.split_at(count);
            many(build_onnx(&self.0, graph, weights, inputs))
        })
    }
}

/// Adds the class of this file to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyOnnxModel>()
}
