//! Element types: names, sizes, kinds and conversions between types.
//!
//! Notable details:
//!
//! * Sub-byte integers (`u2`, `u4`, `s2`, `s4`) and `pred` take one byte per element in memory;
//!   [`DType::bits`] is the logical width, [`DType::size`] the stored width.
//! * `f8_e4m3fn` has no infinities. Its largest magnitude is 448, which [`DType::max_value`] and
//!   [`DType::min_value`] return with the appropriate sign.
//! * [`DType::to_aggregate`] maps `u64` to `s64`, although other unsigned types stay unsigned. This
//!   is the rule of Nx for sums and products.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::scalar::Scalar;

/// The type of a tensor element.
///
/// ```
/// use nxla_tensor::DType;
///
/// assert_eq!("float32".parse::<DType>(), Ok(DType::F32));
/// assert_eq!(DType::F8E5M2.to_string(), "f8_e5m2");
/// assert_eq!(DType::S4.bits(), 4);
/// assert_eq!(DType::S4.size(), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum DType {
    /// Boolean, stored as one byte that is 0 or 1.
    Pred,
    /// Unsigned 2-bit integer, one per byte.
    U2,
    /// Unsigned 4-bit integer, one per byte.
    U4,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// Signed 2-bit integer, one per byte.
    S2,
    /// Signed 4-bit integer, one per byte.
    S4,
    /// Signed 8-bit integer.
    S8,
    /// Signed 16-bit integer.
    S16,
    /// Signed 32-bit integer.
    S32,
    /// Signed 64-bit integer.
    S64,
    /// 8-bit float with 5 exponent bits, 2 mantissa bits and infinities (`f8` in Nx).
    F8E5M2,
    /// 8-bit float with 4 exponent bits and 3 mantissa bits, finite except for one NaN per sign.
    F8E4M3FN,
    /// Brain float: the upper half of an `f32`.
    BF16,
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Complex number of two `f32`.
    C64,
    /// Complex number of two `f64`.
    C128,
}

/// The kind of a [`DType`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Boolean.
    Pred,
    /// Unsigned integer.
    Unsigned,
    /// Signed integer.
    Signed,
    /// Real floating-point number, including 8-bit floats and bf16.
    Float,
    /// Complex floating-point number.
    Complex,
}

/// A string that is not the name of a dtype.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("dtype: must be one of {}; got {given:?}", accepted_names())]
pub struct DTypeParseError {
    /// The string.
    pub given: String,
}

crate::debug_as_message!(DTypeParseError);

/// The names of other libraries for the same types, in the order of the error message.
const ALIASES: [(&str, DType); 22] = [
    ("bool", DType::Pred),
    ("uint2", DType::U2),
    ("uint4", DType::U4),
    ("uint8", DType::U8),
    ("uint16", DType::U16),
    ("uint32", DType::U32),
    ("uint64", DType::U64),
    ("int2", DType::S2),
    ("int4", DType::S4),
    ("int8", DType::S8),
    ("int16", DType::S16),
    ("int32", DType::S32),
    ("int64", DType::S64),
    ("f8", DType::F8E5M2),
    ("float8_e5m2", DType::F8E5M2),
    ("float8_e4m3fn", DType::F8E4M3FN),
    ("bfloat16", DType::BF16),
    ("float16", DType::F16),
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("complex64", DType::C64),
    ("complex128", DType::C128),
];

fn accepted_names() -> String {
    let own = DType::ALL.iter().map(|dtype| dtype.name());
    let others = ALIASES.iter().map(|(name, _)| *name);
    own.chain(others).collect::<Vec<_>>().join(", ")
}

impl DType {
    /// All dtypes in declaration order.
    pub const ALL: [DType; 21] = [
        DType::Pred,
        DType::U2,
        DType::U4,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::S2,
        DType::S4,
        DType::S8,
        DType::S16,
        DType::S32,
        DType::S64,
        DType::F8E5M2,
        DType::F8E4M3FN,
        DType::BF16,
        DType::F16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];

    /// Returns the canonical name, which [`Display`](fmt::Display) writes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DType::Pred => "pred",
            DType::U2 => "u2",
            DType::U4 => "u4",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::S2 => "s2",
            DType::S4 => "s4",
            DType::S8 => "s8",
            DType::S16 => "s16",
            DType::S32 => "s32",
            DType::S64 => "s64",
            DType::F8E5M2 => "f8_e5m2",
            DType::F8E4M3FN => "f8_e4m3fn",
            DType::BF16 => "bf16",
            DType::F16 => "f16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "c64",
            DType::C128 => "c128",
        }
    }

    /// Returns the name of the dtype as an element type of MLIR.
    #[must_use]
    pub const fn mlir_name(self) -> &'static str {
        match self {
            DType::Pred => "i1",
            DType::U2 => "ui2",
            DType::U4 => "ui4",
            DType::U8 => "ui8",
            DType::U16 => "ui16",
            DType::U32 => "ui32",
            DType::U64 => "ui64",
            DType::S2 => "i2",
            DType::S4 => "i4",
            DType::S8 => "i8",
            DType::S16 => "i16",
            DType::S32 => "i32",
            DType::S64 => "i64",
            DType::F8E5M2 => "f8E5M2",
            DType::F8E4M3FN => "f8E4M3FN",
            DType::BF16 => "bf16",
            DType::F16 => "f16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "complex<f32>",
            DType::C128 => "complex<f64>",
        }
    }

    /// Returns the dtype of an element type of MLIR; `None` for other types.
    ///
    /// ```
    /// use nxla_tensor::DType;
    ///
    /// assert_eq!(DType::from_mlir_name("complex<f32>"), Some(DType::C64));
    /// assert_eq!(DType::C64.mlir_name(), "complex<f32>");
    /// assert_eq!(DType::from_mlir_name("tf32"), None);
    /// ```
    #[must_use]
    pub fn from_mlir_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.mlir_name() == name)
    }

    /// Returns the logical width in bits, which is 8 for `pred`.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            DType::U2 | DType::S2 => 2,
            DType::U4 | DType::S4 => 4,
            DType::Pred | DType::U8 | DType::S8 | DType::F8E5M2 | DType::F8E4M3FN => 8,
            DType::U16 | DType::S16 | DType::BF16 | DType::F16 => 16,
            DType::U32 | DType::S32 | DType::F32 => 32,
            DType::U64 | DType::S64 | DType::F64 | DType::C64 => 64,
            DType::C128 => 128,
        }
    }

    /// Returns the size of an element in memory in bytes, at least 1.
    #[must_use]
    pub const fn size(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// Returns the alignment of elements in bytes. Backends move eight-byte elements as one word,
    /// so complex numbers of two halves need a larger alignment than their Rust type.
    ///
    /// ```
    /// assert_eq!(nxla_tensor::DType::C64.align(), 8);
    /// assert_eq!(nxla_tensor::DType::F16.align(), 2);
    /// ```
    #[must_use]
    pub const fn align(self) -> usize {
        if self.size() < 8 { self.size() } else { 8 }
    }

    /// Returns the kind of the type.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            DType::Pred => Kind::Pred,
            DType::U2 | DType::U4 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
                Kind::Unsigned
            }
            DType::S2 | DType::S4 | DType::S8 | DType::S16 | DType::S32 | DType::S64 => {
                Kind::Signed
            }
            DType::F8E5M2
            | DType::F8E4M3FN
            | DType::BF16
            | DType::F16
            | DType::F32
            | DType::F64 => Kind::Float,
            DType::C64 | DType::C128 => Kind::Complex,
        }
    }

    /// Returns whether this is the boolean type.
    #[must_use]
    pub const fn is_pred(self) -> bool {
        matches!(self.kind(), Kind::Pred)
    }

    /// Returns whether this is an unsigned integer (not `pred`).
    #[must_use]
    pub const fn is_unsigned(self) -> bool {
        matches!(self.kind(), Kind::Unsigned)
    }

    /// Returns whether this is a signed integer.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), Kind::Signed)
    }

    /// Returns whether this is a signed or unsigned integer (not `pred`).
    #[must_use]
    pub const fn is_integer(self) -> bool {
        self.is_unsigned() || self.is_signed()
    }

    /// Returns whether this is a real float.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Returns whether this is a complex type.
    #[must_use]
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// Converts integers and `pred` to `f32`; floats and complex types are unchanged.
    #[must_use]
    pub const fn to_floating(self) -> DType {
        match self.kind() {
            Kind::Pred | Kind::Unsigned | Kind::Signed => DType::F32,
            Kind::Float | Kind::Complex => self,
        }
    }

    /// Returns the type of the real part: `f32` for `c64`, `f64` for `c128`, floats unchanged, and
    /// `f32` for other types.
    #[must_use]
    pub const fn to_real(self) -> DType {
        match self {
            DType::C128 => DType::F64,
            DType::C64 => DType::F32,
            other => other.to_floating(),
        }
    }

    /// Returns the complex type that holds the values: `c128` for `f64`, complex types unchanged,
    /// and `c64` for other types.
    #[must_use]
    pub const fn to_complex(self) -> DType {
        if matches!(self, DType::F64 | DType::C128) { DType::C128 } else { DType::C64 }
    }

    /// Returns the type in which sums and products are accumulated.
    ///
    /// Narrow integers widen to 32 bits, `pred` is treated as `u8`, and 64-bit integers of either
    /// signedness become `s64`.
    #[must_use]
    pub const fn to_aggregate(self) -> DType {
        match self {
            DType::Pred | DType::U2 | DType::U4 | DType::U8 | DType::U16 | DType::U32 => DType::U32,
            DType::S2 | DType::S4 | DType::S8 | DType::S16 | DType::S32 => DType::S32,
            DType::U64 | DType::S64 => DType::S64,
            DType::F8E5M2
            | DType::F8E4M3FN
            | DType::BF16
            | DType::F16
            | DType::F32
            | DType::F64
            | DType::C64
            | DType::C128 => self,
        }
    }

    /// Returns the type in which many elements can be counted and summed: `f32` for `f16` and 8-bit
    /// floats, whose range is smaller than the sizes of tensors; other types are unchanged.
    #[must_use]
    pub const fn to_counting(self) -> DType {
        match self {
            DType::F8E5M2 | DType::F8E4M3FN | DType::F16 => DType::F32,
            other => other,
        }
    }

    /// Returns the type for computations that need more precision than narrow floats have: `f32`
    /// for floats of fewer than 32 bits; other types are unchanged.
    #[must_use]
    pub const fn at_least_f32(self) -> DType {
        if self.is_float() && self.bits() < 32 { DType::F32 } else { self }
    }

    /// Returns the identity of `max`: the smallest integer, minus infinity for floats with
    /// infinities, and −448 for `f8_e4m3fn`. For complex types, which are not ordered, it is the
    /// value for their parts.
    #[must_use]
    pub const fn min_value(self) -> Scalar {
        match self.kind() {
            Kind::Pred | Kind::Unsigned => Scalar::UInt(0),
            Kind::Signed => Scalar::Int(i64::MIN >> (64 - self.bits())),
            Kind::Float if matches!(self, DType::F8E4M3FN) => Scalar::Float(-448.0),
            Kind::Float => Scalar::Float(f64::NEG_INFINITY),
            Kind::Complex => Scalar::Complex(f64::NEG_INFINITY, f64::NEG_INFINITY),
        }
    }

    /// Returns the identity of `min`: the largest integer, infinity for floats with infinities, and
    /// 448 for `f8_e4m3fn`. For complex types, which are not ordered, it is the value for their
    /// parts.
    #[must_use]
    pub const fn max_value(self) -> Scalar {
        match self.kind() {
            Kind::Pred => Scalar::UInt(1),
            Kind::Unsigned => Scalar::UInt(u64::MAX >> (64 - self.bits())),
            Kind::Signed => Scalar::Int(i64::MAX >> (64 - self.bits())),
            Kind::Float if matches!(self, DType::F8E4M3FN) => Scalar::Float(448.0),
            Kind::Float => Scalar::Float(f64::INFINITY),
            Kind::Complex => Scalar::Complex(f64::INFINITY, f64::INFINITY),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = DTypeParseError;

    fn from_str(text: &str) -> Result<DType, DTypeParseError> {
        let own = DType::ALL.into_iter().find(|dtype| dtype.name() == text);
        let alias = || ALIASES.iter().find(|(name, _)| *name == text).map(|(_, dtype)| *dtype);
        own.or_else(alias).ok_or_else(|| DTypeParseError { given: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_are_unique() {
        for (index, dtype) in DType::ALL.into_iter().enumerate() {
            assert_eq!(dtype as usize, index);
            assert_eq!(dtype.to_string().parse(), Ok(dtype));
        }
        for (name, dtype) in ALIASES {
            assert_eq!(name.parse(), Ok(dtype));
        }
    }

    #[test]
    fn every_dtype_has_a_numpy_style_name() {
        for dtype in DType::ALL {
            assert!(ALIASES.iter().any(|(_, alias)| *alias == dtype), "{dtype}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_accepted_ones() {
        let error = "u1".parse::<DType>().unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("dtype: must be one of pred, u2,"), "{text}");
        assert!(text.contains("f8_e5m2") && text.ends_with("complex128; got \"u1\""), "{text}");
    }

    #[test]
    fn sizes() {
        let sizes: Vec<usize> = DType::ALL.iter().map(|dtype| dtype.size()).collect();
        let expected = [1, 1, 1, 1, 2, 4, 8, 1, 1, 1, 2, 4, 8, 1, 1, 2, 2, 4, 8, 8, 16];
        assert_eq!(sizes, expected);
    }

    #[test]
    fn unary_conversions() {
        for dtype in DType::ALL {
            assert!(dtype.to_floating().is_float() || dtype.to_floating().is_complex());
            assert!(dtype.to_real().is_float());
            assert!(dtype.to_complex().is_complex());
        }
        assert_eq!(DType::S64.to_floating(), DType::F32);
        assert_eq!(DType::F8E4M3FN.to_floating(), DType::F8E4M3FN);
        assert_eq!(DType::BF16.to_real(), DType::BF16);
        assert_eq!(DType::C128.to_real(), DType::F64);
        assert_eq!(DType::F64.to_complex(), DType::C128);
        assert_eq!(DType::BF16.to_complex(), DType::C64);
        assert_eq!(DType::U64.to_aggregate(), DType::S64);
        assert_eq!(DType::Pred.to_aggregate(), DType::U32);
        assert_eq!(DType::S2.to_aggregate(), DType::S32);
        assert_eq!(DType::F16.to_counting(), DType::F32);
        assert_eq!(DType::BF16.to_counting(), DType::BF16);
        assert_eq!(DType::F16.to_aggregate(), DType::F16);
    }

    #[test]
    fn extreme_values() {
        assert_eq!(DType::S2.min_value(), Scalar::Int(-2));
        assert_eq!(DType::S2.max_value(), Scalar::Int(1));
        assert_eq!(DType::S64.min_value(), Scalar::Int(i64::MIN));
        assert_eq!(DType::U4.max_value(), Scalar::UInt(15));
        assert_eq!(DType::U64.max_value(), Scalar::UInt(u64::MAX));
        assert_eq!(DType::F8E4M3FN.max_value(), Scalar::Float(448.0));
        assert_eq!(DType::F8E5M2.min_value(), Scalar::Float(f64::NEG_INFINITY));
        for dtype in DType::ALL {
            assert_eq!(dtype.min_value().cast(dtype), dtype.min_value(), "{dtype}");
            assert_eq!(dtype.max_value().cast(dtype), dtype.max_value(), "{dtype}");
        }
    }
}
