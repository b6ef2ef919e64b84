//! Without the feature `fft` there are no Fourier transforms.

use nxla_expr::{Fft, TensorType};
use nxla_tensor::HostTensor;

use crate::error::Fault;

/// Says which feature is missing.
pub(super) fn fft(_: Fft, _: &HostTensor, _: &TensorType) -> Result<HostTensor, Fault> {
    Err(Fault::Feature { name: "fft" })
}
