//! Type promotion: result dtypes of operations over several dtypes, and dtypes of weak scalars.
//!
//! The rules follow Nx. Notable details:
//!
//! * An integer never widens a float: `s64` with `f16` is `f16`.
//! * `bf16` ranks below every other float, even the 8-bit floats: `bf16` with `f8_e5m2` is
//!   `f8_e5m2`.
//! * `f8_e4m3fn` ranks equal to `f8_e5m2`, `f16`, `f32` and `f64`. Between them the left operand
//!   decides, so [`promote`] is not commutative.
//! * `pred` is promoted as `u8`.
//! * A weak scalar never widens a float tensor; this includes infinities and NaN.
//!
//! Two differences from Nx are deliberate. `f8_e4m3fn` with a weak scalar stays `f8_e4m3fn`, where
//! Nx returns `f32`. `bf16` and `f16` with an infinity or NaN keep their dtype, where Nx widens to
//! `f32`.

use std::fmt;

use half::{bf16, f16};
use num_complex::Complex;

use crate::dtype::{DType, Kind};
use crate::scalar::Scalar;

/// A weak scalar: a number of the host language, which adapts to the dtype of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A boolean.
    Bool(bool),
    /// An integer; integers outside of `i64` and `u64` have no dtype.
    Int(i128),
    /// An integer outside of `i128`, as the nearest float or an infinity. It has no dtype.
    LargeInt(f64),
    /// A real number.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
}

macro_rules! from_numbers {
    ($($ty:ty => $variant:ident as $wide:ty;)*) => {
        $(
            impl From<$ty> for Number {
                fn from(number: $ty) -> Number {
                    // Each of these types fits in the wide type.
                    Number::$variant(number as $wide)
                }
            }
        )*
    };
}

from_numbers! {
    bool => Bool as bool;
    u8 => Int as i128;
    u16 => Int as i128;
    u32 => Int as i128;
    u64 => Int as i128;
    i8 => Int as i128;
    i16 => Int as i128;
    i32 => Int as i128;
    i64 => Int as i128;
    i128 => Int as i128;
    usize => Int as i128;
    isize => Int as i128;
    f32 => Float as f64;
    f64 => Float as f64;
}

macro_rules! from_narrow_floats {
    ($($ty:ty)*) => {
        $(
            impl From<$ty> for Number {
                fn from(number: $ty) -> Number {
                    Number::Float(number.to_f64())
                }
            }
        )*
    };
}

from_narrow_floats!(bf16 f16);

impl<T: Into<f64>> From<Complex<T>> for Number {
    fn from(number: Complex<T>) -> Number {
        Number::Complex(number.re.into(), number.im.into())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Number::Bool(value) => write!(f, "{value}"),
            Number::Int(value) => write!(f, "{value}"),
            Number::LargeInt(value) => write!(f, "{value:e}"),
            Number::Float(value) => write!(f, "{value:?}"),
            Number::Complex(re, im) => write!(f, "{re:?}{im:+?}i"),
        }
    }
}

/// A host integer that no dtype can represent.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum NumberError {
    /// The integer is outside of both `s64` and `u64`.
    #[error("integer {value} fits neither s64 nor u64")]
    OutOfRange {
        /// The integer.
        value: Number,
    },
    /// The integer fits a dtype, but none to which the other operand can be promoted.
    #[error("integer {value} combined with a {other} tensor fits no {kind} dtype")]
    OutOfRangeNextTo {
        /// The integer.
        value: Number,
        /// The dtype of the tensor.
        other: DType,
        /// `signed` or `unsigned`.
        kind: &'static str,
    },
}

crate::debug_as_message!(NumberError);

impl Number {
    /// Returns the dtype of a scalar without a tensor: `pred` for booleans, `f32` for floats, `c64`
    /// for complex numbers, and the first of `s32`, `s64`, `u64` that holds an integer.
    ///
    /// # Errors
    /// Returns [`NumberError::OutOfRange`] if no dtype holds the integer.
    pub fn default_dtype(self) -> Result<DType, NumberError> {
        match self {
            Number::Bool(_) => Ok(DType::Pred),
            Number::Float(_) => Ok(DType::F32),
            Number::Complex(_, _) => Ok(DType::C64),
            Number::Int(value) => [DType::S32, DType::S64, DType::U64]
                .into_iter()
                .find(|dtype| holds(*dtype, value))
                .ok_or(NumberError::OutOfRange { value: self }),
            Number::LargeInt(_) => Err(NumberError::OutOfRange { value: self }),
        }
    }

    /// Returns the scalar and its dtype when it is combined with a tensor of type `other`, if any.
    ///
    /// The scalar has full precision, so it is rounded only once, to the final dtype. An integer
    /// outside of `s64` and `u64` is treated as a float if the tensor is a float or complex tensor.
    ///
    /// # Errors
    /// Returns [`NumberError`] if no permitted dtype holds the integer.
    pub fn weak_scalar(self, other: Option<DType>) -> Result<(Scalar, DType), NumberError> {
        let Some(other) = other else { return Ok((self.to_scalar()?, self.default_dtype()?)) };
        match self.to_scalar() {
            Err(_) if other.is_float() || other.is_complex() => {
                Number::Float(self.as_f64()).weak_scalar(Some(other))
            }
            scalar => Ok((scalar?, weak_dtype(self, other)?)),
        }
    }

    /// Returns the scalar and its dtype when it is compared with a tensor of type `other`.
    ///
    /// Comparisons are exact, so an integer need not fit the dtype of the tensor: it keeps its
    /// default dtype, or is compared as an infinity if no integer dtype holds it.
    #[must_use]
    pub fn for_comparison(self, other: Option<DType>) -> (Scalar, DType) {
        let typed = self.weak_scalar(other).or_else(|_| self.weak_scalar(None));
        typed.unwrap_or_else(|_| (Scalar::Float(f64::INFINITY.copysign(self.as_f64())), DType::F64))
    }

    /// Converts the number to `dtype`; see [`Scalar::cast`]. Integers outside of `s64` and `u64`
    /// convert as floats.
    #[must_use]
    pub fn cast(self, dtype: DType) -> Scalar {
        self.to_scalar().unwrap_or_else(|_| Scalar::Float(self.as_f64())).cast(dtype)
    }

    /// Returns whether an integer dtype holds the number, truncated to an integer. Other dtypes,
    /// booleans and complex numbers have no bounds.
    ///
    /// ```
    /// use nxla_tensor::{DType, Number};
    ///
    /// assert!(Number::Float(255.9).fits(DType::U8) && !Number::Float(256.0).fits(DType::U8));
    /// assert!(!Number::Float(f64::NAN).fits(DType::S32) && !Number::Int(-1).fits(DType::U8));
    /// ```
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "bounds are powers of two, one more or less")]
    pub fn fits(self, dtype: DType) -> bool {
        let bounds = (dtype.min_value().as_i128(), dtype.max_value().as_i128());
        let (true, (Some(min), Some(max))) = (dtype.is_integer(), bounds) else { return true };
        match self {
            Number::Int(value) => (min..=max).contains(&value),
            Number::LargeInt(_) => false,
            Number::Float(value) => {
                let whole = value.trunc();
                whole >= min as f64 && whole < (max + 1) as f64
            }
            Number::Bool(_) | Number::Complex(..) => true,
        }
    }

    /// Returns the real part as the nearest `f64`.
    #[expect(clippy::cast_precision_loss, reason = "the result is the nearest float")]
    fn as_f64(self) -> f64 {
        match self {
            Number::Bool(value) => f64::from(value),
            Number::Int(value) => value as f64,
            Number::LargeInt(value) | Number::Float(value) | Number::Complex(value, _) => value,
        }
    }

    /// Converts the number to a scalar of full precision.
    ///
    /// # Errors
    /// Returns [`NumberError::OutOfRange`] for an integer outside of both `i64` and `u64`.
    pub fn to_scalar(self) -> Result<Scalar, NumberError> {
        match self {
            Number::Bool(value) => Ok(Scalar::from(value)),
            Number::Float(value) => Ok(Scalar::Float(value)),
            Number::Complex(real, imag) => Ok(Scalar::Complex(real, imag)),
            Number::Int(value) => i64::try_from(value)
                .map(Scalar::Int)
                .or_else(|_| u64::try_from(value).map(Scalar::UInt))
                .map_err(|_| NumberError::OutOfRange { value: self }),
            Number::LargeInt(_) => Err(NumberError::OutOfRange { value: self }),
        }
    }
}

/// Returns the dtype of an operation over tensors of types `a` and `b`.
///
/// For two integers of one signedness, the wider one. For an unsigned and a signed integer, the
/// signed type of at least twice the unsigned width (at most 64 bits). Otherwise the higher kind in
/// the order unsigned, signed, `bf16`, float, complex; a complex type with `f64` is `c128`.
///
/// ```
/// use nxla_tensor::{DType, promote};
///
/// assert_eq!(promote(DType::U8, DType::S8), DType::S16);
/// assert_eq!(promote(DType::S64, DType::F16), DType::F16);
/// assert_eq!(promote(DType::C64, DType::F64), DType::C128);
/// assert_eq!(promote(DType::Pred, DType::Pred), DType::U8);
/// ```
#[must_use]
pub fn promote(a: DType, b: DType) -> DType {
    let (a, b) = (pred_as_u8(a), pred_as_u8(b));
    match (a.kind(), b.kind()) {
        (Kind::Pred | Kind::Unsigned, Kind::Pred | Kind::Unsigned)
        | (Kind::Signed, Kind::Signed)
        | (Kind::Complex, Kind::Complex) => wider(a, b),
        (Kind::Pred | Kind::Unsigned, Kind::Signed) => mixed_signs(a, b),
        (Kind::Signed, Kind::Pred | Kind::Unsigned) => mixed_signs(b, a),
        (Kind::Float, Kind::Float) => promote_floats(a, b),
        (Kind::Float, Kind::Complex) => wider(a.to_complex(), b),
        (Kind::Complex, Kind::Float) => wider(a, b.to_complex()),
        (Kind::Pred | Kind::Unsigned | Kind::Signed, Kind::Float | Kind::Complex) => b,
        (Kind::Float | Kind::Complex, Kind::Pred | Kind::Unsigned | Kind::Signed) => a,
    }
}

/// Does the same as [`promote`], but two `pred` operands stay `pred`: for operations without
/// arithmetic, such as selection and concatenation.
#[must_use]
pub fn promote_keep_pred(a: DType, b: DType) -> DType {
    if a.is_pred() && b.is_pred() { DType::Pred } else { promote(a, b) }
}

/// Returns the dtype of a weak scalar that is combined with a tensor of type `other`, chosen so
/// that [`promote`]`(other, weak)` is the result type of the operation.
///
/// * An integer with integers has the result type: `other`, widened until the number fits, and
///   signed of at least twice the width for a negative number with an unsigned type.
/// * An integer with floats and complex types has its default type.
/// * A float has the (real) type of a float or complex `other`, and `f32` otherwise. This includes
///   infinities: `select(mask, x, -inf)` keeps the type of `x`.
/// * A complex number is `c128` with `f64` and `c128`, and `c64` otherwise.
/// * A boolean is `pred` with `pred`, and otherwise treated as the integer 0 or 1.
///
/// # Errors
/// Returns [`NumberError`] if the integer does not fit the widest type of the required signedness.
pub fn weak_dtype(number: Number, other: DType) -> Result<DType, NumberError> {
    match number {
        Number::Bool(_) if other.is_pred() => Ok(DType::Pred),
        Number::Bool(value) => weak_int(Number::Int(value.into()), value.into(), other),
        Number::Int(value) => weak_int(number, value, other),
        #[expect(clippy::cast_possible_truncation, reason = "no dtype holds the nearest i128")]
        Number::LargeInt(value) => weak_int(number, value as i128, other),
        Number::Float(_) => Ok(match other.kind() {
            Kind::Pred | Kind::Unsigned | Kind::Signed => DType::F32,
            Kind::Float | Kind::Complex => other.to_real(),
        }),
        Number::Complex(_, _) => Ok(other.to_complex()),
    }
}

const UNSIGNED: [DType; 6] = [DType::U2, DType::U4, DType::U8, DType::U16, DType::U32, DType::U64];
const SIGNED: [DType; 6] = [DType::S2, DType::S4, DType::S8, DType::S16, DType::S32, DType::S64];

/// The dtype of an integer `number`, whose value is `value` or beyond it.
fn weak_int(number: Number, value: i128, other: DType) -> Result<DType, NumberError> {
    let other = pred_as_u8(other);
    let (candidates, min_bits) = match other.kind() {
        Kind::Pred | Kind::Unsigned if value >= 0 => (UNSIGNED, other.bits()),
        Kind::Pred | Kind::Unsigned => (SIGNED, (2 * other.bits()).min(64)),
        Kind::Signed => (SIGNED, other.bits()),
        Kind::Float | Kind::Complex => return number.default_dtype(),
    };
    candidates
        .into_iter()
        .find(|dtype| dtype.bits() >= min_bits && holds(*dtype, value))
        .ok_or_else(|| {
            let kind = if candidates[0].is_signed() { "signed" } else { "unsigned" };
            NumberError::OutOfRangeNextTo { value: number, other, kind }
        })
}

/// Returns whether an integer dtype can represent the value.
fn holds(dtype: DType, value: i128) -> bool {
    let bound = |scalar: Scalar| scalar.as_i128();
    let (min, max) = (bound(dtype.min_value()), bound(dtype.max_value()));
    min.is_some_and(|min| min <= value) && max.is_some_and(|max| value <= max)
}

fn pred_as_u8(dtype: DType) -> DType {
    if dtype.is_pred() { DType::U8 } else { dtype }
}

/// Returns the wider of two types of one kind.
fn wider(a: DType, b: DType) -> DType {
    if a.bits() >= b.bits() { a } else { b }
}

/// Returns the signed type that holds both, or `s64` if none does.
fn mixed_signs(unsigned: DType, signed: DType) -> DType {
    let bits = (2 * unsigned.bits()).min(64).max(signed.bits());
    SIGNED
        .into_iter()
        .find(|dtype| dtype.bits() == bits)
        .expect("twice a width below 64 is a valid width")
}

fn promote_floats(a: DType, b: DType) -> DType {
    if b == DType::BF16 {
        a
    } else if a == DType::BF16 {
        b
    } else if a == DType::F8E4M3FN || b == DType::F8E4M3FN {
        a
    } else {
        wider(a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dtype(name: &str) -> DType {
        name.parse().unwrap()
    }

    /// Rows and columns in the order of the header; `pred` is checked against `u8` separately.
    const TABLE: &str = "
             u2   u4   u8   u16  u32  u64  s2   s4   s8   s16  s32  s64
        u2   u2   u4   u8   u16  u32  u64  s4   s4   s8   s16  s32  s64
        u4   u4   u4   u8   u16  u32  u64  s8   s8   s8   s16  s32  s64
        u8   u8   u8   u8   u16  u32  u64  s16  s16  s16  s16  s32  s64
        u16  u16  u16  u16  u16  u32  u64  s32  s32  s32  s32  s32  s64
        u32  u32  u32  u32  u32  u32  u64  s64  s64  s64  s64  s64  s64
        u64  u64  u64  u64  u64  u64  u64  s64  s64  s64  s64  s64  s64
        s2   s4   s8   s16  s32  s64  s64  s2   s4   s8   s16  s32  s64
        s4   s4   s8   s16  s32  s64  s64  s4   s4   s8   s16  s32  s64
        s8   s8   s8   s16  s32  s64  s64  s8   s8   s8   s16  s32  s64
        s16  s16  s16  s16  s32  s64  s64  s16  s16  s16  s16  s32  s64
        s32  s32  s32  s32  s32  s64  s64  s32  s32  s32  s32  s32  s64
        s64  s64  s64  s64  s64  s64  s64  s64  s64  s64  s64  s64  s64";

    const FLOAT_TABLE: &str = "
                   bf16      f8        f8_e4m3fn f16       f32       f64       c64  c128
        bf16       bf16      f8        f8_e4m3fn f16       f32       f64       c64  c128
        f8         f8        f8        f8        f16       f32       f64       c64  c128
        f8_e4m3fn  f8_e4m3fn f8_e4m3fn f8_e4m3fn f8_e4m3fn f8_e4m3fn f8_e4m3fn c64  c128
        f16        f16       f16       f16       f16       f32       f64       c64  c128
        f32        f32       f32       f32       f32       f32       f64       c64  c128
        f64        f64       f64       f64       f64       f64       f64       c128 c128
        c64        c64       c64       c64       c64       c64       c128      c64  c128
        c128       c128      c128      c128      c128      c128      c128      c128 c128";

    fn check_table(table: &str) {
        let mut rows = table.trim().lines().map(str::split_whitespace);
        let columns: Vec<DType> = rows.next().unwrap().map(dtype).collect();
        for mut row in rows {
            let left = dtype(row.next().unwrap());
            let results: Vec<DType> = row.map(dtype).collect();
            assert_eq!(results.len(), columns.len());
            for (right, expected) in columns.iter().zip(results) {
                assert_eq!(promote(left, *right), expected, "{left} with {right}");
            }
        }
    }

    #[test]
    fn same_kind_tables() {
        check_table(TABLE);
        check_table(FLOAT_TABLE);
    }

    #[test]
    fn floats_take_precedence_over_integers() {
        for a in DType::ALL {
            for b in DType::ALL {
                if (a.is_integer() || a.is_pred()) && (b.is_float() || b.is_complex()) {
                    assert_eq!(promote(a, b), b);
                    assert_eq!(promote(b, a), b);
                }
            }
        }
    }

    #[test]
    fn pred_promotes_as_u8_unless_kept() {
        for other in DType::ALL {
            assert_eq!(promote(DType::Pred, other), promote(DType::U8, other));
            assert_eq!(promote(other, DType::Pred), promote(other, DType::U8));
        }
        assert_eq!(promote_keep_pred(DType::Pred, DType::Pred), DType::Pred);
        assert_eq!(promote_keep_pred(DType::Pred, DType::S8), DType::S16);
    }

    #[test]
    fn weak_integers_with_integers() {
        let cases: [(&str, i128, &str); 22] = [
            ("u2", 1, "u2"),
            ("u2", 300, "u16"),
            ("u2", -1, "s4"),
            ("u2", -200, "s16"),
            ("u2", -3_000_000_000, "s64"),
            ("u4", -1, "s8"),
            ("u4", 70000, "u32"),
            ("u8", -1, "s16"),
            ("u8", 3_000_000_000, "u32"),
            ("pred", 2, "u8"),
            ("pred", -1, "s16"),
            ("u16", -200, "s32"),
            ("u32", -1, "s64"),
            ("u64", -1, "s64"),
            ("u64", 300, "u64"),
            ("s2", 1, "s2"),
            ("s2", 2, "s4"),
            ("s4", 300, "s16"),
            ("s8", -200, "s16"),
            ("s16", 3_000_000_000, "s64"),
            ("s32", 300, "s32"),
            ("s64", 70000, "s64"),
        ];
        for (other, value, expected) in cases {
            let (other, expected) = (dtype(other), dtype(expected));
            let weak = weak_dtype(Number::Int(value), other).unwrap();
            assert_eq!(weak, expected, "{value} next to {other}");
            assert_eq!(promote(other, weak), expected);
            assert_eq!(promote(weak, other), expected);
        }
    }

    #[test]
    fn weak_numbers_do_not_change_floats() {
        for other in DType::ALL.into_iter().filter(|dtype| dtype.is_float()) {
            for number in
                [Number::Bool(true), Number::Int(-1), Number::Int(1 << 40), Number::Float(2.5)]
            {
                let weak = weak_dtype(number, other).unwrap();
                assert_eq!(promote(other, weak), other, "{other} with {number:?}");
                assert_eq!(promote(weak, other), other, "{number:?} with {other}");
            }
        }
        assert_eq!(weak_dtype(Number::Int(3), DType::F64), Ok(DType::S32));
        assert_eq!(weak_dtype(Number::Float(0.5), DType::C64), Ok(DType::F32));
        assert_eq!(weak_dtype(Number::Float(0.5), DType::C128), Ok(DType::F64));
        assert_eq!(weak_dtype(Number::Float(0.5), DType::S64), Ok(DType::F32));
        assert_eq!(weak_dtype(Number::Float(f64::INFINITY), DType::BF16), Ok(DType::BF16));
        assert_eq!(weak_dtype(Number::Float(f64::NAN), DType::F64), Ok(DType::F64));
        assert_eq!(weak_dtype(Number::Complex(1.0, 2.0), DType::BF16), Ok(DType::C64));
        assert_eq!(weak_dtype(Number::Complex(1.0, 2.0), DType::F64), Ok(DType::C128));
        assert_eq!(weak_dtype(Number::Bool(true), DType::Pred), Ok(DType::Pred));
        assert_eq!(weak_dtype(Number::Bool(true), DType::S2), Ok(DType::S2));
    }

    #[test]
    fn default_types_and_their_limits() {
        assert_eq!(Number::Int(i128::from(i32::MIN)).default_dtype(), Ok(DType::S32));
        assert_eq!(Number::Int(1 << 31).default_dtype(), Ok(DType::S64));
        assert_eq!(Number::Int(1 << 63).default_dtype(), Ok(DType::U64));
        assert_eq!(Number::Int(1 << 63).to_scalar(), Ok(Scalar::UInt(1 << 63)));
        let error = Number::Int(1 << 64).default_dtype().unwrap_err();
        assert_eq!(error.to_string(), "integer 18446744073709551616 fits neither s64 nor u64");
        let error = weak_dtype(Number::Int(1 << 63), DType::S8).unwrap_err();
        assert_eq!(
            error.to_string(),
            "integer 9223372036854775808 combined with a s8 tensor fits no signed dtype"
        );
    }

    #[test]
    fn huge_integers_with_floats_are_floats() {
        for value in [1e40, -1e40] {
            let number = Number::LargeInt(value);
            for other in DType::ALL {
                let weak = number.weak_scalar(Some(other));
                if other.is_float() || other.is_complex() {
                    assert_eq!(weak, Number::Float(value).weak_scalar(Some(other)), "{other}");
                } else {
                    assert!(weak.unwrap_err().to_string().starts_with("integer "), "{other}");
                }
                assert_eq!(number.cast(other), Number::Float(value).cast(other), "{other}");
            }
            let infinity = Scalar::Float(f64::INFINITY.copysign(value));
            assert_eq!(number.for_comparison(Some(DType::S32)), (infinity, DType::F64));
            let error = number.default_dtype().unwrap_err();
            assert_eq!(error.to_string(), format!("integer {value:e} fits neither s64 nor u64"));
        }
    }
}
