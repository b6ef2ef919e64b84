//! Device memory that tensors share with other libraries.

use nxla_pjrt::{Client, ExternalReference, ForeignMemory, PjrtDevice};
use nxla_tensor::{DType, Shape};

use super::client::{load_default_client, target};
use crate::device::{Device, known_devices};
use crate::error::{Error, Result};
use crate::options::{Setting, Settings};
use crate::profile::{self, Work};
use crate::tensor::{DeviceTensor, RawTensor};

/// The platform whose memory other libraries can use.
const CUDA: &str = "cuda";

/// The number of a device in the CUDA driver; `None` for devices of other platforms.
pub fn cuda_number(device: &Device) -> Option<i32> {
    device.description().filter(|_| device.platform() == CUDA)?.hardware_id()
}

/// Returns the device with a number in the CUDA driver, if a client has the device.
pub fn known_cuda_device(number: i32) -> Option<Device> {
    known_devices().into_iter().find(|device| cuda_number(device) == Some(number))
}

/// Returns the device with a number in the CUDA driver. If no client has the device, the default
/// client is created, and then the client of `plugin`, the path of a plugin for CUDA.
///
/// # Errors
/// Returns an error if no plugin is installed or the plugin does not have the device, and errors of
/// the plugin.
pub fn cuda_device(number: i32, plugin: Option<&str>) -> Result<Device> {
    load_default_client()?;
    if let Some(device) = known_cuda_device(number) {
        return Ok(device);
    }
    let missing = |what: &str| {
        Error::Options(format!(
            "device: must be a device of a client; got CUDA device {number}, but {what}; install a \
             PJRT plugin for CUDA, or copy the data to the host"
        ))
    };
    let Some(plugin) = plugin else { return Err(missing("no plugin for CUDA is installed")) };
    target(&Settings::from([("plugin".into(), Setting::Text(plugin.into()))]))?;
    known_cuda_device(number)
        .ok_or_else(|| missing("the plugin for CUDA has no device with this number"))
}

/// Waits until the writes are complete that another library has ordered before the default stream of
/// a device.
///
/// # Errors
/// Returns errors of the driver.
pub fn wait_for_default_stream(device: &Device) -> Result<()> {
    let (client, device) = client_of(device)?;
    Ok(client.wait_for_default_stream(device)?)
}

/// Returns `true` if a tensor on a device can share memory at an address.
pub fn is_aligned_for(address: usize, device: &Device) -> bool {
    device.client().is_some_and(|client| address.is_multiple_of(client.view_alignment()))
}

/// A tensor that shares the memory of another library. No code may write to the memory until it is
/// dropped; see [`Client::view`].
///
/// # Errors
/// Returns the errors of [`Client::view`].
pub fn view_foreign<M: ForeignMemory>(
    memory: M,
    dtype: DType,
    shape: &Shape,
    device: &Device,
) -> Result<RawTensor> {
    let (client, device) = client_of(device)?;
    let view = client.view(memory, dtype, shape.clone(), device)?;
    Ok(RawTensor::Device(DeviceTensor::new(view)))
}

/// A tensor with a copy of the memory of another library, made on the device. The memory may be
/// overwritten afterwards.
///
/// # Errors
/// Returns the errors of [`Client::copy_foreign`].
pub fn copy_foreign<M: ForeignMemory>(
    memory: M,
    dtype: DType,
    shape: &Shape,
    device: &Device,
) -> Result<RawTensor> {
    let (client, description) = client_of(device)?;
    let _span = profile::span(Work::Transfer, "copy on device")
        .detail("bytes", || memory.byte_size().to_string());
    match client.copy_foreign(&memory, dtype, shape.clone(), description) {
        Ok(copy) => Ok(RawTensor::Device(DeviceTensor::new(copy))),
        // The plugin cannot allocate a buffer without contents, so a program copies.
        Err(error) if error.is_unimplemented() && is_aligned_for(memory.address(), device) => {
            let copy = view_foreign(memory, dtype, shape, device)?.copy_to(device)?;
            copy.wait()?;
            Ok(copy)
        }
        Err(error) => Err(error.into()),
    }
}

/// Waits for a tensor and lends its memory to another library; returns `None` for a tensor that is not
/// in row-major order on a device.
///
/// # Errors
/// Returns the error of a failed computation, or an error for a tensor that was freed.
pub fn lend(tensor: &RawTensor) -> Result<Option<ExternalReference>> {
    tensor.wait()?;
    match tensor.buffer() {
        Some(buffer) => Ok(buffer.lend()?),
        None => Ok(None),
    }
}

/// Returns the client of a device, and the description of the device.
fn client_of(device: &Device) -> Result<(&Client, &PjrtDevice)> {
    match (device.client(), device.description()) {
        (Some(client), Some(description)) => Ok((client, description)),
        _ => Err(Error::Options(format!("device: must be a device of a client; got {device}"))),
    }
}

#[cfg(test)]
mod tests {
    use nxla_tensor::{Frozen, HostTensor};

    use super::*;

    fn cpu() -> Option<Device> {
        load_default_client().expect("the plugin works");
        known_devices().into_iter().find(|device| device.platform() == "cpu")
    }

    #[test]
    fn tensors_share_memory_with_other_libraries() {
        let Some(cpu) = cpu() else { return };
        let host = HostTensor::from_vec(vec![1.0_f32; 1000], [1000]).expect("the shape fits");
        let memory: Frozen = host.share();
        let address = host.bytes().as_ptr().addr();
        assert!(is_aligned_for(address, &cpu) && !is_aligned_for(address + 4, &cpu));
        let view = view_foreign(memory.clone(), DType::F32, host.shape(), &cpu).expect("a view");
        assert_eq!(view.device(), cpu);
        assert_eq!(lend(&view).expect("a tensor").expect("on a device").address(), address);
        let copy = copy_foreign(memory, DType::F32, host.shape(), &cpu).expect("a copy");
        assert_eq!(copy.to_vec::<f32>().expect("a tensor"), vec![1.0; 1000]);
        assert_eq!(wait_for_default_stream(&cpu).ok(), Some(()));
        assert!(lend(&RawTensor::Host(host)).expect("a tensor").is_none());
        assert_eq!(cuda_number(&cpu), None);
    }

    #[test]
    fn a_missing_plugin_is_named() {
        let error = cuda_device(77, None).unwrap_err().to_string();
        assert!(
            error.contains("got CUDA device 77, but no plugin for CUDA is installed"),
            "{error}"
        );
        assert!(wait_for_default_stream(&Device::HOST).is_err());
    }
}
