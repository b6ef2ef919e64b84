//! Complex functions by their textbook formulas.
//!
//! They use the exponential, the logarithm and the square root. `log` has an angle in `[-π, π]`,
//! and the sign of a zero imaginary part selects the side of a branch cut. The values for
//! infinities and NaN follow annex G of the C standard.

use std::f64::consts::{FRAC_PI_2, LN_2};

use crate::number::C;

/// `i z`.
fn times_i(z: C) -> C {
    C::new(-z.im, z.re)
}

/// `-i z`.
fn over_i(z: C) -> C {
    C::new(z.im, -z.re)
}

/// Returns `1 + z`, preserving the sign of a zero imaginary part.
pub(super) fn one_plus(z: C) -> C {
    C::new(1.0 + z.re, z.im)
}

/// Returns `1 - z`, preserving the sign of a zero imaginary part.
fn one_minus(z: C) -> C {
    C::new(1.0 - z.re, -z.im)
}

/// Multiplies real numbers; zero times infinity or NaN is zero.
fn times(x: f64, y: f64) -> f64 {
    if x == 0.0 || y == 0.0 { 0_f64.copysign(x) * 1_f64.copysign(y) } else { x * y }
}

/// Returns whether a part is infinite, for any other part.
fn is_infinite(z: C) -> bool {
    z.re.is_infinite() || z.im.is_infinite()
}

/// `e^a (cos b + i sin b)` for `z = a + ib`.
pub(super) fn exp(z: C) -> C {
    let size = z.re.exp();
    if z.re == f64::NEG_INFINITY && !z.im.is_finite() {
        return C::ZERO;
    }
    if z.re == f64::INFINITY && !z.im.is_finite() {
        return C::new(size, f64::NAN);
    }
    C::new(size * z.im.cos(), if z.im == 0.0 { z.im } else { size * z.im.sin() })
}

/// `log |z| + i arg z`.
pub(super) fn log(z: C) -> C {
    C::new(z.re.hypot(z.im).ln(), z.im.atan2(z.re))
}

/// `sqrt |z| e^(i arg z / 2)`, the root in the right half-plane. In the left half-plane it is `±i sqrt(-z)`,
/// because the cosine of an angle near `π/2` would cancel.
pub(super) fn sqrt(z: C) -> C {
    if z == C::ZERO || z.im.is_infinite() {
        return C::new(z.im.abs(), z.im);
    }
    if z.re < 0.0 {
        let root = sqrt(-z);
        return if z.im.is_sign_negative() { over_i(root) } else { times_i(root) };
    }
    if z.re == f64::INFINITY {
        return C::new(z.re, z.im * 0.0);
    }
    // Quarters, because the magnitude of two large parts may overflow.
    let (size, angle) = (2.0 * (z * 0.25).norm().sqrt(), z.arg() / 2.0);
    C::new(size * angle.cos(), size * angle.sin())
}

/// `z w* / |w|²`, with both scaled by a power of two that brings `w` near 1. Division by zero
/// divides the parts separately, as for real numbers. Infinities are divided as ones, and finite
/// parts next to them as zeros.
pub(super) fn divide(z: C, w: C) -> C {
    if w == C::ZERO {
        return C::new(z.re / w.re, z.im / w.re);
    }
    if is_infinite(w) {
        if is_infinite(z) {
            return C::new(f64::NAN, f64::NAN);
        }
        let unit = |x: f64| f64::from(u8::from(x.is_infinite())).copysign(x);
        return (z * C::new(unit(w.re), -unit(w.im))) * 0.0;
    }
    let size = w.re.abs().max(w.im.abs());
    if size.is_nan() || size == 0.0 {
        return C::new(f64::NAN, f64::NAN);
    }
    // Two factors, because the power itself may overflow.
    let exponent = libm::ilogb(size);
    let scaled = |z: C| C::new(libm::scalbn(z.re, -exponent), libm::scalbn(z.im, -exponent));
    let (z, w) = (scaled(z), scaled(w));
    z * w.conj() / w.norm_sqr()
}

/// The cube root with the smallest angle.
pub(super) fn cbrt(z: C) -> C {
    exp(log(z) / 3.0)
}

/// Returns `e^(w log z)`, and one if `w` is zero. Small integer powers are computed as products, which
/// avoids the rounding error of the angle.
pub(super) fn pow(z: C, w: C) -> C {
    if w == C::ZERO {
        return C::ONE;
    }
    if z == C::ZERO {
        // The magnitude is `0^re(w)`; infinity has no angle.
        return if w.re > 0.0 { C::ZERO } else { C::new(f64::NAN, f64::NAN) };
    }
    if w.im == 0.0 && w.re.fract() == 0.0 && w.re.abs() <= 64.0 {
        let factor = if w.re > 0.0 { z } else { divide(C::ONE, z) };
        return (1..w.re.abs() as usize).fold(factor, |power, _| power * factor);
    }
    exp(w * log(z))
}

/// `1 / (1 + e^-z)`.
pub(super) fn sigmoid(z: C) -> C {
    divide(C::ONE, one_plus(exp(-z)))
}

/// `sinh a cos b + i cosh a sin b`.
pub(super) fn sinh(z: C) -> C {
    if z.re.is_infinite() && !z.im.is_finite() {
        return C::new(z.re, f64::NAN);
    }
    C::new(times(z.re.sinh(), z.im.cos()), times(z.re.cosh(), z.im.sin()))
}

/// `cosh a cos b + i sinh a sin b`.
pub(super) fn cosh(z: C) -> C {
    if z.re.is_infinite() && !z.im.is_finite() {
        return C::new(f64::INFINITY, f64::NAN);
    }
    C::new(times(z.re.cosh(), z.im.cos()), times(z.re.sinh(), z.im.sin()))
}

/// `(1 - e^-2z) / (1 + e^-2z)`, an odd function, evaluated where the exponential is small.
pub(super) fn tanh(z: C) -> C {
    if z.re.is_nan() && z.im == 0.0 {
        return z;
    }
    if z.re == 0.0 && !z.im.is_finite() {
        return C::new(z.re, f64::NAN);
    }
    if z.re.is_sign_negative() {
        return -tanh(-z);
    }
    let power = exp(z * -2.0);
    divide(one_minus(power), one_plus(power))
}

/// `-i sinh iz`.
pub(super) fn sin(z: C) -> C {
    over_i(sinh(times_i(z)))
}

/// `cosh iz`.
pub(super) fn cos(z: C) -> C {
    cosh(times_i(z))
}

/// `-i tanh iz`.
pub(super) fn tan(z: C) -> C {
    over_i(tanh(times_i(z)))
}

/// `log(z + sqrt(1 + z²))`, an odd function, evaluated where the sum does not cancel. The root is
/// computed as the product of the roots of `1 + iz` and `1 - iz`.
pub(super) fn asinh(z: C) -> C {
    if z.re.is_nan() && z.im == 0.0 {
        return z;
    }
    if z.re.is_sign_negative() {
        return -asinh(-z);
    }
    if is_infinite(z) {
        return log(z) + LN_2;
    }
    let root = sqrt(one_plus(times_i(z))) * sqrt(one_minus(times_i(z)));
    log(z + root)
}

/// `log(z + sqrt(z + 1) sqrt(z - 1))`.
pub(super) fn acosh(z: C) -> C {
    if z.re == 0.0 && z.im.is_nan() {
        return C::new(f64::NAN, FRAC_PI_2.copysign(z.im));
    }
    if is_infinite(z) {
        return log(z) + LN_2;
    }
    log(z + sqrt(one_plus(z)) * sqrt(C::new(z.re - 1.0, z.im)))
}

/// `(log(1 + z) - log(1 - z)) / 2`.
pub(super) fn atanh(z: C) -> C {
    if z.im.is_nan() && (z.re == 0.0 || z.re.is_infinite()) {
        return C::new(0_f64.copysign(z.re), z.im);
    }
    if is_infinite(z) {
        return C::new(0_f64.copysign(z.re), FRAC_PI_2.copysign(z.im));
    }
    (log(one_plus(z)) - log(one_minus(z))) * 0.5
}

/// `-i asinh iz`.
pub(super) fn asin(z: C) -> C {
    over_i(asinh(times_i(z)))
}

/// `π/2 - asin z`.
pub(super) fn acos(z: C) -> C {
    let asin = asin(z);
    C::new(FRAC_PI_2 - asin.re, -asin.im)
}

/// `-i atanh iz`.
pub(super) fn atan(z: C) -> C {
    over_i(atanh(times_i(z)))
}

/// `-i log((x + iy) / sqrt(x² + y²))`; for real operands, the angle of the point with these
/// coordinates.
pub(super) fn atan2(y: C, x: C) -> C {
    if y.im == 0.0 && x.im == 0.0 {
        return C::new(y.re.atan2(x.re), 0.0);
    }
    over_i(log(divide(x + times_i(y), sqrt(x * x + y * y))))
}
