//! Tensors in files of NumPy and safetensors.

use std::io::Cursor;

use nxla_files::{
    FileError, SafeTensors, read_npy, read_npz, read_safetensors, write_npy, write_npz,
    write_safetensors,
};
use nxla_runtime::{HostTensor, RawTensor};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{argument_error, exception, format_error};
use crate::tensor::{PyTensor, bytes_object};

/// Tensors by name.
type Named<'py> = Vec<(String, PyRef<'py, PyTensor>)>;

/// Returns the exception for an error of a file in a function.
fn exception_of(function: &str, error: FileError) -> PyErr {
    match error {
        FileError::Damaged(why) => format_error(function, why),
        FileError::Archive => format_error(function, format!("{error}; use nx.load_numpy_archive")),
        FileError::Array => format_error(function, format!("{error}; use nx.load_numpy")),
        FileError::Memory(error) => exception(error.into()),
        error => argument_error(function, error.to_string()),
    }
}

fn on_host(py: Python<'_>, function: &str, x: &PyTensor) -> PyResult<HostTensor> {
    if x.tensor().vectors().is_empty() {
        x.host(py)
    } else {
        let why = "tensor: must not have vectorized axes; use devectorize";
        Err(argument_error(function, why))
    }
}

fn all_on_host(
    py: Python<'_>,
    function: &str,
    tensors: Named<'_>,
) -> PyResult<Vec<(String, HostTensor)>> {
    let named = tensors.into_iter();
    named.map(|(name, x)| Ok((name, on_host(py, function, &x)?))).collect()
}

fn to_tensors(
    py: Python<'_>,
    tensors: Vec<(String, HostTensor)>,
) -> PyResult<Vec<(String, Py<PyAny>)>> {
    let named = tensors.into_iter();
    named.map(|(name, x)| Ok((name, PyTensor::wrap(py, RawTensor::from(x))?))).collect()
}

/// Returns the array in the bytes of a ``.npy`` file.
#[pyfunction]
fn tensor_from_npy(py: Python<'_>, function: &str, data: &[u8]) -> PyResult<Py<PyAny>> {
    let read = py.detach(|| read_npy(data)).map_err(|error| exception_of(function, error))?;
    PyTensor::wrap(py, RawTensor::from(read))
}

/// Returns the arrays in the bytes of a ``.npz`` archive, with their names.
#[pyfunction]
fn tensors_from_npz(
    py: Python<'_>,
    function: &str,
    data: &[u8],
) -> PyResult<Vec<(String, Py<PyAny>)>> {
    let read = py.detach(|| read_npz(Cursor::new(data)));
    to_tensors(py, read.map_err(|error| exception_of(function, error))?)
}

/// Returns the tensors in bytes of the format safetensors with their names, and names and dtypes of
/// the tensors that nxla does not support.
#[pyfunction]
fn tensors_from_safetensors(
    py: Python<'_>,
    function: &str,
    data: &[u8],
) -> PyResult<(Vec<(String, Py<PyAny>)>, Vec<(String, String)>)> {
    let read = py.detach(|| read_safetensors(data));
    let SafeTensors { tensors, unsupported, .. } =
        read.map_err(|error| exception_of(function, error))?;
    Ok((to_tensors(py, tensors)?, unsupported))
}

/// Returns the bytes of a ``.npy`` file.
#[pyfunction]
fn tensor_to_npy<'py>(
    py: Python<'py>,
    function: &str,
    x: PyRef<'py, PyTensor>,
) -> PyResult<Bound<'py, PyBytes>> {
    let host = on_host(py, function, &x)?;
    let data = py.detach(|| write_npy(&host)).map_err(|error| exception_of(function, error))?;
    bytes_object(py, &data)
}

/// Returns the bytes of a ``.npz`` archive.
#[pyfunction]
fn tensors_to_npz<'py>(
    py: Python<'py>,
    function: &str,
    tensors: Named<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let tensors = all_on_host(py, function, tensors)?;
    let data = py.detach(|| write_npz(&tensors)).map_err(|error| exception_of(function, error))?;
    bytes_object(py, &data)
}

/// Returns bytes of the format safetensors.
#[pyfunction]
fn tensors_to_safetensors<'py>(
    py: Python<'py>,
    function: &str,
    tensors: Named<'py>,
    metadata: Vec<(String, String)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let tensors = all_on_host(py, function, tensors)?;
    let data = py.detach(|| write_safetensors(&tensors, metadata));
    bytes_object(py, &data.map_err(|error| exception_of(function, error))?)
}

/// Adds the functions of this file to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(tensor_from_npy, module)?)?;
    module.add_function(wrap_pyfunction!(tensors_from_npz, module)?)?;
    module.add_function(wrap_pyfunction!(tensors_from_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(tensor_to_npy, module)?)?;
    module.add_function(wrap_pyfunction!(tensors_to_npz, module)?)?;
    module.add_function(wrap_pyfunction!(tensors_to_safetensors, module)?)
}
