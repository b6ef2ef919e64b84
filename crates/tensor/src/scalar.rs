//! A scalar: one element of any dtype, stored in the widest type of its kind.
//!
//! Notable details:
//!
//! * Equality and hashing compare bits: NaN equals itself, `-0.0` differs from `0.0`, and `Int(1)`
//!   differs from `UInt(1)`. Scalars are keys of the expression graph, which may merge only
//!   indistinguishable constants.
//! * [`Scalar::cast`] saturates floats that are out of an integer's range, as XLA does. Integers
//!   wrap modulo `2^bits`.
//! * [`Scalar::shortest_in`] drops digits that a dtype does not hold, so `0.1` in `f32` prints as
//!   `0.1`.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Kind};
use crate::float_text::{shortest_as, shortest_f64};
use crate::small_float::{BF16, F8_E4M3FN, F8_E5M2, F16};

/// A single value, independent of the width of its dtype.
///
/// ```
/// use nxla_tensor::{DType, Scalar};
///
/// assert_eq!(Scalar::Float(300.7).cast(DType::U8), Scalar::UInt(255));
/// assert_eq!(Scalar::Float(f64::NAN), Scalar::Float(f64::NAN));
/// assert_eq!(Scalar::Float(1e-10).to_string(), "1.0e-10");
/// ```
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Scalar {
    /// A value of a signed integer type.
    Int(i64),
    /// A value of an unsigned integer type or of `pred` (0 or 1).
    UInt(u64),
    /// A value of a real float type.
    Float(f64),
    /// The real and imaginary part of a value of a complex type.
    Complex(f64, f64),
}

impl Scalar {
    /// Returns zero in the canonical form of `dtype`.
    #[must_use]
    pub fn zero(dtype: DType) -> Scalar {
        Scalar::UInt(0).cast(dtype)
    }

    /// Returns one in the canonical form of `dtype`.
    #[must_use]
    pub fn one(dtype: DType) -> Scalar {
        Scalar::UInt(1).cast(dtype)
    }

    /// Converts the value to `dtype`, in canonical form.
    ///
    /// * To integers: integers wrap modulo `2^bits`; floats truncate toward zero and saturate; NaN
    ///   becomes 0.
    /// * To floats: round to nearest, ties to even.
    /// * Complex to real: the real part.
    /// * To `pred`: 1 for every nonzero value, including NaN.
    #[must_use]
    pub fn cast(self, dtype: DType) -> Scalar {
        match dtype.kind() {
            Kind::Pred => Scalar::UInt(u64::from(!self.is_zero())),
            Kind::Unsigned | Kind::Signed => match self {
                Scalar::Int(value) => wrap(value.cast_unsigned(), dtype),
                Scalar::UInt(value) => wrap(value, dtype),
                Scalar::Float(value) | Scalar::Complex(value, _) => float_to_int(value, dtype),
            },
            Kind::Float => Scalar::Float(self.real_in(dtype)),
            Kind::Complex => {
                let (_, imag) = self.parts();
                let part = dtype.to_real();
                Scalar::Complex(self.real_in(part), round_float(imag, part))
            }
        }
    }

    /// Returns the variant for `dtype` without rounding floats to its precision.
    ///
    /// Integers convert as in [`Scalar::cast`].
    #[must_use]
    pub fn canonical(self, dtype: DType) -> Scalar {
        match dtype.kind() {
            Kind::Pred | Kind::Unsigned | Kind::Signed => self.cast(dtype),
            Kind::Float => Scalar::Float(self.as_f64()),
            Kind::Complex => {
                let (real, imag) = self.parts();
                Scalar::Complex(real, imag)
            }
        }
    }

    /// Returns the number with the fewest decimal digits that [`Scalar::cast`] rounds to this value
    /// of `dtype`.
    ///
    /// ```
    /// use nxla_tensor::{DType, Scalar};
    ///
    /// let value = Scalar::Float(0.1).cast(DType::BF16);
    /// assert_eq!(value, Scalar::Float(0.10009765625));
    /// assert_eq!(value.shortest_in(DType::BF16), Scalar::Float(0.1));
    /// ```
    #[must_use]
    pub fn shortest_in(self, dtype: DType) -> Scalar {
        let part = dtype.to_real();
        let shortest = |value: f64| shortest_as(value, part).parse().unwrap_or(value);
        match self {
            Scalar::Int(_) | Scalar::UInt(_) => self,
            Scalar::Float(value) => Scalar::Float(shortest(value)),
            Scalar::Complex(real, imag) => Scalar::Complex(shortest(real), shortest(imag)),
        }
    }

    /// Returns the nearest `f64`, of the real part for complex values.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.parts().0
    }

    /// Returns the real and imaginary part; the imaginary part of a real number is 0.
    #[must_use]
    pub fn parts(self) -> (f64, f64) {
        match self {
            Scalar::Int(value) => (value as f64, 0.0),
            Scalar::UInt(value) => (value as f64, 0.0),
            Scalar::Float(value) => (value, 0.0),
            Scalar::Complex(real, imag) => (real, imag),
        }
    }

    /// Returns the value as `i64`, or `None` if it is not representable.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        self.as_i128().and_then(|value| i64::try_from(value).ok())
    }

    /// Returns the value as `i128`, which can hold all integer dtypes, or `None` if it has a
    /// fraction or an imaginary part, or is not finite.
    #[must_use]
    pub fn as_i128(self) -> Option<i128> {
        match self {
            Scalar::Int(value) => Some(i128::from(value)),
            Scalar::UInt(value) => Some(i128::from(value)),
            Scalar::Complex(value, 0.0) | Scalar::Float(value) => {
                // 2^127 is the first magnitude at which the cast saturates.
                let exact = value.trunc() == value && value.abs() < 2_f64.powi(127);
                exact.then_some(value as i128)
            }
            Scalar::Complex(_, _) => None,
        }
    }

    /// Returns whether the value equals zero of either sign.
    #[must_use]
    pub fn is_zero(self) -> bool {
        match self {
            Scalar::Int(value) => value == 0,
            Scalar::UInt(value) => value == 0,
            Scalar::Float(value) => value == 0.0,
            Scalar::Complex(real, imag) => real == 0.0 && imag == 0.0,
        }
    }

    /// Returns whether the value equals one.
    #[must_use]
    pub fn is_one(self) -> bool {
        match self {
            Scalar::Int(value) => value == 1,
            Scalar::UInt(value) => value == 1,
            Scalar::Float(value) => value == 1.0,
            Scalar::Complex(real, imag) => real == 1.0 && imag == 0.0,
        }
    }

    /// Returns the real part, rounded once to the float type `dtype`.
    fn real_in(self, dtype: DType) -> f64 {
        // Converting a 64-bit integer through `f64` would round twice.
        match (self, dtype) {
            (Scalar::Int(value), DType::F32) => f64::from(value as f32),
            (Scalar::UInt(value), DType::F32) => f64::from(value as f32),
            (_, DType::F64) => self.as_f64(),
            (_, _) => round_float(self.real_before_rounding(), dtype),
        }
    }

    /// Returns the real part for rounding to a format of much lower precision than `f64`.
    ///
    /// A 64-bit integer may not fit in `f64`. Its lower bits set the last bit of the result, so
    /// that a second rounding still recognizes the side of a tie.
    pub(crate) fn real_before_rounding(self) -> f64 {
        let odd = |magnitude: u64| {
            let rest = magnitude & 0x7ff;
            if magnitude >> 53 == 0 {
                magnitude
            } else {
                (magnitude - rest) | (u64::from(rest != 0) << 11)
            }
        };
        match self {
            Scalar::Int(value) if value < 0 => -(odd(value.unsigned_abs()) as f64),
            Scalar::Int(value) => odd(value.unsigned_abs()) as f64,
            Scalar::UInt(value) => odd(value) as f64,
            Scalar::Float(value) | Scalar::Complex(value, _) => value,
        }
    }

    /// Returns a key that is equal exactly for indistinguishable scalars.
    fn key(self) -> (u8, u64, u64) {
        match self {
            Scalar::Int(value) => (0, value.cast_unsigned(), 0),
            Scalar::UInt(value) => (1, value, 0),
            Scalar::Float(value) => (2, value.to_bits(), 0),
            Scalar::Complex(real, imag) => (3, real.to_bits(), imag.to_bits()),
        }
    }
}

/// Rounds to the precision of a real float dtype; other dtypes keep the value.
pub(crate) fn round_float(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F8E5M2 => F8_E5M2.round(value),
        DType::F8E4M3FN => F8_E4M3FN.round(value),
        DType::BF16 => BF16.round(value),
        DType::F16 => F16.round(value),
        DType::F32 => f64::from(value as f32),
        _ => value,
    }
}

/// Keeps the low bits of a two's complement number for an integer `dtype`.
fn wrap(low_bits: u64, dtype: DType) -> Scalar {
    let unused = 64 - dtype.bits();
    if dtype.is_signed() {
        Scalar::Int((low_bits << unused).cast_signed() >> unused)
    } else {
        Scalar::UInt((low_bits << unused) >> unused)
    }
}

fn float_to_int(value: f64, dtype: DType) -> Scalar {
    // `as` truncates, saturates at 64 bits, and converts NaN to 0; narrower limits apply
    // afterwards.
    let (least, most) = (dtype.min_value(), dtype.max_value());
    match (least, most) {
        (Scalar::Int(least), Scalar::Int(most)) => Scalar::Int((value as i64).clamp(least, most)),
        (Scalar::UInt(least), Scalar::UInt(most)) => {
            Scalar::UInt((value as u64).clamp(least, most))
        }
        _ => unreachable!("{dtype} has no integers as limits"),
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for Scalar {
    /// Writes a constant: `2`, `0.1`, `1.0e-10`, `NaN`, `-Inf`, `1.0+2.0i`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Scalar::Int(value) => write!(f, "{value}"),
            Scalar::UInt(value) => write!(f, "{value}"),
            Scalar::Float(value) => f.write_str(&shortest_f64(value)),
            Scalar::Complex(real, imag) => {
                f.write_str(&crate::float_text::complex(&shortest_f64(real), &shortest_f64(imag)))
            }
        }
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Scalar {
        Scalar::UInt(u64::from(value))
    }
}

impl From<i32> for Scalar {
    fn from(value: i32) -> Scalar {
        Scalar::Int(i64::from(value))
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Scalar {
        Scalar::Int(value)
    }
}

impl From<u64> for Scalar {
    fn from(value: u64) -> Scalar {
        Scalar::UInt(value)
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Scalar {
        Scalar::Float(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_numbers_are_rounded_to_the_value() {
        for dtype in DType::ALL {
            for step in 0..4000 {
                let number = 1.0123_f64.powi(step - 2000);
                let value = Scalar::Complex(number, -number).cast(dtype);
                assert_eq!(value.shortest_in(dtype).cast(dtype), value, "{number} in {dtype}");
            }
        }
        let third = Scalar::Float(1.0 / 3.0).cast(DType::F32);
        assert_eq!(third.shortest_in(DType::F32).to_string(), "0.33333334");
    }

    #[test]
    fn floats_to_integers_truncate_and_saturate() {
        let cases = [
            (1.9, DType::U8, Scalar::UInt(1)),
            (-1.9, DType::U8, Scalar::UInt(0)),
            (300.7, DType::S8, Scalar::Int(127)),
            (127.0, DType::S2, Scalar::Int(1)),
            (1e10, DType::S32, Scalar::Int(i64::from(i32::MAX))),
            (-1e10, DType::U32, Scalar::UInt(0)),
            (1e10, DType::S64, Scalar::Int(10_000_000_000)),
            (9_223_372_036_854_775_808.0, DType::S64, Scalar::Int(i64::MAX)),
            (18_446_744_073_709_555_712.0, DType::U64, Scalar::UInt(u64::MAX)),
            (-18_446_744_073_709_555_712.0, DType::S64, Scalar::Int(i64::MIN)),
            (1e300, DType::U64, Scalar::UInt(u64::MAX)),
            (f64::NAN, DType::S16, Scalar::Int(0)),
            (f64::INFINITY, DType::S16, Scalar::Int(32767)),
            (f64::NEG_INFINITY, DType::S4, Scalar::Int(-8)),
            (f64::NEG_INFINITY, DType::U64, Scalar::UInt(0)),
            (f64::INFINITY, DType::U64, Scalar::UInt(u64::MAX)),
        ];
        for (value, dtype, expected) in cases {
            assert_eq!(Scalar::Float(value).cast(dtype), expected, "{value} to {dtype}");
        }
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(Scalar::Int(-1).cast(DType::U2), Scalar::UInt(3));
        assert_eq!(Scalar::Int(-1).cast(DType::U64), Scalar::UInt(u64::MAX));
        assert_eq!(Scalar::UInt(u64::MAX).cast(DType::S64), Scalar::Int(-1));
        assert_eq!(Scalar::UInt(200).cast(DType::S8), Scalar::Int(-56));
    }

    #[test]
    fn integers_round_once() {
        // Just above a tie of f32; rounding through f64 would produce the tie and round down.
        let above_tie = (1_i64 << 54) + (1 << 30) + 1;
        let expected = f64::from((1_u64 << 54) as f32 + (1_u64 << 31) as f32);
        assert_eq!(Scalar::Int(above_tie).cast(DType::F32), Scalar::Float(expected));
        assert_eq!(Scalar::Int(above_tie).cast(DType::C64), Scalar::Complex(expected, 0.0));
    }

    #[test]
    fn wide_integers_round_once_to_narrow_floats() {
        // Just above a tie of bf16, to which the nearest `f64` is equal.
        let above_tie = (1_i64 << 62) + (1 << 54) + 1;
        let expected = Scalar::Float(2_f64.powi(62) + 2_f64.powi(55));
        assert_eq!(Scalar::Int(above_tie).cast(DType::BF16), expected);
        let tie = Scalar::Int(above_tie - 1).cast(DType::BF16);
        assert_eq!(tie, Scalar::Float(2_f64.powi(62)));
        assert_eq!(Scalar::Int(i64::MIN).cast(DType::BF16), Scalar::Float(-(2_f64.powi(63))));
        assert_eq!(Scalar::UInt(u64::MAX).cast(DType::F64), Scalar::Float(2_f64.powi(64)));
    }

    #[test]
    fn predicates_and_complex() {
        assert_eq!(Scalar::Float(f64::NAN).cast(DType::Pred), Scalar::UInt(1));
        assert_eq!(Scalar::Float(-0.0).cast(DType::Pred), Scalar::UInt(0));
        assert_eq!(Scalar::Complex(0.0, 2.0).cast(DType::Pred), Scalar::UInt(1));
        assert_eq!(Scalar::Complex(1.5, 2.0).cast(DType::S32), Scalar::Int(1));
        assert_eq!(Scalar::Complex(0.1, 0.1).cast(DType::F64), Scalar::Float(0.1));
        let tenth = f64::from(0.1_f32);
        assert_eq!(Scalar::Complex(0.1, 0.1).cast(DType::C64), Scalar::Complex(tenth, tenth));
        assert_eq!(Scalar::Complex(0.1, 0.1).canonical(DType::C64), Scalar::Complex(0.1, 0.1));
        assert_eq!(Scalar::Int(2).canonical(DType::BF16), Scalar::Float(2.0));
        assert_eq!(Scalar::Float(0.1).canonical(DType::F32).to_string(), "0.1");
    }

    #[test]
    fn casting_is_idempotent() {
        let values = [
            Scalar::Int(-3),
            Scalar::UInt(u64::MAX),
            Scalar::Float(0.3),
            Scalar::Complex(1e300, -0.7),
        ];
        for value in values {
            for dtype in DType::ALL {
                let once = value.cast(dtype);
                assert_eq!(once.cast(dtype), once, "{value} to {dtype}");
            }
        }
    }

    #[test]
    fn equality_is_by_bits() {
        assert_eq!(Scalar::Float(f64::NAN), Scalar::Float(f64::NAN));
        assert_ne!(Scalar::Float(0.0), Scalar::Float(-0.0));
        assert_ne!(Scalar::Int(1), Scalar::UInt(1));
    }

    #[test]
    fn exact_integers() {
        assert_eq!(Scalar::Float(3.0).as_i64(), Some(3));
        assert_eq!(Scalar::Float(3.5).as_i64(), None);
        assert_eq!(Scalar::Float(f64::NAN).as_i64(), None);
        assert_eq!(Scalar::Float(f64::INFINITY).as_i64(), None);
        assert_eq!(Scalar::UInt(u64::MAX).as_i64(), None);
        assert_eq!(Scalar::UInt(u64::MAX).as_i128(), Some(i128::from(u64::MAX)));
        assert_eq!(Scalar::Complex(2.0, 0.0).as_i64(), Some(2));
        assert_eq!(Scalar::Complex(2.0, 1.0).as_i64(), None);
    }

    #[test]
    fn printing() {
        assert_eq!(Scalar::Int(-5).to_string(), "-5");
        assert_eq!(Scalar::Complex(1.0, -2.0).to_string(), "1.0-2.0i");
        assert_eq!(Scalar::Complex(f64::NAN, f64::INFINITY).to_string(), "NaN+Infi");
        assert_eq!(Scalar::Float(f64::NEG_INFINITY).to_string(), "-Inf");
    }
}
