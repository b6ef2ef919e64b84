//! Rounding of `f64` to floats narrower than `f32`, in one exact step.
//!
//! Converting through `f32` would round twice, and `half` drops the low 32 bits of an `f64` before
//! rounding; both are wrong for values near a tie. `f8_e4m3fn`, which has no infinities, saturates:
//! 500 and infinity both become 448.

/// The bit layout of a narrow float: a sign bit, `exponent` bits, `mantissa` bits.
pub(crate) struct Format {
    exponent: u32,
    mantissa: u32,
    /// The bit pattern of the largest finite magnitude.
    max_finite: u16,
    /// The bit pattern for larger magnitudes.
    overflow: u16,
    /// The positive quiet NaN.
    nan: u16,
}

pub(crate) const F8_E5M2: Format =
    Format { exponent: 5, mantissa: 2, max_finite: 0x7b, overflow: 0x7c, nan: 0x7e };
pub(crate) const F8_E4M3FN: Format =
    Format { exponent: 4, mantissa: 3, max_finite: 0x7e, overflow: 0x7e, nan: 0x7f };
pub(crate) const F16: Format =
    Format { exponent: 5, mantissa: 10, max_finite: 0x7bff, overflow: 0x7c00, nan: 0x7e00 };
pub(crate) const BF16: Format =
    Format { exponent: 8, mantissa: 7, max_finite: 0x7f7f, overflow: 0x7f80, nan: 0x7fc0 };

impl Format {
    /// Returns the exponent of the smallest normal number.
    const fn min_exponent(&self) -> i32 {
        2 - (1 << (self.exponent - 1))
    }

    /// Returns the bit pattern nearest to `value`, ties to even.
    pub(crate) fn encode(&self, value: f64) -> u16 {
        let sign = u16::from(value.is_sign_negative()) << (self.exponent + self.mantissa);
        let magnitude = value.abs();
        if value.is_nan() {
            return sign | self.nan;
        }
        if magnitude.is_infinite() {
            return sign | self.overflow;
        }
        // The exponent field of an `f64`. Subnormals have the exponent -1023, far below all narrow
        // formats, so they use the smallest exponent, like zero.
        let exponent = ((magnitude.to_bits() >> 52) as i32) - 1023;
        let exponent = exponent.max(self.min_exponent());
        let mantissa_bits = self.mantissa as i32;
        // Scaling by a power of two is exact, so this is the only rounding.
        let units = (magnitude * exp2(mantissa_bits - exponent)).round_ties_even();
        // Adding the fields instead of combining them lets a rounding carry into the exponent, and
        // lets the leading one in `units` increase the exponent field of a normal number by one.
        let field = u64::from((exponent - self.min_exponent()).unsigned_abs()) << self.mantissa;
        let bits = field + units as u64;
        let bits = u16::try_from(bits).unwrap_or(u16::MAX);
        sign | if bits > self.max_finite { self.overflow } else { bits }
    }

    /// Returns the exact value of a bit pattern.
    pub(crate) fn decode(&self, bits: u16) -> f64 {
        let magnitude = bits & ((1 << (self.exponent + self.mantissa)) - 1);
        let negative = bits != magnitude;
        let value = if magnitude <= self.max_finite {
            let fraction = f64::from(magnitude & ((1 << self.mantissa) - 1));
            let field = i32::from(magnitude >> self.mantissa);
            let unit = exp2(self.min_exponent() - self.mantissa as i32);
            if field == 0 {
                fraction * unit
            } else {
                (fraction + f64::from(1_u16 << self.mantissa)) * unit * exp2(field - 1)
            }
        } else if magnitude == self.overflow {
            f64::INFINITY
        } else {
            f64::NAN
        };
        if negative { -value } else { value }
    }

    /// Rounds `value` to the format.
    pub(crate) fn round(&self, value: f64) -> f64 {
        self.decode(self.encode(value))
    }
}

/// Returns `2^exponent` for exponents of normal `f64` numbers.
fn exp2(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_round_trips() {
        for (format, width) in [(&F8_E5M2, 8), (&F8_E4M3FN, 8), (&F16, 16), (&BF16, 16)] {
            for bits in 0..=(u16::MAX >> (16 - width)) {
                let value = format.decode(bits);
                if value.is_nan() {
                    assert!(format.decode(format.encode(value)).is_nan());
                } else {
                    assert_eq!(format.encode(value), bits, "{value}");
                }
            }
        }
    }

    #[test]
    fn decoding_agrees_with_half() {
        for bits in 0..=u16::MAX {
            let pairs = [
                (F16.decode(bits), half::f16::from_bits(bits).to_f64()),
                (BF16.decode(bits), half::bf16::from_bits(bits).to_f64()),
            ];
            for (ours, theirs) in pairs {
                assert!(ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()));
            }
        }
    }

    #[test]
    fn midpoints_round_to_even() {
        for (format, last) in
            [(&F8_E5M2, 0x7a), (&F8_E4M3FN, 0x7d), (&F16, 0x7bfe), (&BF16, 0x7f7e)]
        {
            for bits in 0..=last {
                let middle = f64::midpoint(format.decode(bits), format.decode(bits + 1));
                let even = if bits % 2 == 0 { bits } else { bits + 1 };
                assert_eq!(format.encode(middle), even);
                assert_eq!(format.encode(middle.next_down()), bits);
                assert_eq!(format.encode(middle.next_up()), bits + 1);
            }
        }
    }

    #[test]
    fn overflow_and_special_values() {
        assert_eq!(F8_E4M3FN.round(500.0), 448.0);
        assert_eq!(F8_E4M3FN.round(f64::NEG_INFINITY), -448.0);
        assert!(F8_E4M3FN.round(f64::NAN).is_nan());
        assert_eq!(F8_E5M2.round(57344.0), 57344.0);
        assert_eq!(F8_E5M2.round(61440.0), f64::INFINITY);
        assert_eq!(F16.round(65519.9), 65504.0);
        assert_eq!(F16.round(65520.0), f64::INFINITY);
        assert_eq!(BF16.round(-f64::MAX), f64::NEG_INFINITY);
        assert_eq!(F16.encode(-0.0), 0x8000);
        assert_eq!(BF16.encode(5e-324), 0);
    }
}
