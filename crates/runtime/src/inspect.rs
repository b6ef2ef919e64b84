//! The text of tensors.
//!
//! Only what is printed is read from a device. A line says where the data of such a tensor is:
//! client and device, and the buffer.
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

/// The text. A tensor whose memory is gone says so, and one that could not be computed says why.
pub(crate) fn text(tensor: &Tensor) -> String {
    let vectors = tensor.vectors();
    let mut lines = Vec::new();
    if !vectors.is_empty() {
        lines.push(vectors.to_string());
    }
    lines.push(type_text(tensor.dtype(), tensor.shape(), tensor.names()));
    if let Some(buffer) = tensor.buffer() {
        lines.push(format!("{}, buffer {:#x}", Device::of_buffer(buffer), buffer.address()));
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
