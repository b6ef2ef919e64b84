//! The number types of linear algebra.

use std::iter::Sum;
use std::ops::{Mul, Sub};

use nxla_tensor::{Complex, DType, Element};

use crate::kernels::matrix::Kernels;

/// Numbers of a field with conjugation and an absolute value: `f32`, `f64` and `c128`.
pub(super) trait Field:
    Element + Kernels + Sub<Output = Self> + Mul<Output = Self> + Sum<Self>
{
    const NAN: Self;
    fn conjugate(self) -> Self;
    fn real(self) -> f64;
    fn from_real(x: f64) -> Self;
    /// The quotient. The square of the divisor may overflow or underflow.
    fn over(self, divisor: Self) -> Self;

    fn is_finite(self) -> bool {
        let (re, im) = self.to_scalar().parts();
        re.is_finite() && im.is_finite()
    }

    /// The square of the absolute value.
    fn square(self) -> f64 {
        let (re, im) = self.to_scalar().parts();
        re * re + im * im
    }
}

macro_rules! real_fields {
    ($($real:ident)*) => {
        $(impl Field for $real {
            const NAN: Self = $real::NAN;
            fn conjugate(self) -> Self {
                self
            }
            fn real(self) -> f64 {
                f64::from(self)
            }
            fn from_real(x: f64) -> Self {
                x as $real
            }
            fn over(self, divisor: Self) -> Self {
                self / divisor
            }
        })*
    };
}
real_fields!(f32 f64);

impl Field for Complex<f64> {
    const NAN: Self = Complex::new(f64::NAN, f64::NAN);
    fn conjugate(self) -> Self {
        self.conj()
    }
    fn real(self) -> f64 {
        self.re
    }
    fn from_real(x: f64) -> Self {
        Complex::new(x, 0.0)
    }
    fn over(self, divisor: Self) -> Self {
        let size = divisor.l1_norm();
        (self / size) / (divisor / size)
    }
}

/// The dtype in which matrices of a floating dtype are computed. Matrices of `c64` are rare, and code for one more type
/// takes long to compile.
pub(super) fn matrix_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        dtype if dtype.is_complex() => DType::C128,
        _ => DType::F32,
    }
}

/// Binds a type to the number type of a dtype that [`matrix_dtype`] returns.
macro_rules! match_field {
    ($dtype:expr, $t:ident => $result:expr) => {{
        use nxla_tensor::{Complex, DType};
        match $dtype {
            DType::F32 => $crate::kernels::with_type!($t = f32 => $result),
            DType::F64 => $crate::kernels::with_type!($t = f64 => $result),
            DType::C128 => $crate::kernels::with_type!($t = Complex<f64> => $result),
            dtype => unreachable!("matrices of {dtype} are computed in another dtype"),
        }
    }};
}
pub(super) use match_field;
