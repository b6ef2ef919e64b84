//! Programs over several devices.

use std::sync::Arc;

use nxla_runtime::graph::{Layout, sharding_note};
use nxla_runtime::{Device, Divided, Mesh, Sharding, run_watched};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::debug;
use crate::device::PyDevice;
use crate::errors::OrRaise;
use crate::interrupt::{interruptible, wait_interruptible};
use crate::options::{announce_plugin, options_from};
use crate::program::PyExpression;
use crate::tensor::PyTensor;

/// Devices along named axes; layouts assign the axes of a tensor to these axes.
#[pyclass(name = "DeviceMesh", module = "nxla._core", frozen)]
struct PyMesh(Mesh);

#[pymethods]
impl PyMesh {
    /// By default the devices of the default client.
    #[new]
    #[pyo3(signature = (axes, devices=None))]
    fn new(
        py: Python<'_>,
        axes: Vec<(String, usize)>,
        devices: Option<Vec<PyRef<'_, PyDevice>>>,
    ) -> PyResult<Self> {
        let mesh = match devices {
            None => {
                announce_plugin(py)?;
                py.detach(|| Mesh::new(axes))
            }
            Some(devices) => {
                let devices: Vec<Device> = devices.iter().map(|device| device.0.clone()).collect();
                Mesh::with_devices(axes, &devices)
            }
        };
        mesh.or_raise().map(Self)
    }

    /// The devices, in row-major order.
    #[getter]
    fn devices(&self) -> PyResult<Vec<PyDevice>> {
        Ok(self.0.devices().or_raise()?.into_iter().map(PyDevice).collect())
    }

    /// Checks that a layout contains axes of the mesh, each at most once.
    fn check(&self, layout: Layout) -> PyResult<()> {
        self.sharding(layout).map(drop)
    }

    /// The shape of the part on one device.
    fn part(&self, shape: Vec<usize>, layout: Layout) -> PyResult<Vec<usize>> {
        let part = self.sharding(layout)?.part(&shape.into()).or_raise()?;
        Ok(part.iter().copied().collect())
    }

    /// The start of each device's part along each axis.
    fn starts(&self, shape: Vec<usize>, layout: Layout) -> PyResult<Vec<Vec<usize>>> {
        self.sharding(layout)?.starts(&shape.into()).or_raise()
    }

    /// Sends each device its part of a tensor.
    fn divide(
        &self,
        py: Python<'_>,
        tensor: PyRef<'_, PyTensor>,
        layout: Layout,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let (sharding, tensor) = (self.sharding(layout)?, tensor.tensor());
        wait_interruptible(py, &tensor)?;
        let parts = py.detach(|| sharding.divide(&tensor)).or_raise()?;
        parts.into_iter().map(|part| PyTensor::wrap(py, part)).collect()
    }

    /// The whole tensor of a shape, from the parts of the devices.
    fn gather(
        &self,
        py: Python<'_>,
        parts: Vec<PyRef<'_, PyTensor>>,
        shape: Vec<usize>,
        layout: Layout,
    ) -> PyResult<Py<PyAny>> {
        let sharding = self.sharding(layout)?;
        let parts: Vec<_> = parts.iter().map(|part| part.tensor()).collect();
        parts.iter().try_for_each(|part| wait_interruptible(py, part))?;
        let whole = py.detach(|| sharding.gather(&parts, &shape.into())).or_raise()?;
        PyTensor::wrap(py, whole.into())
    }
}

impl PyMesh {
    fn sharding(&self, layout: Layout) -> PyResult<Sharding> {
        Sharding::new(&self.0, layout).or_raise()
    }

    fn shardings(&self, layouts: Vec<Layout>) -> PyResult<Vec<Sharding>> {
        layouts.into_iter().map(|layout| self.sharding(layout)).collect()
    }
}

/// The attribute that sets the sharding of a value of this rank in XLA.
#[pyfunction]
#[pyo3(name = "sharding_note")]
fn note(layout: Layout, rank: usize) -> String {
    sharding_note(&layout, rank)
}

/// A compiled expression that is divided over a mesh.
#[pyclass(name = "Divided", module = "nxla._core", frozen)]
struct PyDivided(Arc<Divided>);

#[pymethods]
impl PyDivided {
    #[new]
    #[pyo3(signature = (function, expression, mesh, inputs, outputs=None, options=None))]
    fn new(
        py: Python<'_>,
        function: String,
        expression: &PyExpression,
        mesh: &PyMesh,
        inputs: Vec<Layout>,
        outputs: Option<Vec<Layout>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let inputs = mesh.shardings(inputs)?;
        let outputs = outputs.map(|outputs| mesh.shardings(outputs)).transpose()?;
        let (options, _) = options_from(options)?;
        let (program, mesh) = (expression.program.clone(), mesh.0.clone());
        let compile = move || {
            Divided::compile(&function, &program, &options, &mesh, &inputs, outputs.as_deref())
        };
        let divided =
            interruptible(py, |interrupt| run_watched("nxla compile", compile, interrupt))?;
        Ok(Self(Arc::new(divided)))
    }

    /// The StableHLO module before the division.
    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    /// Runs it on a list of parts for each device, and returns a list of results for each device.
    fn run(
        &self,
        py: Python<'_>,
        parts: Vec<Vec<PyRef<'_, PyTensor>>>,
    ) -> PyResult<Vec<Vec<Py<PyAny>>>> {
        let parts: Vec<Vec<_>> =
            parts.iter().map(|list| list.iter().map(|part| part.tensor()).collect()).collect();
        let divided = self.0.clone();
        // XLA runs small programs, loops among them, on the thread that starts them.
        let run = move || divided.run(&parts);
        let results = interruptible(py, |interrupt| run_watched("nxla run", run, interrupt))?;
        for list in &results {
            debug::check_tensors(py, "jit", list)?;
        }
        let wrap = |list: Vec<_>| list.into_iter().map(|part| PyTensor::wrap(py, part)).collect();
        results.into_iter().map(wrap).collect()
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMesh>()?;
    module.add_class::<PyDivided>()?;
    module.add_function(wrap_pyfunction!(note, module)?)
}
