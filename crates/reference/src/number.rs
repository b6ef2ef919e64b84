//! One element, independent of the width of its dtype, and conversions between dtypes.

use std::cmp::Ordering;

use nxla_tensor::{Complex, DType, Kind, Scalar};

/// Complex numbers are computed as pairs of `f64`.
pub(crate) type C = Complex<f64>;

/// An element during a computation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Number {
    /// An element of an integer dtype, or 0 or 1 of `pred`. Wide enough for the product of any two.
    Int(i128),
    /// An element of a real float dtype.
    Real(f64),
    /// An element of a complex dtype.
    Complex(C),
}

impl Number {
    pub(crate) const ZERO: Number = Number::Int(0);
    pub(crate) const ONE: Number = Number::Int(1);

    /// Returns 1 for true and 0 for false.
    pub(crate) fn from_bool(holds: bool) -> Number {
        Number::Int(i128::from(holds))
    }

    /// Returns a number of elements, or an index, as a number.
    pub(crate) fn count(count: usize) -> Number {
        Number::Int(count as i128)
    }

    /// Returns the element of a tensor as a number.
    pub(crate) fn of(scalar: Scalar) -> Number {
        match scalar {
            Scalar::Int(n) => Number::Int(n.into()),
            Scalar::UInt(n) => Number::Int(n.into()),
            Scalar::Float(x) => Number::Real(x),
            Scalar::Complex(re, im) => Number::Complex(C::new(re, im)),
        }
    }

    /// Returns the element of a tensor of this dtype, in which the number fits.
    pub(crate) fn scalar(self, dtype: DType) -> Scalar {
        match self {
            Number::Int(n) if dtype.is_signed() => Scalar::Int(n as i64),
            Number::Int(n) => Scalar::UInt(n as u64),
            Number::Real(x) => Scalar::Float(x),
            Number::Complex(z) => Scalar::Complex(z.re, z.im),
        }
    }

    /// Converts the number to a dtype.
    ///
    /// * To integers: integers that do not fit wrap modulo `2^bits`; real numbers are truncated and
    ///   saturate, and NaN becomes 0.
    /// * To floats: the nearest number, and in a tie the number with an even last digit.
    /// * Complex numbers to real numbers: the real part.
    /// * To `pred`: whether the number is nonzero.
    pub(crate) fn cast(self, dtype: DType) -> Number {
        match dtype.kind() {
            Kind::Pred => Number::from_bool(!self.is_zero()),
            Kind::Unsigned | Kind::Signed => Number::Int(match self {
                Number::Int(n) => wrapped(n, dtype),
                Number::Real(x) | Number::Complex(C { re: x, .. }) => truncated(x, dtype),
            }),
            Kind::Float => Number::Real(self.rounded(dtype)),
            Kind::Complex => {
                let part = dtype.to_real();
                let im = match self {
                    Number::Int(_) | Number::Real(_) => 0.0,
                    Number::Complex(z) => rounded(z.im, part),
                };
                Number::Complex(C::new(self.rounded(part), im))
            }
        }
    }

    /// Returns the real part, rounded to a float dtype.
    fn rounded(self, dtype: DType) -> f64 {
        match self {
            Number::Int(n) => rounded(rounded_integer(n, dtype), dtype),
            Number::Real(x) | Number::Complex(C { re: x, .. }) => rounded(x, dtype),
        }
    }

    /// Returns whether the number is zero of either sign.
    pub(crate) fn is_zero(self) -> bool {
        match self {
            Number::Int(n) => n == 0,
            Number::Real(x) => x == 0.0,
            Number::Complex(z) => z.re == 0.0 && z.im == 0.0,
        }
    }

    pub(crate) fn is_nan(self) -> bool {
        match self {
            Number::Int(_) => false,
            Number::Real(x) => x.is_nan(),
            Number::Complex(z) => z.re.is_nan() || z.im.is_nan(),
        }
    }

    /// Returns an integer; type inference guarantees that the number is one.
    pub(crate) fn int(self) -> i128 {
        match self {
            Number::Int(n) => n,
            Number::Real(_) | Number::Complex(_) => unreachable!("{self:?} is not of an integer"),
        }
    }

    /// Returns the number as a complex number, for linear algebra.
    pub(crate) fn complex(self) -> C {
        match self {
            Number::Int(n) => C::new(n as f64, 0.0),
            Number::Real(x) => C::new(x, 0.0),
            Number::Complex(z) => z,
        }
    }

    /// Computes `x + y` of two numbers of one kind; [`Number::ZERO`] has every kind.
    pub(crate) fn add(self, other: Number) -> Number {
        match (self, other) {
            (Number::Int(x), Number::Int(y)) => Number::Int(x.wrapping_add(y)),
            (Number::Real(x), Number::Real(y)) => Number::Real(x + y),
            (x, y) => Number::Complex(x.complex() + y.complex()),
        }
    }

    /// Computes `x y` of two numbers of one kind.
    pub(crate) fn multiply(self, other: Number) -> Number {
        match (self, other) {
            // Wrapping keeps the low bits, and integer dtypes have no other bits.
            (Number::Int(x), Number::Int(y)) => Number::Int(x.wrapping_mul(y)),
            (Number::Real(x), Number::Real(y)) => Number::Real(x * y),
            (x, y) => Number::Complex(x.complex() * y.complex()),
        }
    }

    /// Returns whether two numbers of one kind are equal. NaN equals nothing; zeros of either sign
    /// are equal.
    pub(crate) fn equals(self, other: Number) -> bool {
        match (self, other) {
            (Number::Int(x), Number::Int(y)) => x == y,
            (x, y) => x.complex() == y.complex(),
        }
    }

    /// Compares two real numbers; returns `None` if either is NaN.
    pub(crate) fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(x), Number::Int(y)) => Some(x.cmp(&y)),
            (Number::Real(x), Number::Real(y)) => x.partial_cmp(&y),
            (x, y) => unreachable!("{x:?} and {y:?} have no order"),
        }
    }

    /// Returns the larger of two real numbers; NaN if either is NaN.
    pub(crate) fn larger(self, other: Number) -> Number {
        match self.compare(other) {
            Some(Ordering::Greater) => self,
            Some(Ordering::Equal | Ordering::Less) => other,
            None => Number::Real(f64::NAN),
        }
    }

    /// Returns the smaller of two real numbers; NaN if either is NaN.
    pub(crate) fn smaller(self, other: Number) -> Number {
        match self.compare(other) {
            Some(Ordering::Less) => self,
            Some(Ordering::Equal | Ordering::Greater) => other,
            None => Number::Real(f64::NAN),
        }
    }
}

/// Returns the integer of the dtype with the same low bits.
fn wrapped(n: i128, dtype: DType) -> i128 {
    let modulus = 1_i128 << dtype.bits();
    let low = n.rem_euclid(modulus);
    if dtype.is_signed() && low >= modulus / 2 { low - modulus } else { low }
}

/// Converts a real number to an integer.
fn truncated(x: f64, dtype: DType) -> i128 {
    let (least, most) = (Number::of(dtype.min_value()).int(), Number::of(dtype.max_value()).int());
    // The conversion truncates, maps NaN to 0, and has a larger range than any dtype.
    (x as i128).clamp(least, most)
}

/// The numbers of a float dtype: `digits` binary digits, an exponent of at least `lowest`, and a
/// magnitude of at most `largest`.
struct Format {
    digits: u32,
    lowest: i32,
    largest: f64,
    /// The result for larger magnitudes.
    overflow: f64,
}

/// Returns the format of a real float dtype, or of the parts of a complex dtype.
fn format(dtype: DType) -> Format {
    let (digits, lowest, largest) = match dtype.to_real() {
        DType::F8E5M2 => (3, -14, 57_344.0),
        // Without infinities, larger magnitudes saturate.
        DType::F8E4M3FN => {
            return Format { digits: 4, lowest: -6, largest: 448.0, overflow: 448.0 };
        }
        DType::F16 => (11, -14, 65_504.0),
        DType::BF16 => (8, -126, 2_f64.powi(128) - 2_f64.powi(119)),
        DType::F64 => (53, -1022, f64::MAX),
        _ => (24, -126, f64::from(f32::MAX)),
    };
    Format { digits, lowest, largest, overflow: f64::INFINITY }
}

/// Returns the number of a float dtype that is nearest to `x`.
fn rounded(x: f64, dtype: DType) -> f64 {
    let Format { digits, lowest, largest, overflow } = format(dtype);
    if x.is_nan() || x == 0.0 || digits == f64::MANTISSA_DIGITS {
        return x;
    }
    if x.is_infinite() {
        return overflow.copysign(x);
    }
    // The unit of the last digit; dividing by it is exact.
    let unit = 2_f64.powi(libm::ilogb(x).max(lowest) - (digits as i32 - 1));
    let nearest = (x / unit).round_ties_even() * unit;
    if nearest.abs() > largest { overflow.copysign(x) } else { nearest }
}

/// Returns the integer with as many digits as a float dtype that is nearest to `n`.
fn rounded_integer(n: i128, dtype: DType) -> f64 {
    let length = i128::BITS - n.unsigned_abs().leading_zeros();
    let unit = 1_i128 << length.saturating_sub(format(dtype).digits);
    let (below, rest) = (n.div_euclid(unit), n.rem_euclid(unit));
    let rises = 2 * rest > unit || 2 * rest == unit && below % 2 != 0;
    ((below + i128::from(rises)) * unit) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_match_scalar_casts() {
        let mut numbers: Vec<Scalar> = vec![Scalar::Int(i64::MIN), Scalar::UInt(u64::MAX)];
        for power in 0..64 {
            for near in [-1_i64, 0, 1] {
                let n = (1_i64 << power).wrapping_add(near).wrapping_add(1 << (power / 2));
                numbers.extend([Scalar::Int(n), Scalar::Int(-n), Scalar::UInt(n as u64)]);
            }
        }
        let mut floats = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e300, -1e300];
        for power in -160..140 {
            for digits in [1.0, 1.1, 1.125, 1.25, 1.3125, 1.5, 1.75, 1.999_999_99] {
                let x = digits * 2_f64.powi(power);
                floats.extend([x, -x, x.next_up(), x.next_down()]);
            }
        }
        numbers.extend(floats.iter().map(|&x| Scalar::Float(x)));
        numbers.extend(floats.iter().map(|&x| Scalar::Complex(x, -x)));
        for scalar in numbers {
            for dtype in DType::ALL {
                let ours = Number::of(scalar).cast(dtype).scalar(dtype);
                let same = ours == scalar.cast(dtype) || Number::of(ours).is_nan();
                assert!(same, "{scalar:?} to {dtype}: {ours:?}, {:?}", scalar.cast(dtype));
            }
        }
    }
}
