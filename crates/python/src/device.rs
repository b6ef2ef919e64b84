//! The device class, and moving data to devices.

use nxla_runtime::{Device, RawTensor, Trace, default_options, has_default_options, run_on};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::errors::{OrRaise, argument_error, kind_of, trace_error};
use crate::interrupt::wait_interruptible;
use crate::options::announce_plugin;
use crate::tensor::PyTensor;

/// A place for data and programs: the host, or a device of a client.
///
/// Devices compare equal to themselves and to their names.
#[pyclass(name = "Device", module = "nxla", frozen)]
pub(crate) struct PyDevice(pub(crate) Device);

#[pymethods]
impl PyDevice {
    /// The device with a name, such as ``"host"`` or ``"cpu:0"``.
    #[new]
    fn new(name: &Bound<'_, PyAny>) -> PyResult<Self> {
        device_from(name).map(Self)
    }

    /// The name, which is unique in the process.
    #[getter]
    fn name(&self) -> String {
        self.0.to_string()
    }

    /// The kind of hardware, such as ``"host"``, ``"cpu"`` or ``"cuda"``.
    #[getter]
    fn platform(&self) -> &str {
        self.0.platform()
    }

    /// The name of the client, which is unique in the process.
    #[getter]
    fn client(&self) -> String {
        self.0.client_name()
    }

    /// The index among the devices of its client.
    #[getter]
    fn index(&self) -> usize {
        self.0.index()
    }

    /// The model as reported by the plugin; ``"host"`` for the host.
    #[getter]
    fn kind(&self) -> &str {
        self.0.description().map_or("host", |description| description.kind())
    }

    /// Return the memory in bytes: ``in_use``, and ``peak``, ``limit``, ``pool`` and
    /// ``largest_block`` if the plugin counts them. None without statistics, as on the host.
    fn memory_stats<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(memory) = self.0.memory().or_raise()? else { return Ok(None) };
        let stats = PyDict::new(py);
        stats.set_item("in_use", memory.in_use)?;
        let others = [
            ("peak", memory.peak),
            ("limit", memory.limit),
            ("pool", memory.pool),
            ("largest_block", memory.largest_block),
        ];
        for (name, bytes) in others {
            if let Some(bytes) = bytes {
                stats.set_item(name, bytes)?;
            }
        }
        Ok(Some(stats))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(other) = other.cast::<PyDevice>() {
            return Ok(self.0 == other.get().0);
        }
        match other.cast::<PyString>() {
            Ok(name) => Ok(*name.to_cow()? == self.0.to_string()),
            Err(_) => Ok(false),
        }
    }

    /// The hash of the name, to which the device compares equal.
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, &self.0.to_string()).hash()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Device('{}')", self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.to_string(),))
    }
}

/// A device, passed as an object or by its name.
pub(crate) fn device_from(value: &Bound<'_, PyAny>) -> PyResult<Device> {
    if let Ok(device) = value.cast::<PyDevice>() {
        return Ok(device.get().0.clone());
    }
    let Ok(name) = value.cast::<PyString>() else {
        let kind = kind_of(value)?;
        let why = format!("must be a device or the name of a device; got {kind}");
        return Err(argument_error("device", why));
    };
    let (py, name) = (value.py(), name.to_cow()?);
    if name == "host" {
        return Ok(Device::HOST);
    }
    announce_plugin(py)?;
    py.detach(|| Device::from_name(&name)).or_raise()
}

/// The device of new data, which traced values do not have.
fn requested_device(device: &Bound<'_, PyAny>) -> PyResult<Device> {
    if Trace::is_entered() {
        return Err(trace_error(
            "device: must not be passed in a trace, because a traced value is on the device of \
             its program; omit device=, or create the tensor outside the function",
        ));
    }
    device_from(device)
}

/// The host, the devices of XLA's default client if a plugin is installed, and the devices of all
/// other clients.
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<Vec<PyDevice>> {
    announce_plugin(py)?;
    let devices = py.detach(nxla_runtime::devices).or_raise()?;
    Ok(devices.into_iter().map(PyDevice).collect())
}

/// Calls a function whose operations run on a device, regardless of the default options.
#[pyfunction]
#[pyo3(signature = (device, function, *args))]
fn on_device<'py>(
    device: &Bound<'py, PyAny>,
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let _options = run_on(&requested_device(device)?);
    function.call1(args)
}

/// Moves data to a device, or to the device of new data in the default options.
#[pyfunction]
#[pyo3(signature = (x, device=None))]
fn place(x: &Bound<'_, PyTensor>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
    let stays = || Ok(x.clone().into_any().unbind());
    let selected = match device {
        Some(device) => Some(requested_device(device)?),
        None if Trace::is_entered() || !has_default_options() => return stays(),
        None => default_options().selected_device().or_raise()?,
    };
    match selected {
        Some(selected) => to_device(x, &selected, None),
        None => stays(),
    }
}

/// The tensor if it is on the device, else a copy there. `copy` requires or forbids a copy.
pub(crate) fn to_device(
    x: &Bound<'_, PyTensor>,
    device: &Device,
    copy: Option<bool>,
) -> PyResult<Py<PyAny>> {
    let (py, data) = (x.py(), &x.get().tensor());
    let current = data.device();
    match copy {
        None | Some(false) if current == *device => return Ok(x.clone().into_any().unbind()),
        Some(false) => {
            let why =
                format!("copy: must not be False to copy a tensor from {current} to {device}");
            return Err(argument_error("to_device", why));
        }
        None | Some(true) => {}
    }
    wrap_copy(py, data, device, |data| data.copy_to(device))
}

/// Moves a tensor and frees the original.
pub(crate) fn transfer(x: &Bound<'_, PyTensor>, device: &Device) -> PyResult<Py<PyAny>> {
    let mut moved = transfer_to_device(x.py(), std::slice::from_ref(x), device)?;
    Ok(moved.remove(0))
}

/// Moves tensors to a device and frees the originals. Each buffer is moved once.
#[pyfunction]
fn transfer_all(
    py: Python<'_>,
    tensors: Vec<Bound<'_, PyTensor>>,
    device: &Bound<'_, PyAny>,
) -> PyResult<Vec<Py<PyAny>>> {
    transfer_to_device(py, &tensors, &requested_device(device)?)
}

fn transfer_to_device(
    py: Python<'_>,
    tensors: &[Bound<'_, PyTensor>],
    device: &Device,
) -> PyResult<Vec<Py<PyAny>>> {
    let data: Vec<RawTensor> = tensors.iter().map(|x| x.get().tensor()).collect();
    data.iter().try_for_each(|data| wait_for_copy(py, data, device))?;
    let moved = py.detach(|| RawTensor::transfer_all(&data, device)).or_raise()?;
    let pairs = tensors.iter().zip(moved);
    let wrap = |(x, moved): (&Bound<'_, PyTensor>, RawTensor)| {
        if x.get().tensor().is(&moved) {
            Ok(x.clone().into_any().unbind())
        } else {
            PyTensor::wrap(py, moved)
        }
    };
    pairs.map(wrap).collect()
}

/// Copies data without blocking other threads.
fn wrap_copy(
    py: Python<'_>,
    data: &RawTensor,
    to: &Device,
    copy: impl FnOnce(&RawTensor) -> nxla_runtime::Result<RawTensor> + Send,
) -> PyResult<Py<PyAny>> {
    wait_for_copy(py, data, to)?;
    PyTensor::wrap(py, py.detach(|| copy(data)).or_raise()?)
}

/// Waits for data whose copy goes through the host; the wait can be interrupted.
fn wait_for_copy(py: Python<'_>, data: &RawTensor, to: &Device) -> PyResult<()> {
    if data.device().client() != to.client() && !data.is_released().or_raise()? {
        wait_interruptible(py, data)
    } else {
        Ok(())
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDevice>()?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(on_device, module)?)?;
    module.add_function(wrap_pyfunction!(place, module)?)?;
    module.add_function(wrap_pyfunction!(transfer_all, module)?)
}
