//! Programs over several devices.

use nxla_runtime::Settings;
use nxla_runtime::xla::{Divided, Mesh, mesh_devices};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::device::PyDevice;
use crate::errors::OrRaise;
use crate::options::{announce_plugin, options_from};
use crate::program::PyExpression;
use crate::tensor::PyTensor;

/// So many devices of one client.
#[pyfunction]
#[pyo3(name = "mesh_devices")]
fn devices(py: Python<'_>, count: usize) -> PyResult<Vec<PyDevice>> {
    announce_plugin(py)?;
    let devices = py.detach(|| mesh_devices(count, &Settings::new())).or_raise()?;
    Ok(devices.into_iter().map(PyDevice).collect())
}

/// Checks that axes of names and sizes can be laid over devices.
#[pyfunction]
fn check_mesh(axes: Vec<(String, usize)>, devices: Vec<PyRef<'_, PyDevice>>) -> PyResult<()> {
    mesh(axes, &devices).map(drop)
}

fn mesh(axes: Vec<(String, usize)>, devices: &[PyRef<'_, PyDevice>]) -> PyResult<Mesh> {
    let devices: Vec<_> = devices.iter().map(|device| device.0.clone()).collect();
    Mesh::new(axes, &devices).or_raise()
}

/// For each axis of a tensor the axes of the mesh along which it is divided.
type Layout = Vec<Vec<String>>;

/// An expression, divided over a mesh and compiled.
#[pyclass(name = "Divided", module = "nxla._core", frozen)]
struct PyDivided(Divided);

#[pymethods]
impl PyDivided {
    #[new]
    #[pyo3(signature = (expression, axes, devices, inputs, outputs=None, options=None))]
    fn new(
        py: Python<'_>,
        expression: &PyExpression,
        axes: Vec<(String, usize)>,
        devices: Vec<PyRef<'_, PyDevice>>,
        inputs: Vec<Layout>,
        outputs: Option<Vec<Layout>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mesh = mesh(axes, &devices)?;
        let (options, _) = options_from(options)?;
        let compile =
            || Divided::compile(&expression.program, &options, &mesh, &inputs, outputs.as_deref());
        py.detach(compile).or_raise().map(Self)
    }

    /// The text that was compiled, before it was divided.
    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    /// Runs it on a list of parts for each device, and gives a list of results for each.
    fn run(
        &self,
        py: Python<'_>,
        parts: Vec<Vec<PyRef<'_, PyTensor>>>,
    ) -> PyResult<Vec<Vec<Py<PyAny>>>> {
        let parts: Vec<Vec<_>> =
            parts.iter().map(|list| list.iter().map(|part| part.tensor()).collect()).collect();
        let results = py.detach(|| self.0.run(&parts)).or_raise()?;
        let wrap = |list: Vec<_>| list.into_iter().map(|part| PyTensor::wrap(py, part)).collect();
        results.into_iter().map(wrap).collect()
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDivided>()?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(check_mesh, module)?)
}
