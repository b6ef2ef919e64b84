//! The text of tensors.
//!
//! Only the printed elements are read from a device. One line contains the client and the device of
//! such a tensor, and the address of the buffer on request.
//!
//! ```text
//! #nxla.Tensor<
//!   f32[3]
//!   cpu:0, buffer 0x7f2a64013e50
//!   [1.0, 2.0, 3.0]
//! >
//! ```

use nxla_tensor::{PrintOptions, tensor_text, type_text};

use crate::device::Device;
use crate::error::Result;
use crate::tensor::RawTensor;

/// The description of the memory in the string of a tensor on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceText {
    /// The device and the address of the buffer.
    Buffer,
    /// The device.
    Name,
    /// Nothing, as for a tensor on the host.
    Omitted,
}

impl RawTensor {
    /// Formats the tensor by print options. For a tensor whose memory was released, or whose
    /// computation failed, the string names the reason.
    pub fn text(&self, options: &PrintOptions, device_text: DeviceText) -> String {
        let vectors = self.vectors();
        let mut header = Vec::new();
        if !vectors.is_empty() {
            header.push(vectors.to_string());
        }
        header.push(type_text(self.dtype(), self.shape(), self.names()));
        if let Some(buffer) = self.buffer() {
            let device = Device::of_buffer(buffer);
            match device_text {
                DeviceText::Buffer => {
                    header.push(format!("{device}, buffer {:#x}", buffer.address()));
                }
                DeviceText::Name => header.push(device.to_string()),
                DeviceText::Omitted => {}
            }
        }
        let body = body(self, options).unwrap_or_else(|error| format!("failed: {error}"));
        tensor_text(&header, self.data().shape(), &body)
    }
}

fn body(tensor: &RawTensor, options: &PrintOptions) -> Result<String> {
    if tensor.is_released()? {
        return Ok("released".into());
    }
    let data = tensor.data();
    Ok(match data {
        RawTensor::Host(host) => host.body_text(options, 2),
        RawTensor::Device(device) => {
            let shape = data.shape();
            device.read(&options.printed_ranges(shape))?.printed_text(shape, options, 2)
        }
        RawTensor::Vectorized(_) => unreachable!("the data of a tensor is not vectorized"),
    })
}
