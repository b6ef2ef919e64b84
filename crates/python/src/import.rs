//! Readers of StableHLO modules and ONNX models.

use std::sync::Arc;

use nxla_runtime::RawTensor;
use nxla_runtime::import::stablehlo::{ExportTree, Module, ReadOptions, Weights};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::OrRaise;
use crate::program::PyExpression;
use crate::tensor::PyTensor;

/// The structures of the arguments and of the result, and the leaf of the arguments for each input.
type Signature<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Vec<usize>);

/// The expression of a module, the names of its inputs, the values of the inputs that were constants,
/// and the signature of an export of JAX.
type Imported<'py> = (PyExpression, Vec<Option<String>>, Vec<Py<PyAny>>, Option<Signature<'py>>);

/// Describes containers as the first line of a module of ``nx.export`` does: a number for a leaf, and
/// ``{kind: content}`` for a container.
fn structure_to_python<'py>(
    py: Python<'py>,
    tree: &ExportTree,
    leaf: &mut usize,
) -> PyResult<Bound<'py, PyAny>> {
    let container = PyDict::new(py);
    let mut list = |items: &[ExportTree]| {
        let items = items.iter().map(|item| structure_to_python(py, item, leaf));
        PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)
    };
    match tree {
        ExportTree::Leaf => {
            *leaf += 1;
            return Ok((*leaf - 1).into_pyobject(py)?.into_any());
        }
        ExportTree::None => container.set_item("value", py.None())?,
        ExportTree::Tuple(items) => container.set_item("tuple", list(items)?)?,
        ExportTree::List(items) => container.set_item("list", list(items)?)?,
        ExportTree::Dict(items) => {
            let inside = PyDict::new(py);
            for (key, item) in items {
                inside.set_item(key, structure_to_python(py, item, leaf)?)?;
            }
            container.set_item("dict", inside)?;
        }
    }
    Ok(container.into_any())
}

/// Returns the main function of a StableHLO module in any form, the names of its inputs, the constants
/// that become inputs with ``weights``, and the containers of an export of JAX.
#[pyfunction]
fn read_stablehlo<'py>(
    py: Python<'py>,
    content: &[u8],
    weights: bool,
    platform: Option<String>,
) -> PyResult<Imported<'py>> {
    let weights = if weights { Weights::Inputs } else { Weights::Constants };
    let options = ReadOptions { weights, platform };
    let module = py.detach(|| Module::from_bytes(content, &options));
    let module = module.map_err(nxla_runtime::Error::from).or_raise()?;
    let expression = PyExpression::of_program(Arc::new(module.program().clone()));
    let values =
        module.weights().iter().map(|value| PyTensor::wrap(py, RawTensor::from(value.clone())));
    let values = values.collect::<PyResult<Vec<_>>>()?;
    let signature = match module.signature() {
        Some(signature) => Some((
            structure_to_python(py, &signature.inputs, &mut 0)?,
            structure_to_python(py, &signature.outputs, &mut 0)?,
            signature.kept.clone(),
        )),
        None => None,
    };
    Ok((expression, module.input_names().to_vec(), values, signature))
}

/// Adds the classes and functions of this file to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_stablehlo, module)?)
}
