//! Rust types of elements, and dispatch of generic code on a dtype at run time.
//!
//! `u8` stores `pred`, `u2`, `u4` and `u8`; `i8` stores `s2`, `s4` and `s8`. Elements of sub-byte
//! types and of `pred` must be within the range of their dtype, and code that writes elements must
//! ensure this.

use std::fmt::Debug;

use bytemuck::Pod;
use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use num_complex::Complex;

use crate::dtype::DType;
use crate::error::TensorError;
use crate::host::HostTensor;
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::small_float;

mod sealed {
    /// Restricts [`super::Element`] to the types in this module.
    pub trait Sealed {}
}

/// A Rust type that stores the elements of at least one dtype.
///
/// Implemented for `u8`–`u64`, `i8`–`i64`, `F8E5M2`, `F8E4M3`, `bf16`, `f16`, `f32`, `f64`,
/// `Complex<f32>` and `Complex<f64>`.
pub trait Element: sealed::Sealed + Pod + PartialEq + Debug + Default + Send + Sync {
    /// The default dtype of tensors of these elements: among the dtypes that the type stores, the
    /// dtype that uses all bits.
    const DTYPE: DType;

    /// Returns whether tensors of `dtype` are stored as `Self`.
    #[must_use]
    fn stores(dtype: DType) -> bool {
        dtype == Self::DTYPE
    }

    /// Converts the value to a scalar in canonical form.
    #[must_use]
    fn to_scalar(self) -> Scalar;

    /// Converts a scalar to [`Element::DTYPE`] by the rules of [`Scalar::cast`].
    #[must_use]
    fn from_scalar(scalar: Scalar) -> Self;

    /// Returns the nearest `f64`, of the real part for complex elements.
    #[must_use]
    fn to_f64(self) -> f64 {
        self.to_scalar().as_f64()
    }

    /// Converts a value to [`Element::DTYPE`] by the rules of [`Scalar::cast`].
    #[must_use]
    fn from_f64(value: f64) -> Self {
        Self::from_scalar(Scalar::Float(value))
    }
}

mod list_sealed {
    /// Restricts [`super::ListElement`] to the types in this module.
    pub trait Sealed {}

    impl<T: super::Element> Sealed for T {}
    impl Sealed for bool {}
}

/// A Rust type of the elements of lists that tensors are created from and read as: each
/// [`Element`], and `bool` for `pred`.
///
/// `bool` is not an [`Element`], because most bytes are not a valid `bool`.
pub trait ListElement: list_sealed::Sealed + Sized {
    /// Copies a list to a tensor; see [`HostTensor::from_slice`].
    ///
    /// # Errors
    /// Returns the errors of [`HostTensor::from_slice`].
    fn to_tensor(list: &[Self], shape: impl Into<Shape>) -> Result<HostTensor, TensorError>;

    /// Copies the elements of a tensor; see [`HostTensor::to_vec`].
    ///
    /// # Errors
    /// Returns the errors of [`HostTensor::to_vec`].
    fn from_tensor(tensor: &HostTensor) -> Result<Vec<Self>, TensorError>;
}

impl<T: Element> ListElement for T {
    fn to_tensor(list: &[Self], shape: impl Into<Shape>) -> Result<HostTensor, TensorError> {
        HostTensor::from_slice_as(T::DTYPE, list, shape)
    }

    fn from_tensor(tensor: &HostTensor) -> Result<Vec<Self>, TensorError> {
        tensor.as_slice().map(<[T]>::to_vec)
    }
}

impl ListElement for bool {
    fn to_tensor(list: &[Self], shape: impl Into<Shape>) -> Result<HostTensor, TensorError> {
        HostTensor::from_slice_as(DType::Pred, bytemuck::cast_slice::<bool, u8>(list), shape)
    }

    fn from_tensor(tensor: &HostTensor) -> Result<Vec<Self>, TensorError> {
        match tensor.dtype() {
            DType::Pred => Ok(tensor.bytes().iter().map(|&byte| byte != 0).collect()),
            dtype => Err(TensorError::ElementType { dtype, requested: "bool" }),
        }
    }
}

macro_rules! integer_element {
    ($type:ty, $dtype:ident, $variant:ident as $wide:ty $(, also $($narrow:ident)|+)?) => {
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            $(fn stores(dtype: DType) -> bool {
                matches!(dtype, DType::$dtype $(| DType::$narrow)+)
            })?

            #[inline(always)]
            fn to_scalar(self) -> Scalar {
                Scalar::$variant(<$wide>::from(self))
            }

            #[inline(always)]
            fn from_scalar(scalar: Scalar) -> Self {
                match scalar {
                    Scalar::Int(value) => value as Self,
                    Scalar::UInt(value) => value as Self,
                    // `as` truncates, saturates, and converts NaN to 0.
                    Scalar::Float(value) | Scalar::Complex(value, _) => value as Self,
                }
            }
        }
    };
}

integer_element!(u8, U8, UInt as u64, also Pred | U2 | U4);
integer_element!(u16, U16, UInt as u64);
integer_element!(u32, U32, UInt as u64);
integer_element!(u64, U64, UInt as u64);
integer_element!(i8, S8, Int as i64, also S2 | S4);
integer_element!(i16, S16, Int as i64);
integer_element!(i32, S32, Int as i64);
integer_element!(i64, S64, Int as i64);

macro_rules! narrow_float_element {
    ($type:ty, $dtype:ident, $decode:expr, $encode:expr) => {
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            #[inline(always)]
            fn to_scalar(self) -> Scalar {
                Scalar::Float($decode(self))
            }

            #[inline(always)]
            fn from_scalar(scalar: Scalar) -> Self {
                $encode(scalar.real_before_rounding())
            }
        }
    };
}

narrow_float_element!(
    F8E5M2,
    F8E5M2,
    |element: F8E5M2| small_float::F8_E5M2.decode(element.to_bits().into()),
    |value| F8E5M2::from_bits(small_float::F8_E5M2.encode(value) as u8)
);
narrow_float_element!(
    F8E4M3,
    F8E4M3FN,
    |element: F8E4M3| small_float::F8_E4M3FN.decode(element.to_bits().into()),
    |value| F8E4M3::from_bits(small_float::F8_E4M3FN.encode(value) as u8)
);
narrow_float_element!(bf16, BF16, bf16::to_f64, |value| {
    // A number that `f32` represents exactly is rounded only once, by the faster conversion. NaN
    // never passes the comparison.
    let single = value as f32;
    if f64::from(single) == value {
        bf16::from_f32(single)
    } else {
        bf16::from_bits(small_float::BF16.encode(value))
    }
});
narrow_float_element!(f16, F16, f16::to_f64, |value| {
    let single = value as f32;
    if f64::from(single) == value {
        f16::from_f32(single)
    } else {
        f16::from_bits(small_float::F16.encode(value))
    }
});

macro_rules! float_element {
    ($type:ident, $real:ident, $complex:ident) => {
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const DTYPE: DType = DType::$real;

            #[inline(always)]
            fn to_scalar(self) -> Scalar {
                Scalar::Float(f64::from(self))
            }

            #[inline(always)]
            fn from_scalar(scalar: Scalar) -> Self {
                match scalar {
                    Scalar::Int(value) => value as Self,
                    Scalar::UInt(value) => value as Self,
                    Scalar::Float(value) | Scalar::Complex(value, _) => value as Self,
                }
            }
        }

        impl sealed::Sealed for Complex<$type> {}

        impl Element for Complex<$type> {
            const DTYPE: DType = DType::$complex;

            #[inline(always)]
            fn to_scalar(self) -> Scalar {
                Scalar::Complex(f64::from(self.re), f64::from(self.im))
            }

            #[inline(always)]
            fn from_scalar(scalar: Scalar) -> Self {
                let (_, imag) = scalar.parts();
                Complex::new($type::from_scalar(scalar), imag as $type)
            }
        }
    };
}

float_element!(f32, F32, C64);
float_element!(f64, F64, C128);

/// Evaluates an expression with a type alias for the Rust type that stores a dtype.
///
/// ```
/// use nxla_tensor::{DType, Element, match_dtype};
///
/// fn name_of_storage(dtype: DType) -> &'static str {
///     match_dtype!(dtype, T => std::any::type_name::<T>())
/// }
/// assert_eq!(name_of_storage(DType::S4), "i8");
/// assert_eq!(name_of_storage(DType::Pred), "u8");
/// ```
#[macro_export]
macro_rules! match_dtype {
    ($dtype:expr, $element:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Pred | $crate::DType::U2 | $crate::DType::U4 | $crate::DType::U8 => {
                type $element = u8;
                $body
            }
            $crate::DType::U16 => {
                type $element = u16;
                $body
            }
            $crate::DType::U32 => {
                type $element = u32;
                $body
            }
            $crate::DType::U64 => {
                type $element = u64;
                $body
            }
            $crate::DType::S2 | $crate::DType::S4 | $crate::DType::S8 => {
                type $element = i8;
                $body
            }
            $crate::DType::S16 => {
                type $element = i16;
                $body
            }
            $crate::DType::S32 => {
                type $element = i32;
                $body
            }
            $crate::DType::S64 => {
                type $element = i64;
                $body
            }
            $crate::DType::F8E5M2 => {
                type $element = $crate::F8E5M2;
                $body
            }
            $crate::DType::F8E4M3FN => {
                type $element = $crate::F8E4M3;
                $body
            }
            $crate::DType::BF16 => {
                type $element = $crate::bf16;
                $body
            }
            $crate::DType::F16 => {
                type $element = $crate::f16;
                $body
            }
            $crate::DType::F32 => {
                type $element = f32;
                $body
            }
            $crate::DType::F64 => {
                type $element = f64;
                $body
            }
            $crate::DType::C64 => {
                type $element = $crate::Complex<f32>;
                $body
            }
            $crate::DType::C128 => {
                type $element = $crate::Complex<f64>;
                $body
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at the boundaries of every rule of [`Scalar::cast`].
    fn samples() -> Vec<Scalar> {
        let floats = [
            0.0,
            -0.0,
            0.1,
            -1.9,
            2.5,
            300.7,
            448.0,
            464.1,
            65519.0,
            1e10,
            -1e10,
            9.3e18,
            -1.9e19,
            1e40,
            1e300,
            5e-324,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            1.0 + 3.0 * f64::EPSILON,
        ];
        let ints = [0, 1, -1, 127, -128, 255, 65_535, i64::MAX, i64::MIN, (1 << 54) + 1];
        let real = floats.map(Scalar::Float).into_iter();
        let complex = floats.map(|value| Scalar::Complex(value, -value)).into_iter();
        let unsigned = [Scalar::UInt(u64::MAX), Scalar::UInt(1 << 63)].into_iter();
        real.chain(complex).chain(ints.map(Scalar::Int)).chain(unsigned).collect()
    }

    /// NaN payloads are unspecified.
    fn is_same(a: Scalar, b: Scalar) -> bool {
        let part = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        match (a, b) {
            (Scalar::Float(a), Scalar::Float(b)) => part(a, b),
            (Scalar::Complex(a, c), Scalar::Complex(b, d)) => part(a, b) && part(c, d),
            (a, b) => a == b,
        }
    }

    #[test]
    fn elements_convert_like_scalars() {
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.bits() >= 8 && !dtype.is_pred()) {
            for value in samples() {
                let element = match_dtype!(dtype, T => {
                    assert_eq!(T::DTYPE, dtype);
                    T::from_scalar(value).to_scalar()
                });
                assert!(is_same(element, value.cast(dtype)), "{value} to {dtype}: {element}");
            }
        }
    }

    #[test]
    fn storage_types_match_dtypes() {
        for dtype in DType::ALL {
            match_dtype!(dtype, T => {
                assert!(T::stores(dtype));
                assert_eq!(size_of::<T>(), dtype.size());
            });
        }
        assert!(!u8::stores(DType::S8));
        assert!(!i8::stores(DType::U2));
        assert!(!f32::stores(DType::S32));
    }

    #[test]
    fn conversions_to_and_from_f64() {
        assert_eq!(Complex::new(1.5_f32, 2.0).to_f64(), 1.5);
        assert_eq!(Complex::<f64>::from_f64(1.5), Complex::new(1.5, 0.0));
        assert_eq!(bf16::from_f64(1.0 / 3.0), bf16::from_f32(1.0 / 3.0));
    }
}
