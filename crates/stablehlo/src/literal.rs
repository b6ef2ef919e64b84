//! Numbers and tensors as MLIR literals.
//!
//! A single number is written in decimal if that form is exact, and by its bits
//! otherwise. A tensor is written as the hexadecimal form of its bytes, which MLIR reads at the
//! speed of a copy and without rounding.

use std::fmt::{self, Write};

use nxla_tensor::{DType, HostTensor, Kind, Scalar};

use crate::widen;

/// An element of a dtype: `true`, `-3`, `0.1`, `0x7F800000`, `(1.0, 0.0)`.
pub(crate) struct Element(pub(crate) Scalar, pub(crate) DType);

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Element(value, dtype) = *self;
        let value = value.cast(dtype);
        match dtype.kind() {
            Kind::Pred => write!(f, "{}", !value.is_zero()),
            Kind::Unsigned | Kind::Signed => match value {
                Scalar::Int(value) => write!(f, "{value}"),
                Scalar::UInt(value) => write!(f, "{value}"),
                Scalar::Float(_) | Scalar::Complex(..) => {
                    unreachable!("a cast to an integer returns an integer")
                }
            },
            Kind::Float => write!(f, "{}", Float(value.as_f64(), dtype)),
            Kind::Complex => {
                let (re, im) = value.parts();
                let part = dtype.to_real();
                write!(f, "({}, {})", Float(re, part), Float(im, part))
            }
        }
    }
}

/// A real number that is already rounded to the precision of its dtype.
struct Float(f64, DType);

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Float(value, dtype) = *self;
        if !value.is_finite() {
            return write_bits(f, value, dtype);
        }
        // The decimal form of an `f32` is the shorter one. MLIR reads it as an `f64` and rounds it
        // again, which must return the same number.
        #[expect(clippy::cast_possible_truncation, reason = "the value fits narrow floats exactly")]
        let narrow = value as f32;
        let short = format!("{narrow:?}");
        #[expect(clippy::cast_possible_truncation, reason = "this is the rounding to be checked")]
        let read = short.parse::<f64>().map(|read| read as f32);
        if dtype != DType::F64 && read == Ok(narrow) {
            return with_point(f, &short);
        }
        with_point(f, &format!("{value:?}"))
    }
}

/// MLIR wants a decimal point even before an exponent: `1.0e-10`.
fn with_point(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => write!(f, "{digits}.0e{exponent}"),
        _ => f.write_str(text),
    }
}

/// An infinity or the quiet NaN by its bits.
fn write_bits(f: &mut fmt::Formatter<'_>, value: f64, dtype: DType) -> fmt::Result {
    // The infinity, the bit that makes it NaN, and the number of bits.
    let (infinity, nan, bits): (u64, u64, u32) = match dtype {
        DType::F8E5M2 => (0x7C, 0x02, 8),
        // This dtype has NaN, with all bits set, but not an infinity.
        DType::F8E4M3FN => (0x7F, 0x00, 8),
        DType::BF16 => (0x7F80, 0x0040, 16),
        DType::F16 => (0x7C00, 0x0200, 16),
        DType::F32 => (0x7F80_0000, 0x0040_0000, 32),
        DType::F64 => (0x7FF0_0000_0000_0000, 0x0008_0000_0000_0000, 64),
        dtype => unreachable!("{dtype} is not a real float"),
    };
    let pattern = if value.is_nan() {
        infinity | nan
    } else if value < 0.0 {
        infinity | 1 << (bits - 1)
    } else {
        infinity
    };
    write!(f, "0x{pattern:0width$X}", width = bits as usize / 4)
}

/// The dtype in which the bytes of a literal are written. MLIR packs `i1` and may pack other
/// small integers, so they are written as whole bytes and converted.
pub(crate) const fn stored_as(dtype: DType) -> DType {
    if dtype.is_pred() { DType::U8 } else { widen::storage(dtype) }
}

/// `dense<"0x0000803F…">`: the bytes of a tensor in memory order.
pub(crate) struct Dense<'a>(pub(crate) &'a HostTensor);

impl fmt::Display for Dense<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        f.write_str("dense<\"0x")?;
        let mut buffer = [0; 128];
        for chunk in self.0.bytes().chunks(buffer.len() / 2) {
            for (byte, digits) in chunk.iter().zip(buffer.chunks_exact_mut(2)) {
                digits[0] = DIGITS[usize::from(byte >> 4)];
                digits[1] = DIGITS[usize::from(byte & 15)];
            }
            let text = &buffer[..chunk.len() * 2];
            f.write_str(std::str::from_utf8(text).expect("hexadecimal digits are ASCII"))?;
        }
        f.write_str("\">")
    }
}

/// `1, 2, 3`.
pub(crate) struct List<'a, T>(pub(crate) &'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, item) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

/// `array<i64: 1, 2>`, and `array<i64>` without entries.
pub(crate) struct I64s<'a, T>(pub(crate) &'a [T]);

impl<T: fmt::Display> fmt::Display for I64s<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("array<i64>");
        }
        write!(f, "array<i64: {}>", List(self.0))
    }
}

/// `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`: padding before and after each axis.
pub(crate) struct Pairs<'a>(pub(crate) &'a [(i64, i64)]);

impl fmt::Display for Pairs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dense<")?;
        if !self.0.is_empty() {
            f.write_char('[')?;
            for (position, (low, high)) in self.0.iter().enumerate() {
                let separator = if position > 0 { ", " } else { "" };
                write!(f, "{separator}[{low}, {high}]")?;
            }
            f.write_char(']')?;
        }
        write!(f, "> : tensor<{}x2xi64>", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: impl Into<Scalar>, dtype: DType) -> String {
        Element(value.into(), dtype).to_string()
    }

    #[test]
    fn numbers() {
        assert_eq!(text(Scalar::UInt(1), DType::Pred), "true");
        assert_eq!(text(Scalar::Int(-8), DType::S4), "-8");
        assert_eq!(text(Scalar::UInt(u64::MAX), DType::U64), "18446744073709551615");
        assert_eq!(text(Scalar::Float(0.1), DType::F32), "0.1");
        assert_eq!(text(Scalar::Float(0.1), DType::F64), "0.1");
        assert_eq!(text(Scalar::Float(0.1), DType::BF16), "0.100097656");
        assert_eq!(text(Scalar::Float(1e-10), DType::F32), "1.0e-10");
        assert_eq!(text(Scalar::Float(1.5e300), DType::F64), "1.5e300");
        assert_eq!(text(Scalar::Float(-0.0), DType::F32), "-0.0");
        assert_eq!(text(Scalar::Complex(0.1, f64::INFINITY), DType::C64), "(0.1, 0x7F800000)");
    }

    #[test]
    fn nan_and_infinity_are_hexadecimal() {
        let cases = [
            (DType::F8E5M2, ["0x7E", "0x7C", "0xFC"]),
            (DType::BF16, ["0x7FC0", "0x7F80", "0xFF80"]),
            (DType::F16, ["0x7E00", "0x7C00", "0xFC00"]),
            (DType::F32, ["0x7FC00000", "0x7F800000", "0xFF800000"]),
            (DType::F64, ["0x7FF8000000000000", "0x7FF0000000000000", "0xFFF0000000000000"]),
        ];
        for (dtype, [nan, positive, negative]) in cases {
            assert_eq!(text(Scalar::Float(f64::NAN), dtype), nan);
            assert_eq!(text(Scalar::Float(f64::INFINITY), dtype), positive);
            assert_eq!(text(Scalar::Float(f64::NEG_INFINITY), dtype), negative);
        }
        assert_eq!(text(Scalar::Float(f64::NAN), DType::F8E4M3FN), "0x7F");
    }

    #[test]
    fn f32_texts_round_trip() {
        // Regularly spaced bit patterns, including subnormal numbers.
        for bits in (0..0x7F80_0000_u32).step_by(104_729) {
            let value = f32::from_bits(bits);
            let text = text(Scalar::Float(f64::from(value)), DType::F32);
            assert!(text.contains('.'), "{text}");
            #[expect(clippy::cast_possible_truncation, reason = "MLIR rounds like this")]
            let read = text.parse::<f64>().unwrap() as f32;
            assert_eq!(read.to_bits(), bits, "{text}");
        }
    }

    #[test]
    fn lists() {
        assert_eq!(I64s(&[1, 2]).to_string(), "array<i64: 1, 2>");
        assert_eq!(I64s::<i64>(&[]).to_string(), "array<i64>");
        assert_eq!(
            Pairs(&[(0, 1), (-2, 3)]).to_string(),
            "dense<[[0, 1], [-2, 3]]> : tensor<2x2xi64>"
        );
        assert_eq!(Pairs(&[]).to_string(), "dense<> : tensor<0x2xi64>");
    }

    #[test]
    fn tensors() {
        let tensor = HostTensor::from_slice(&[1.0_f32, -2.0], [2]).unwrap();
        assert_eq!(Dense(&tensor).to_string(), "dense<\"0x0000803F000000C0\">");
    }
}
