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

use nxla_tensor::{PrintOptions, type_text};

use crate::device::Device;
use crate::error::Result;
use crate::tensor::Tensor;

/// Selects whether the string of a tensor on a device contains the address of its buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Address {
    Shown,
    Hidden,
}

/// The string of a tensor. For a tensor whose memory was released, or whose computation failed, it
/// names the reason.
pub(crate) fn text(tensor: &Tensor, address: Address) -> String {
    let vectors = tensor.vectors();
    let mut lines = Vec::new();
    if !vectors.is_empty() {
        lines.push(vectors.to_string());
    }
    lines.push(type_text(tensor.dtype(), tensor.shape(), tensor.names()));
    if let Some(buffer) = tensor.buffer() {
        let device = Device::of_buffer(buffer);
        lines.push(match address {
            Address::Shown => format!("{device}, buffer {:#x}", buffer.address()),
            Address::Hidden => device.to_string(),
        });
    }
    lines.push(match body(tensor) {
        Ok(body) => body,
        Err(error) => format!("failed: {error}"),
    });
    format!("#nxla.Tensor<\n  {}\n>", lines.join("\n  "))
}

fn body(tensor: &Tensor) -> Result<String> {
    if tensor.is_released()? {
        return Ok("released".into());
    }
    let options = PrintOptions::default();
    let data = tensor.data();
    let start = match data {
        Tensor::Host(host) => host.clone(),
        device => device.first(options.limit.unwrap_or(usize::MAX))?,
    };
    Ok(start.start_text(data.shape(), &options, 2))
}
