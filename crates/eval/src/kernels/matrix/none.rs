//! Replacement for the matrix kernels without the feature `linalg`.

use nxla_tensor::Complex;

use super::Kernels;

impl Kernels for f32 {}
impl Kernels for f64 {}
impl Kernels for Complex<f32> {}
impl Kernels for Complex<f64> {}
