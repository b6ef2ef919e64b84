//! Profiles, memory reports, and properties of plugins.

use std::path::PathBuf;

use nxla_runtime::host::{LiveMemory, host_memory};
use nxla_runtime::pjrt::{Client, NamedValue, Plugin};
use nxla_runtime::xla::client_options;
use nxla_runtime::{Device, finish_profile, known_devices};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use crate::errors::OrRaise;

/// Starts a recording; returns whether it was off before.
#[pyfunction]
fn start_profile() -> bool {
    nxla_runtime::start_profile()
}

/// Stops the recording and returns the events as JSON.
#[pyfunction]
#[pyo3(name = "finish_profile")]
fn finish(py: Python<'_>) -> Option<String> {
    py.detach(finish_profile)
}

/// For the host and each used device, by name: the bytes and the number of its live tensors, and the
/// peak of the bytes.
#[pyfunction]
fn memory_report(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let report = PyDict::new(py);
    let figures = |live: LiveMemory| {
        [("bytes", live.bytes), ("tensors", live.tensors), ("peak", live.peak)].into_py_dict(py)
    };
    report.set_item(Device::HOST.to_string(), figures(host_memory())?)?;
    for device in known_devices() {
        let Some(description) = device.description() else { continue };
        report.set_item(device.to_string(), figures(description.live_memory())?)?;
    }
    Ok(report)
}

/// The properties of a plugin, and the devices of a client.
#[pyfunction]
fn plugin_report(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let open = || {
        let plugin = Plugin::load(&path)?;
        let client = Client::new(&plugin, &client_options(&path))?;
        Ok::<_, nxla_runtime::pjrt::Error>((plugin, client))
    };
    let (plugin, client) = py.detach(open).map_err(nxla_runtime::Error::from).or_raise()?;
    let report = PyDict::new(py);
    let (major, minor) = plugin.api_version();
    report.set_item("api", format!("{major}.{minor}"))?;
    report.set_item("calls_host", client.calls_host())?;
    report.set_item("platform", client.platform_name())?;
    report.set_item("platform_version", client.platform_version())?;
    let attributes = PyDict::new(py);
    for (name, value) in plugin.attributes() {
        attributes.set_item(name, text(value))?;
    }
    report.set_item("attributes", attributes)?;
    let mut devices = Vec::new();
    for device in client.devices() {
        let memory = client.memory_of(device).map_err(nxla_runtime::Error::from).or_raise()?;
        let described = PyDict::new(py);
        described.set_item("kind", device.kind())?;
        described.set_item("description", device.debug_string())?;
        described.set_item("in_use", memory.map(|memory| memory.in_use))?;
        described.set_item("limit", memory.and_then(|memory| memory.limit))?;
        described.set_item("pool", memory.and_then(|memory| memory.pool))?;
        devices.push(described);
    }
    report.set_item("devices", devices)?;
    Ok(report)
}

fn text(value: &NamedValue) -> String {
    match value {
        NamedValue::String(text) => text.clone(),
        NamedValue::Int64(number) => number.to_string(),
        NamedValue::Int64List(list) => {
            list.iter().map(i64::to_string).collect::<Vec<_>>().join(".")
        }
        NamedValue::Float(number) => number.to_string(),
        NamedValue::Bool(value) => value.to_string(),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(start_profile, module)?)?;
    module.add_function(wrap_pyfunction!(finish, module)?)?;
    module.add_function(wrap_pyfunction!(memory_report, module)?)?;
    module.add_function(wrap_pyfunction!(plugin_report, module)?)
}
