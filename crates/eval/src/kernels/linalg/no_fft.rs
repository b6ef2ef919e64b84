//! Replacement for Fourier transforms without the feature `fft`.

use nxla_expr::{Fft, TensorType};
use nxla_tensor::HostTensor;

use crate::context::{Cx, Fault};

/// Returns the error that names the missing feature.
pub(super) fn fft(_: Cx<'_>, _: Fft, _: &HostTensor, _: &TensorType) -> Result<HostTensor, Fault> {
    Err(Fault::Feature { name: "fft" })
}
