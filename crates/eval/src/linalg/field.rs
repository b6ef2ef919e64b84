//! The numbers that linear algebra computes with.

use std::iter::Sum;
use std::ops::{Div, Mul, Sub};

use nxla_tensor::{Complex, DType, Element};

use crate::kernels::Kernels;

/// Numbers of a field with conjugation and an absolute value: `f64` and its complex numbers.
pub(super) trait Field:
    Element + Kernels + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Sum<Self>
{
    const NAN: Self;
    fn conjugate(self) -> Self;
    fn real(self) -> f64;
    fn from_real(x: f64) -> Self;

    fn is_finite(self) -> bool {
        let (re, im) = self.to_scalar().parts();
        re.is_finite() && im.is_finite()
    }

    /// The square of the absolute value.
    fn square(self) -> f64 {
        (self * self.conjugate()).real()
    }
}

impl Field for f64 {
    const NAN: f64 = f64::NAN;
    fn conjugate(self) -> f64 {
        self
    }
    fn real(self) -> f64 {
        self
    }
    fn from_real(x: f64) -> f64 {
        x
    }
}

impl Field for Complex<f64> {
    const NAN: Complex<f64> = Complex::new(f64::NAN, f64::NAN);
    fn conjugate(self) -> Complex<f64> {
        self.conj()
    }
    fn real(self) -> f64 {
        self.re
    }
    fn from_real(x: f64) -> Complex<f64> {
        Complex::new(x, 0.0)
    }
}

/// The dtype that numbers of this one are computed in.
pub(super) fn wide(dtype: DType) -> DType {
    if dtype.is_complex() { DType::C128 } else { DType::F64 }
}
