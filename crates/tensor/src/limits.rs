//! Limits of float dtypes.

use crate::dtype::DType;

/// The limits of a float dtype, or of the parts of a complex dtype.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FloatLimits {
    /// The distance from 1 to the next larger number.
    pub epsilon: f64,
    /// The number of stored mantissa bits, without the leading one.
    pub mantissa_bits: u32,
    /// The largest finite number; the smallest is its negative.
    pub max: f64,
    /// The smallest positive number with full precision.
    pub smallest_normal: f64,
}

impl DType {
    /// Returns the limits of a float or complex dtype, or `None` for other dtypes. The limits of
    /// integers are [`DType::min_value`] and [`DType::max_value`].
    ///
    /// ```
    /// use nxla_tensor::DType;
    ///
    /// let limits = DType::F16.float_limits().expect("f16 is a float");
    /// assert_eq!((limits.max, limits.epsilon), (65504.0, 1.0 / 1024.0));
    /// assert_eq!(DType::S32.float_limits(), None);
    /// ```
    #[must_use]
    pub fn float_limits(self) -> Option<FloatLimits> {
        // The mantissa bits, and the exponents of the smallest normal number and of the largest
        // number.
        let (mantissa_bits, smallest, largest): (u32, i32, i32) = match self {
            DType::F8E5M2 => (2, -14, 15),
            DType::F8E4M3FN => (3, -6, 8),
            DType::BF16 => (7, -126, 127),
            DType::F16 => (10, -14, 15),
            DType::F32 | DType::C64 => (23, -126, 127),
            DType::F64 | DType::C128 => (52, -1022, 1023),
            _ => return None,
        };
        let epsilon = 2f64.powi(-mantissa_bits.cast_signed());
        // The largest mantissa of `f8_e4m3fn` encodes NaN.
        let last = if self == DType::F8E4M3FN { 2.0 } else { 1.0 };
        let max = (2.0 - last * epsilon) * 2f64.powi(largest);
        Some(FloatLimits { epsilon, mantissa_bits, max, smallest_normal: 2f64.powi(smallest) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::Scalar;

    #[test]
    fn float_limits_match_rust_types() {
        let f32_limits = DType::F32.float_limits().unwrap();
        assert_eq!(f32_limits.max, f64::from(f32::MAX));
        assert_eq!(f32_limits.epsilon, f64::from(f32::EPSILON));
        assert_eq!(f32_limits.smallest_normal, f64::from(f32::MIN_POSITIVE));
        assert_eq!(DType::C128.float_limits(), DType::F64.float_limits());
        assert_eq!(DType::F64.float_limits().unwrap().max, f64::MAX);
    }

    #[test]
    fn float_limits_are_representable() {
        for dtype in DType::ALL {
            let Some(limits) = dtype.float_limits() else {
                assert!(!dtype.is_float() && !dtype.is_complex(), "{dtype}");
                continue;
            };
            for number in [limits.max, -limits.max, limits.smallest_normal, 1.0 + limits.epsilon] {
                assert_eq!(Scalar::Float(number).cast(dtype).as_f64(), number, "{dtype}");
            }
            // Half of the distance is lost by rounding.
            let between = Scalar::Float(1.0 + limits.epsilon / 2.0).cast(dtype);
            assert_eq!(between.as_f64(), 1.0, "{dtype}");
        }
    }
}
