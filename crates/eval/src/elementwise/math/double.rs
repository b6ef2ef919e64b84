//! Functions of `f64`.
//!
//! `exp`, `log`, `log1p`, `tanh` and, for angles that are not huge, `sin` and `cos` have no branches
//! and no tables, so that the loops around them become vector code; they are off by less than one
//! unit in the last place, `log1p` and `tanh` by less than two. The others are those of the
//! platform's library.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, LOG2_E};

/// `1.5 * 2^52`: adding it rounds to an integer, which is then in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// `e^r - 1 - r` over `r^2` by its Taylor series, for `|r| <= ln(2) / 2`.
#[inline(always)]
fn exp_series(r: f64) -> f64 {
    const FACTORIALS: [f64; 12] = [
        6_227_020_800.0,
        479_001_600.0,
        39_916_800.0,
        3_628_800.0,
        362_880.0,
        40320.0,
        5040.0,
        720.0,
        120.0,
        24.0,
        6.0,
        2.0,
    ];
    FACTORIALS.iter().fold(0.0, |sum, factorial| sum * r + 1.0 / factorial)
}

/// The first 33 bits of `ln(2)`, so that small multiples are exact, and the rest.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// `k` and `r` with `x = k ln(2) + r` and `|r| <= ln(2) / 2`.
#[inline(always)]
fn multiples_of_ln_2(x: f64) -> (f64, f64) {
    let k = (x * LOG2_E + ROUND) - ROUND;
    (k, (x - k * LN_2_HIGH) - k * LN_2_LOW)
}

/// `2^k` for a normal number.
#[inline(always)]
fn power_of_2(k: f64) -> f64 {
    f64::from_bits((k + ROUND).to_bits().wrapping_add(1023) << 52)
}

#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    // Beyond these, the result is infinity or zero. A NaN passes both comparisons.
    let x = if x > 720.0 { 720.0 } else { x };
    let x = if x < -750.0 { -750.0 } else { x };
    let (k, r) = multiples_of_ln_2(x);
    let scaled = 1.0 + (r + r * r * exp_series(r));
    // In two steps, since `2^k` alone may be infinite, or zero, where the result is not.
    let half = (0.5 * k + ROUND) - ROUND;
    scaled * power_of_2(half) * power_of_2(k - half)
}

#[inline(always)]
pub(super) fn expm1(x: f64) -> f64 {
    x.exp_m1()
}

/// `k` and `m` with `x = 2^k m` and `m` between `sqrt(1/2)` and `sqrt(2)`, for positive finite `x`.
#[inline(always)]
fn parts(x: f64) -> (f64, f64) {
    /// `2^54`, by which subnormal numbers become normal.
    const LARGE: f64 = 18_014_398_509_481_984.0;
    let is_subnormal = x < f64::MIN_POSITIVE;
    let bits = (if is_subnormal { x * LARGE } else { x }).to_bits();
    let above = bits.wrapping_sub(FRAC_1_SQRT_2.to_bits());
    let exponent = (above.cast_signed() >> 52).cast_unsigned();
    let k = f64::from_bits(ROUND.to_bits().wrapping_add(exponent)) - ROUND;
    let m = f64::from_bits(bits.wrapping_sub(exponent << 52));
    (if is_subnormal { k - 54.0 } else { k }, m)
}

/// `ln(2^k m)` by `ln(1 + f) = 2 artanh(s)` with `f = m - 1` and `s = f / (2 + f)`. Of the series of
/// `artanh` the first term is `f - s f^2 / 2` rather than `2 s`, whose rounding error would be that of
/// the whole.
#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    const ODD: [f64; 10] = [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0];
    let (k, m) = parts(x);
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let square = s * s;
    let rest = ODD.iter().fold(0.0, |sum, odd| sum * square + 2.0 / odd) * square;
    let half = 0.5 * f * f;
    let y = k * LN_2_HIGH - ((half - (s * (half + rest) + k * LN_2_LOW)) - f);
    let y = if x == f64::INFINITY { x } else { y };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f64::NAN }
}

#[inline(always)]
pub(super) fn pow(x: f64, exponent: f64) -> f64 {
    x.powf(exponent)
}

#[inline(always)]
pub(super) fn erf(x: f64) -> f64 {
    libm::erf(x)
}

#[inline(always)]
pub(super) fn erf_inv(x: f64) -> f64 {
    super::erf::erf_inv(x)
}

/// `ln(u) x / (u - 1)` with `u = 1 + x` as it is rounded, which makes up for the rounding (Kahan).
#[inline(always)]
pub(super) fn log1p(x: f64) -> f64 {
    let u = 1.0 + x;
    let y = log(u) * (x / (u - 1.0));
    let y = if u == 1.0 { x } else { y };
    if x == f64::INFINITY { x } else { y }
}

#[inline(always)]
pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

/// By `t = e^(2 |x|) - 1`, of which `t / (t + 2)` is as exact as `t` where it is small.
#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    let doubled = 2.0 * x.abs();
    // From here on, the result is one. A NaN passes the comparison.
    let doubled = if doubled > 44.0 { 44.0 } else { doubled };
    let (k, r) = multiples_of_ln_2(doubled);
    let power = power_of_2(k);
    let t = power * (r + r * r * exp_series(r)) + (power - 1.0);
    let (small, large) = (t / (t + 2.0), 1.0 - 2.0 / (t + 2.0));
    (if t < 1.0 { small } else { large }).copysign(x)
}

#[inline(always)]
pub(super) fn sin(x: f64) -> f64 {
    if is_near(x) { sin_near(x) } else { x.sin() }
}

#[inline(always)]
pub(super) fn cos(x: f64) -> f64 {
    if is_near(x) { cos_near(x) } else { x.cos() }
}

/// Angles up to which [`sin_near`] and [`cos_near`] are right: multiples of `pi/2` have 20 bits.
const NEAR: f64 = 1e6;

/// Whether [`sin_near`] and [`cos_near`] are right for an angle.
#[inline(always)]
pub(super) fn is_near(x: f64) -> bool {
    x.abs() <= NEAR
}

/// Sine and cosine of `x - k pi/2` with `|x - k pi/2| <= pi/4`, and `k` in the low bits.
///
/// The difference is computed in twice the precision, as the sum of `r` and `rest`, and the series
/// are those of `__kernel_sin` and `__kernel_cos` in Sun's fdlibm.
#[inline(always)]
fn reduced(x: f64) -> (f64, f64, u64) {
    /// `pi/2` in two parts of 33 bits, small multiples of which are exact, and the rest.
    const FIRST: f64 = 1.570_796_326_734_125_6;
    const SECOND: f64 = 6.077_100_506_303_966e-11;
    const THIRD: f64 = 2.022_266_248_795_950_6e-21;
    let shifted = x * FRAC_2_PI + ROUND;
    let k = shifted - ROUND;
    let first = x - k * FIRST;
    let second = first - k * SECOND;
    let lost = k * THIRD - ((first - second) - k * SECOND);
    let r = second - lost;
    let rest = (second - r) - lost;

    let z = r * r;
    let cube = z * r;
    let sine = polynomial(
        z,
        [
            1.589_690_995_211_55e-10,
            -2.505_076_025_340_686_3e-8,
            2.755_731_370_707_006_8e-6,
            -1.984_126_982_985_795e-4,
            8.333_333_333_322_49e-3,
        ],
    );
    let sine = r - ((z * (0.5 * rest - cube * sine) - rest) + cube * 0.166_666_666_666_666_32);
    let cosine = polynomial(
        z,
        [
            -1.135_964_755_778_819_5e-11,
            2.087_572_321_298_175e-9,
            -2.755_731_435_139_066_3e-7,
            2.480_158_728_947_673e-5,
            -1.388_888_888_887_411e-3,
            4.166_666_666_666_66e-2,
        ],
    );
    let half = 0.5 * z;
    let near_one = 1.0 - half;
    let cosine = near_one + (((1.0 - near_one) - half) + (z * z * cosine - r * rest));
    (sine, cosine, shifted.to_bits())
}

/// The value of a polynomial by Horner's rule, coefficients from the highest degree down.
#[inline(always)]
pub(super) fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Changes the sign if the second bit of the quadrant is set.
#[inline(always)]
fn signed(x: f64, quadrant: u64) -> f64 {
    f64::from_bits(x.to_bits() ^ (quadrant & 2) << 62)
}

/// The sine of an angle of at most [`NEAR`].
#[inline(always)]
pub(super) fn sin_near(x: f64) -> f64 {
    let (sine, cosine, quadrant) = reduced(x);
    signed(if quadrant & 1 == 0 { sine } else { cosine }, quadrant)
}

/// The cosine of an angle of at most [`NEAR`].
#[inline(always)]
pub(super) fn cos_near(x: f64) -> f64 {
    let (sine, cosine, quadrant) = reduced(x);
    signed(if quadrant & 1 == 0 { cosine } else { sine }, quadrant.wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Floats of all exponents and signs, the special ones, and many of moderate size.
    fn floats() -> impl Iterator<Item = f64> {
        let special = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        // Where results leave the normal numbers, and multiples of `pi/2`.
        let edges = [709.78, 709.79, -708.39, -708.4, -745.13, -745.14, 19.0, 19.1, 22.0];
        let angles = (0..2000).map(|k| f64::from(k) * std::f64::consts::FRAC_PI_2);
        let all = (0..200_000_u64).map(|n| f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let moderate = (-200_000..200_000).map(|n| f64::from(n) * 0.003_712_345);
        let small = (-20_000..20_000).map(|n| f64::from(n) * 1.234_567e-4);
        special.into_iter().chain(edges).chain(angles).chain(all).chain(moderate).chain(small)
    }

    /// The distance to the result of the platform's library, which may be off as well.
    fn check(name: &str, ours: fn(f64) -> f64, platform: fn(f64) -> f64, limit: f64, units: u64) {
        for x in floats().filter(|x| x.is_nan() || x.abs() <= limit) {
            let (found, expected) = (ours(x), platform(x));
            let same = found == expected || found.is_nan() && expected.is_nan();
            let near = found.to_bits().abs_diff(expected.to_bits()) <= units;
            assert!(same || near, "{name}({x:e}) = {found:e}, expected {expected:e}");
            let zero = expected == 0.0 && found == 0.0;
            assert!(
                !zero || found.is_sign_negative() == expected.is_sign_negative(),
                "{name}({x})"
            );
        }
    }

    #[test]
    fn functions_are_right_to_the_last_bits() {
        check("exp", exp, f64::exp, f64::INFINITY, 1);
        check("log", log, f64::ln, f64::INFINITY, 1);
        check("log1p", log1p, f64::ln_1p, f64::INFINITY, 2);
        check("tanh", tanh, f64::tanh, f64::INFINITY, 3);
        check("sin", sin_near, f64::sin, NEAR, 1);
        check("cos", cos_near, f64::cos, NEAR, 1);
        check("sin", sin, f64::sin, f64::INFINITY, 1);
        check("cos", cos, f64::cos, f64::INFINITY, 1);
    }
}
