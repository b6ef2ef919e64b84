//! Complex functions, all in `f64`; a `c64` result is rounded once at the end.
//!
//! Most come from `num_complex`. This file handles the cases that its formulas get wrong:
//! cancellation near zero, overflow of intermediate values, powers of zero, and the values at
//! infinity and for NaN, which follow annex G of the C standard.

use std::f64::consts::{FRAC_PI_2, LN_2};

use nxla_tensor::Complex;

type C = Complex<f64>;

/// `e^a (cos b + i sin b)`. An infinite factor times a sine that is exactly zero would be NaN.
pub(crate) fn exp(z: C) -> C {
    if z.im == 0.0 {
        C::new(z.re.exp(), z.im)
    } else if is_grown(z.re) {
        let (sine, cosine) = z.im.sin_cos();
        C::new(times_exp(cosine, z.re), times_exp(sine, z.re))
    } else {
        z.exp()
    }
}

/// Returns true if `e^a` may be infinite although a product with it is finite.
fn is_grown(a: f64) -> bool {
    a > 700.0 && a.is_finite()
}

/// `x e^a`.
fn times_exp(x: f64, a: f64) -> f64 {
    let root = (0.5 * a).exp();
    product(product(x, root), root)
}

/// `sinh a cos b + i cosh a sin b`, likewise. Annex G of the C standard defines the results at
/// infinities.
pub(crate) fn sinh(z: C) -> C {
    if z.re.is_infinite() && !z.im.is_finite() {
        return C::new(z.re, f64::NAN);
    }
    let (sine, cosine) = z.im.sin_cos();
    let size = z.re.abs();
    if is_grown(size) {
        let re = times_exp(0.5 * cosine, size) * 1_f64.copysign(z.re);
        return C::new(re, times_exp(0.5 * sine, size));
    }
    C::new(product(z.re.sinh(), cosine), product(z.re.cosh(), sine))
}

/// `cosh a cos b + i sinh a sin b`, likewise.
pub(crate) fn cosh(z: C) -> C {
    if z.re.is_infinite() && !z.im.is_finite() {
        return C::new(f64::INFINITY, f64::NAN);
    }
    let (sine, cosine) = z.im.sin_cos();
    let size = z.re.abs();
    if is_grown(size) {
        let im = times_exp(0.5 * sine, size) * 1_f64.copysign(z.re);
        return C::new(times_exp(0.5 * cosine, size), im);
    }
    C::new(z.re.cosh() * cosine, product(z.re.sinh(), sine))
}

/// `x y`, which is zero if a factor is zero, even if the other factor is infinite or NaN.
fn product(x: f64, y: f64) -> f64 {
    if x == 0.0 || y == 0.0 { 0_f64.copysign(x) * 1_f64.copysign(y) } else { x * y }
}

/// Sine, by `sin z = -i sinh iz`.
pub(crate) fn sin(z: C) -> C {
    let s = sinh(C::new(-z.im, z.re));
    C::new(s.im, -s.re)
}

/// Cosine, by `cos z = cosh iz`.
pub(crate) fn cos(z: C) -> C {
    cosh(C::new(-z.im, z.re))
}

/// `e^z - 1` without cancellation near zero.
pub(crate) fn expm1(z: C) -> C {
    // e^a cos b - 1 = (e^a - 1) cos b + (cos b - 1), and cos b - 1 = -2 sin^2(b/2).
    if z.re.is_infinite() || is_grown(z.re) {
        return exp(z) - 1.0;
    }
    let half = (z.im * 0.5).sin();
    let grown = z.re.exp_m1();
    let re = grown * z.im.cos() - 2.0 * half * half;
    let im = if z.im == 0.0 { z.im } else { z.re.exp() * z.im.sin() };
    C::new(re, im)
}

/// Natural logarithm. A norm near one is rounded, and its logarithm would lose the digits of
/// `|z| - 1`; the norm of huge parts overflows.
pub(crate) fn log(z: C) -> C {
    let (x, y) = (z.re.abs(), z.im.abs());
    let (small, large) = if x < y { (x, y) } else { (y, x) };
    C::new(log_of_norm(z, large - 1.0, small, 0.0), z.im.atan2(z.re))
}

/// `log(1 + z)` without cancellation where `|1 + z|` is near one.
pub(crate) fn log1p(z: C) -> C {
    let sum = C::new(1.0 + z.re, z.im);
    let re = if sum.re.abs() < z.im.abs() {
        log_of_norm(sum, z.im.abs() - 1.0, sum.re, z.re - (sum.re - 1.0))
    } else {
        let excess = if sum.re < 0.0 { -2.0 - z.re } else { z.re };
        log_of_norm(sum, excess, z.im, 0.0)
    };
    C::new(re, z.im.atan2(sum.re))
}

/// `log |z|`, where `|z|^2 = (1 + a)^2 + (b + low)^2`. Near one it follows from `2a + a^2 + b^2`,
/// summed with the rounding errors of its terms, because the terms cancel on the unit circle.
fn log_of_norm(z: C, a: f64, b: f64, low: f64) -> f64 {
    let (a_squared, b_squared) = (a * a, b * b);
    let (sum, first) = sum_with_error(2.0 * a, b_squared);
    let (sum, second) = sum_with_error(sum, a_squared);
    if sum.abs() < 0.5 {
        let rounding = a.mul_add(a, -a_squared) + b.mul_add(b, -b_squared) + 2.0 * b * low;
        return 0.5 * (sum + (first + second + rounding)).ln_1p();
    }
    if is_huge(z) { log_of_double(z) - LN_2 } else { z.norm().ln() }
}

/// The rounded sum and its rounding error (Knuth's two-sum).
fn sum_with_error(x: f64, y: f64) -> (f64, f64) {
    let sum = x + y;
    let added = sum - x;
    (sum, (x - (sum - added)) + (y - added))
}

/// `1 / (1 + e^-z)`.
pub(crate) fn sigmoid(z: C) -> C {
    // The exponential of the side that shrinks cannot overflow.
    if z.re >= 0.0 {
        (1.0 + exp(-z)).inv()
    } else {
        let e = exp(z);
        e / (1.0 + e)
    }
}

/// The hyperbolic tangent. The usual formula divides infinities for large real parts, and overflows
/// for large imaginary parts.
pub(crate) fn tanh(z: C) -> C {
    if z.re.is_nan() && z.im == 0.0 {
        return z;
    }
    // Annex G.6.2.6 in C17: the real part is `sinh 0 cosh 0 / |cosh z|^2` for every angle.
    if z.re == 0.0 && !z.im.is_finite() {
        return C::new(z.re, f64::NAN);
    }
    let (sine, cosine) = z.im.sin_cos();
    if z.re.is_infinite() && !z.im.is_finite() {
        return C::new(1.0_f64.copysign(z.re), 0.0);
    }
    if z.re.abs() > 22.0 && z.im.is_finite() {
        // 1 - |tanh| is below half an ulp; the imaginary part is 4 sin b cos b e^(-2|a|).
        let im = 4.0 * sine * cosine * (-2.0 * z.re.abs()).exp();
        return C::new(1.0_f64.copysign(z.re), im);
    }
    let (sinh, cosh) = (z.re.sinh(), z.re.cosh());
    let scale = sinh * sinh + cosine * cosine;
    C::new(sinh * cosh / scale, sine * cosine / scale)
}

/// Tangent, by `tan z = -i tanh iz`.
pub(crate) fn tan(z: C) -> C {
    let t = tanh(C::new(-z.im, z.re));
    C::new(t.im, -t.re)
}

/// The square root with a real part that is not negative.
pub(crate) fn sqrt(z: C) -> C {
    if z.im.is_infinite() {
        return C::new(f64::INFINITY, z.im);
    }
    if z.re.is_nan() {
        return C::new(f64::NAN, f64::NAN);
    }
    if z.re.is_infinite() {
        // Zero, or NaN if the imaginary part is NaN.
        let small = z.im * 0.0;
        return if z.re > 0.0 {
            C::new(z.re, small)
        } else {
            C::new(small.abs(), f64::INFINITY.copysign(z.im))
        };
    }
    if z == C::ZERO {
        return C::new(0.0, z.im);
    }
    if z.l1_norm() < 1e-290 {
        // The quarters of subnormal numbers are not exact.
        return sqrt(z * 2_f64.powi(200)) * 2_f64.powi(-100);
    }
    // Quarters, because the absolute value of two large parts may overflow.
    let quarter = z * 0.25;
    let larger = 2.0 * (0.5 * (quarter.re.hypot(quarter.im) + quarter.re.abs())).sqrt();
    let smaller = z.im.abs() / (2.0 * larger);
    if z.re < 0.0 {
        C::new(smaller, larger.copysign(z.im))
    } else {
        C::new(larger, smaller.copysign(z.im))
    }
}

/// `1 / sqrt(z)`.
pub(crate) fn rsqrt(z: C) -> C {
    divide(C::ONE, sqrt(z))
}

/// The cube root with the smallest angle.
pub(crate) fn cbrt(z: C) -> C {
    let (size, angle) = z.to_polar();
    if size.is_infinite() && angle.is_nan() {
        return C::new(size, angle);
    }
    let (sine, cosine) = (angle / 3.0).sin_cos();
    C::new(size.cbrt() * cosine, product(size.cbrt(), sine))
}

/// `z / |z|`, and zero for zero. A single infinite part determines the direction.
pub(crate) fn sign(z: C) -> C {
    if z == C::ZERO {
        return C::ZERO;
    }
    if z.re.is_infinite() != z.im.is_infinite() {
        let part = |x: f64| if x.is_infinite() { 1_f64.copysign(x) } else { 0.0 };
        return C::new(part(z.re), part(z.im));
    }
    // The magnitude of two large parts can overflow, and the one of subnormal parts is inexact.
    let is_large = z.re.abs().max(z.im.abs()) > 1.0;
    let scaled = z * if is_large { 0.5 } else { 18_014_398_509_481_984.0 };
    scaled / scaled.norm()
}

/// `z / w` by Smith's method (Communications of the ACM 5, 1962). It scales by the larger part of
/// the divisor, so that its square neither overflows nor underflows.
pub(crate) fn divide(z: C, w: C) -> C {
    if (w.re.is_infinite() || w.im.is_infinite()) && z.is_finite() {
        let unit = |x: f64| f64::from(u8::from(x.is_infinite())).copysign(x);
        return z * C::new(unit(w.re), -unit(w.im)) * 0.0;
    }
    if w.re.abs() >= w.im.abs() {
        if w.re == 0.0 {
            // Division by zero, part by part, as for real numbers.
            return C::new(z.re / w.re, z.im / w.re);
        }
        let ratio = w.im / w.re;
        let scale = w.re + w.im * ratio;
        C::new((z.re + z.im * ratio) / scale, (z.im - z.re * ratio) / scale)
    } else {
        let ratio = w.re / w.im;
        let scale = w.re * ratio + w.im;
        C::new((z.re * ratio + z.im) / scale, (z.im * ratio - z.re) / scale)
    }
}

/// `z ^ w` with the principal value of the logarithm.
pub(crate) fn pow(z: C, w: C) -> C {
    if w == C::ZERO {
        return C::ONE;
    }
    if z == C::ZERO {
        return if w.re > 0.0 { C::ZERO } else { C::new(f64::NAN, f64::NAN) };
    }
    // Small whole exponents, the common case, are exact by multiplication.
    if w.im == 0.0 && w.re.trunc() == w.re && w.re.abs() <= 64.0 {
        let factor = if w.re > 0.0 { z } else { divide(C::ONE, z) };
        #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
        return factor.powi(w.re.abs() as i32);
    }
    let power = z.powc(w);
    // The factors may be infinite and zero although the sum of their logarithms is finite.
    if power.is_nan() { exp(w * log(z)) } else { power }
}

/// The inverse sine. The inverse functions use Kahan's formulas ("Branch cuts for complex
/// elementary functions", 1987): the sign of a zero imaginary part determines the side of a branch
/// cut.
pub(crate) fn asin(z: C) -> C {
    if z.re == 0.0 && z.im.is_nan() {
        return z;
    }
    if is_huge(z) {
        return C::new(z.re.atan2(z.im.abs()), log_of_double(z).copysign(z.im));
    }
    let (below, above) = one_minus_plus(z);
    C::new(z.re.atan2((below * above).re), (below.conj() * above).im.asinh())
}

/// Inverse cosine.
pub(crate) fn acos(z: C) -> C {
    if z.re == 0.0 && z.im.is_nan() {
        return C::new(FRAC_PI_2, z.im);
    }
    if is_huge(z) {
        return C::new(z.im.abs().atan2(z.re), -log_of_double(z).copysign(z.im));
    }
    let (below, above) = one_minus_plus(z);
    C::new(2.0 * below.re.atan2(above.re), (above.conj() * below).im.asinh())
}

/// Returns true if 1 is negligible compared with a number whose square may overflow.
fn is_huge(z: C) -> bool {
    z.re.abs().max(z.im.abs()) > 1e100
}

/// `log(2|z|)` for a huge `z`, the asymptote of `asin`, `acos` and `acosh`.
fn log_of_double(z: C) -> f64 {
    (z.re / 4.0).hypot(z.im / 4.0).ln() + 8_f64.ln()
}

/// The square roots of `1 - z` and `1 + z`.
fn one_minus_plus(z: C) -> (C, C) {
    // Subtracting from a complex 1 would lose the sign of a zero imaginary part.
    (sqrt(C::new(1.0 - z.re, -z.im)), sqrt(C::new(1.0 + z.re, z.im)))
}

/// Inverse hyperbolic sine, by `asinh z = -i asin iz`.
pub(crate) fn asinh(z: C) -> C {
    let w = asin(C::new(-z.im, z.re));
    C::new(w.im, -w.re)
}

/// Inverse hyperbolic cosine.
pub(crate) fn acosh(z: C) -> C {
    // On the imaginary axis, the angle is `pi/2` for every magnitude.
    if z.re == 0.0 && z.im.is_nan() {
        return C::new(f64::NAN, FRAC_PI_2.copysign(z.im));
    }
    if is_huge(z) {
        return C::new(log_of_double(z), z.im.atan2(z.re));
    }
    let (below, above) = (sqrt(C::new(z.re - 1.0, z.im)), sqrt(C::new(z.re + 1.0, z.im)));
    C::new((below.conj() * above).re.asinh(), 2.0 * below.im.atan2(above.re))
}

/// Inverse hyperbolic tangent.
pub(crate) fn atanh(z: C) -> C {
    if z.im.is_nan() && (z.re == 0.0 || z.re.is_infinite()) {
        return C::new(0_f64.copysign(z.re), z.im);
    }
    if z.re.is_sign_negative() {
        // The logarithm below would cancel.
        return -atanh(-z);
    }
    if z.im.is_nan() || z.re.is_nan() && z.im.is_finite() {
        return C::new(f64::NAN, f64::NAN);
    }
    if is_huge(z) {
        // The real part of 1/z, also where both parts are infinite.
        let re = (1.0 / (z.re + z.im * (z.im / z.re))).max(0.0);
        return C::new(re, FRAC_PI_2.copysign(z.im));
    }
    let gap = 1.0 - z.re;
    let re = if gap.abs().max(z.im.abs()) < 1e-100 {
        // The squares could underflow, and 1 is negligible.
        0.5 * (2.0 / gap.hypot(z.im)).ln()
    } else {
        0.25 * (4.0 * z.re / (gap * gap + z.im * z.im)).ln_1p()
    };
    C::new(re, 0.5 * (2.0 * z.im).atan2(gap * (1.0 + z.re) - z.im * z.im))
}

/// Inverse tangent, by `atan z = -i atanh iz`.
pub(crate) fn atan(z: C) -> C {
    let w = atanh(C::new(-z.im, z.re));
    C::new(w.im, -w.re)
}

/// `-i log((x + iy) / sqrt(x^2 + y^2))`, the angle of the point `(y, x)` if both are real.
pub(crate) fn atan2(y: C, x: C) -> C {
    if y.im == 0.0 && x.im == 0.0 {
        return C::new(y.re.atan2(x.re), 0.0);
    }
    let log = log(divide(x + C::I * y, sqrt(x * x + y * y)));
    C::new(log.im, -log.re)
}
