//! Complex functions, each by the formula that a table of functions gives for it.
//!
//! They are written with the exponential, the logarithm and the square root. `log` takes the angle
//! in `[-π, π]`, and a zero imaginary part tells by its sign which side of a cut is meant.

use crate::number::C;

/// `i z`.
fn times_i(z: C) -> C {
    C::new(-z.im, z.re)
}

/// `-i z`.
fn over_i(z: C) -> C {
    C::new(z.im, -z.re)
}

/// `1 + z`, in which the sign of a zero imaginary part stays.
pub(super) fn one_plus(z: C) -> C {
    C::new(1.0 + z.re, z.im)
}

/// `1 - z`, likewise.
fn one_minus(z: C) -> C {
    C::new(1.0 - z.re, -z.im)
}

/// A real factor times a real number, where zero times anything is zero.
fn scaled(factor: f64, x: f64) -> f64 {
    if x == 0.0 || factor == 0.0 { 0_f64.copysign(factor) * 1_f64.copysign(x) } else { factor * x }
}

/// `e^a (cos b + i sin b)` for `z = a + ib`.
pub(super) fn exp(z: C) -> C {
    let size = z.re.exp();
    C::new(scaled(size, z.im.cos()), scaled(size, z.im.sin()))
}

/// `log |z| + i arg z`.
pub(super) fn log(z: C) -> C {
    C::new(z.re.hypot(z.im).ln(), z.im.atan2(z.re))
}

/// The root in the right half-plane: with `r = |z|`, its parts are `sqrt((r ± a) / 2)` for
/// `z = a + ib`, the second with the sign of `b`. The smaller one is found from `2 x y = b`.
pub(super) fn sqrt(z: C) -> C {
    if z == C::ZERO {
        return C::new(0.0, z.im);
    }
    // Quarters, because the size of two large parts may be too large.
    let quarter = z * 0.25;
    let larger = (2.0 * (quarter.re.hypot(quarter.im) + quarter.re.abs())).sqrt();
    let smaller = z.im.abs() / (2.0 * larger);
    match z.re < 0.0 {
        true => C::new(smaller, larger.copysign(z.im)),
        false => C::new(larger, smaller.copysign(z.im)),
    }
}

/// `z w* / |w|²`, with both scaled by a power of two that brings `w` near 1. Division by zero is
/// part by part, as for real numbers.
pub(super) fn divide(z: C, w: C) -> C {
    if w == C::ZERO {
        return C::new(z.re / w.re, z.im / w.re);
    }
    let size = w.re.abs().max(w.im.abs());
    if !size.is_finite() {
        return z * w.conj() / w.norm_sqr();
    }
    // In two steps, for the power itself may be too large.
    let exponent = libm::ilogb(size);
    let scaled = |x: f64| libm::scalbn(x, -exponent);
    let (z, w) = (C::new(scaled(z.re), scaled(z.im)), C::new(scaled(w.re), scaled(w.im)));
    z * w.conj() / w.norm_sqr()
}

/// `e^(w log z)`; anything to the power of zero is one.
pub(super) fn pow(z: C, w: C) -> C {
    if w == C::ZERO {
        return C::ONE;
    }
    if z == C::ZERO {
        // The size is 0^re(w); no angle belongs to infinity.
        return if w.re > 0.0 { C::ZERO } else { C::new(f64::NAN, f64::NAN) };
    }
    exp(w * log(z))
}

/// `1 / (1 + e^-z)`.
pub(super) fn sigmoid(z: C) -> C {
    divide(C::ONE, one_plus(exp(-z)))
}

/// `sinh a cos b + i cosh a sin b`.
pub(super) fn sinh(z: C) -> C {
    C::new(scaled(z.re.sinh(), z.im.cos()), scaled(z.re.cosh(), z.im.sin()))
}

/// `cosh a cos b + i sinh a sin b`.
pub(super) fn cosh(z: C) -> C {
    C::new(scaled(z.re.cosh(), z.im.cos()), scaled(z.re.sinh(), z.im.sin()))
}

/// `sinh z / cosh z`.
pub(super) fn tanh(z: C) -> C {
    divide(sinh(z), cosh(z))
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

/// `log(z + sqrt(1 + z²))`, an odd function, taken where the sum does not cancel. The root is that
/// of `(1 + iz) (1 - iz)`, factor by factor.
pub(super) fn asinh(z: C) -> C {
    if z.re.is_sign_negative() {
        return -asinh(-z);
    }
    let root = sqrt(one_plus(times_i(z))) * sqrt(one_minus(times_i(z)));
    log(z + root)
}

/// `log(z + sqrt(z + 1) sqrt(z - 1))`.
pub(super) fn acosh(z: C) -> C {
    log(z + sqrt(one_plus(z)) * sqrt(C::new(z.re - 1.0, z.im)))
}

/// `(log(1 + z) - log(1 - z)) / 2`.
pub(super) fn atanh(z: C) -> C {
    (log(one_plus(z)) - log(one_minus(z))) * 0.5
}

/// `-i asinh iz`.
pub(super) fn asin(z: C) -> C {
    over_i(asinh(times_i(z)))
}

/// `π/2 - asin z`.
pub(super) fn acos(z: C) -> C {
    let asin = asin(z);
    C::new(std::f64::consts::FRAC_PI_2 - asin.re, -asin.im)
}

/// `-i atanh iz`.
pub(super) fn atan(z: C) -> C {
    over_i(atanh(times_i(z)))
}

/// `-i log((x + iy) / sqrt(x² + y²))`, the angle of the point `(y, x)` if both are real.
pub(super) fn atan2(y: C, x: C) -> C {
    if y.im == 0.0 && x.im == 0.0 {
        return C::new(y.re.atan2(x.re), 0.0);
    }
    over_i(log(divide(x + times_i(y), sqrt(x * x + y * y))))
}
