//! Tensors on devices that other libraries read or have made: the exchange of memory by DLPack.

use nxla_runtime::host::{DType, HostTensor};
use nxla_runtime::pjrt::ForeignMemory;
use nxla_runtime::{Device, RawTensor, xla};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::apply::in_dtype;
use crate::arrays::{Sharing, must_copy};
use crate::dlpack::{self, CPU, CUDA, CudaMemory, Exportable};
use crate::errors::OrRaise;
use crate::interrupt::{read_interruptible, wait_interruptible};
use crate::options::announce_plugin;
use crate::tensor::PyTensor;

/// A device in the terms of DLPack: its kind and its number.
type DlDevice = (i32, i32);

/// The arguments of `__dlpack__`.
pub(crate) struct Request {
    pub(crate) max_version: Option<(u32, u32)>,
    pub(crate) device: Option<DlDevice>,
    pub(crate) copy: Option<bool>,
}

/// The device from which other libraries read a tensor: its CUDA device, or else the host.
pub(crate) fn device_of(tensor: &RawTensor) -> DlDevice {
    match xla::cuda_number(&tensor.device()) {
        Some(number) => (CUDA, number),
        None => (CPU, 0),
    }
}

/// A capsule with the memory of a tensor, which is computed when the function returns. The memory is
/// therefore ready on every stream of the consumer.
///
/// The unversioned struct has no flag that forbids writes, so it contains a copy.
pub(crate) fn export(py: Python<'_>, tensor: &RawTensor, request: &Request) -> PyResult<Py<PyAny>> {
    let data = tensor.data();
    dlpack::check_exportable(data.dtype())?;
    let home = device_of(data);
    let refused = |why: String| Err(PyBufferError::new_err(why));
    match (request.device.unwrap_or(home), home) {
        ((CPU, _), (CUDA, _)) if request.copy == Some(false) => {
            return refused(
                "__dlpack__: copy: must not be False to export a tensor on a device to the host"
                    .into(),
            );
        }
        ((CPU, _), _) => {}
        (wanted, home) if wanted == home => return export_device(py, data, home.1, request),
        (wanted, home) => {
            return refused(format!(
                "__dlpack__: dl_device: must be (1, 0), the host, or the device of the tensor; got \
                 {wanted:?} for a tensor on {home:?}"
            ));
        }
    }
    let (versioned, copied) = request.form();
    let host = read_interruptible(py, data)?;
    let host = if copied || !versioned {
        HostTensor::from_bytes(host.dtype(), host.shape().clone(), host.bytes()).or_raise()?
    } else {
        host
    };
    dlpack::export(py, Exportable::Host(host), versioned, copied)
}

impl Request {
    /// Returns two booleans: the consumer knows the versioned struct, and it requires a copy.
    fn form(&self) -> (bool, bool) {
        let versioned = self.max_version.is_some_and(|(major, _)| major >= 1);
        (versioned, self.copy.unwrap_or(false))
    }
}

fn export_device(
    py: Python<'_>,
    data: &RawTensor,
    number: i32,
    request: &Request,
) -> PyResult<Py<PyAny>> {
    let (versioned, copied) = request.form();
    wait_interruptible(py, data)?;
    let lend = || {
        if copied || !versioned {
            xla::lend(&data.copy_to(&data.device())?)
        } else {
            xla::lend(data)
        }
    };
    let reference = py.detach(lend).or_raise()?;
    let reference = reference.expect("every dtype of DLPack is stored in whole bytes");
    dlpack::export(py, Exportable::Cuda(reference, number), versioned, copied)
}

/// A tensor of memory of another library on a CUDA device. `frozen` states that no one can write to
/// it.
///
/// The rules of host memory apply: memory is shared if it is frozen, or if the user promises not to
/// write to it. Other memory is copied on its device before the function returns.
pub(crate) fn import_device_memory(
    py: Python<'_>,
    memory: CudaMemory,
    frozen: bool,
    sharing: Sharing,
) -> PyResult<RawTensor> {
    let (dtype, shape) = (memory.dtype(), memory.shape().clone());
    let device = device_with(py, memory.hardware_id())?;
    py.detach(|| xla::wait_for_default_stream(&device)).or_raise()?;
    let is_aligned = xla::is_aligned_for(memory.address(), &device);
    let shares = match sharing {
        Sharing::Promised if !is_aligned => return Err(must_copy()),
        Sharing::Promised => true,
        Sharing::ByValue => frozen && is_aligned && !dtype.is_pred(),
        Sharing::Never => false,
    };
    if shares {
        return py.detach(|| xla::view_foreign(memory, dtype, &shape, &device)).or_raise();
    }
    // Every byte except 0 of a boolean array is true, as on the host.
    let read_as = if dtype.is_pred() { DType::U8 } else { dtype };
    let copy = py.detach(|| xla::copy_foreign(memory, read_as, &shape, &device)).or_raise()?;
    if dtype == read_as {
        Ok(copy)
    } else {
        Ok(in_dtype(py, &copy, dtype)?.bind(py).cast::<PyTensor>()?.get().tensor())
    }
}

/// The CUDA device with a number. The client of the installed plugin is created if necessary.
fn device_with(py: Python<'_>, number: i32) -> PyResult<Device> {
    if let Some(device) = xla::known_cuda_device(number) {
        return Ok(device);
    }
    announce_plugin(py)?;
    let found = py.import("nxla.plugins")?.call_method1("find_for", ("cuda",))?;
    let plugin: Option<String> = found.extract()?;
    py.detach(|| xla::cuda_device(number, plugin.as_deref())).or_raise()
}
