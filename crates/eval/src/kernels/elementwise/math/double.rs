//! Functions of `f64`.
//!
//! They have no branches and no tables (`sin`, `cos` and `tan` only for angles that are not huge),
//! so that the loops around them compile to vector code. Their error is below one unit in the last
//! place, and below two for `log1p`, `tanh`, `tan` and `expm1`. Other files state the errors of
//! their functions.
//!
//! Coefficients without a source interpolate the function at the zeros of the Chebyshev polynomial of the interval,
//! which is close to the best approximation.

use std::f64::consts::{FRAC_1_SQRT_2, LOG2_E};

pub(super) use super::arcs::{acos, asin, atan, atan2};
pub(super) use super::circular::double::{
    cos, cos_near, is_near, round, sin, sin_near, tan, tan_near,
};
pub(super) use super::erf::{erf, erf_inv, erfc};
pub(super) use super::hyperbolic::{acosh, asinh, atanh, cosh, expm1, sinh};
use super::polynomial_in_pairs;
use crate::kernels::elementwise::ROUND_F64;

/// `e^r - 1` for `|r| <= ln(2) / 2`, by a polynomial of degree 11.
#[inline(always)]
pub(super) fn expm1_near(r: f64) -> f64 {
    let series = polynomial_in_pairs(
        r,
        [
            2.510_037_583_256_123_4e-8,
            2.762_007_587_998_336_7e-7,
            2.755_726_848_031_002_4e-6,
            2.480_152_132_236_87e-5,
            1.984_126_986_304_054_5e-4,
            1.388_888_891_719_671_9e-3,
            8.333_333_333_330_065e-3,
            4.166_666_666_662_416_4e-2,
            1.666_666_666_666_666_9e-1,
            5.000_000_000_000_001e-1,
        ],
    );
    (r * r).mul_add(series, r)
}

/// The first 33 bits of `ln(2)`, so that small multiples are exact, and the rest.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// `k` and `r` with `x = k ln(2) + r` and `|r| <= ln(2) / 2`.
#[inline(always)]
pub(super) fn multiples_of_ln_2(x: f64) -> (f64, f64) {
    let k = x.mul_add(LOG2_E, ROUND_F64) - ROUND_F64;
    (k, (-k).mul_add(LN_2_LOW, (-k).mul_add(LN_2_HIGH, x)))
}

/// `2^k` for a normal number.
#[inline(always)]
pub(super) fn power_of_2(k: f64) -> f64 {
    f64::from_bits((k + ROUND_F64).to_bits().wrapping_add(1023) << 52)
}

#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    exp_of_two(x, 0.0)
}

/// `e^(x + rest)`, where `rest` is small compared with one.
#[inline(always)]
pub(super) fn exp_of_two(x: f64, rest: f64) -> f64 {
    // Outside of this range, the result is infinity or zero. NaN passes both comparisons.
    let x = if x > 720.0 { 720.0 } else { x };
    let x = if x < -750.0 { -750.0 } else { x };
    let (k, r) = multiples_of_ln_2(x);
    let scaled = 1.0 + expm1_near(r + rest);
    // Two factors, because `2^k` may be infinite or zero although the result is not.
    let half = 0.5_f64.mul_add(k, ROUND_F64) - ROUND_F64;
    scaled * power_of_2(half) * power_of_2(k - half)
}

/// `k` and `m` with `x = 2^k m` and `m` between `sqrt(1/2)` and `sqrt(2)`, for positive finite `x`.
#[inline(always)]
fn parts(x: f64) -> (f64, f64) {
    /// `2^54`, by which subnormal numbers become normal.
    const LARGE: f64 = 18_014_398_509_481_984.0;
    let is_subnormal = x < f64::MIN_POSITIVE;
    let (k, m) = parts_of_normal(if is_subnormal { x * LARGE } else { x });
    (if is_subnormal { k - 54.0 } else { k }, m)
}

/// The same as [`parts`] for a normal number.
#[inline(always)]
fn parts_of_normal(x: f64) -> (f64, f64) {
    let bits = x.to_bits();
    let above = bits.wrapping_sub(FRAC_1_SQRT_2.to_bits());
    let exponent = (above.cast_signed() >> 52).cast_unsigned();
    let k = f64::from_bits(ROUND_F64.to_bits().wrapping_add(exponent)) - ROUND_F64;
    (k, f64::from_bits(bits.wrapping_sub(exponent << 52)))
}

/// Computes `ln(2^k m)` from `ln(1 + f) = 2 artanh(s)` with `f = m - 1` and `s = f / (2 + f)`.
///
/// The first term of the `artanh` series is written as `f - s f^2 / 2` rather than `2 s`, because the
/// rounding error of `2 s` would become the rounding error of the result.
#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    let (k, m) = parts(x);
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let square = s * s;
    let series = polynomial_in_pairs(
        square,
        [
            7.308_292_712_444_311e-2,
            7.665_855_309_105_387e-2,
            9.091_444_727_837_474e-2,
            1.111_110_556_512_993_9e-1,
            1.428_571_431_300_163_5e-1,
            1.999_999_999_994_972_2e-1,
            3.333_333_333_333_335e-1,
        ],
    );
    let rest = 2.0 * series * square;
    let half = 0.5 * f * f;
    let y = k * LN_2_HIGH - ((half - (s * (half + rest) + k * LN_2_LOW)) - f);
    let y = if x == f64::INFINITY { x } else { y };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f64::NAN }
}

/// The rounded sum and its rounding error, for `|x| >= |y|`.
#[inline(always)]
fn sum_in_two(x: f64, y: f64) -> (f64, f64) {
    let sum = x + y;
    (sum, y - (sum - x))
}

/// The rounded product and its rounding error.
#[inline(always)]
pub(super) fn product_in_two(x: f64, y: f64) -> (f64, f64) {
    let product = x * y;
    (product, x.mul_add(y, -product))
}

/// `ln(2^k m)` as the sum of two numbers, with a relative error of about 2^-65. As in [`log`], `2
/// artanh(s) = 2 s (1 + s^2 (1/3 + s^2/5 + …))`. The terms from `s^2/5` on are so small that a
/// single number represents their sum.
#[inline(always)]
fn log_in_two((k, m): (f64, f64)) -> (f64, f64) {
    /// `1/3` minus its `f64`.
    const THIRD_LOW: f64 = 1.850_371_707_708_594e-17;
    const THIRD: f64 = 1.0 / 3.0;
    let f = m - 1.0;
    let (below, below_low) = sum_in_two(1.0, m);
    let inverse = 1.0 / below;
    let s = f * inverse;
    let s_low = ((-s).mul_add(below, f) - s * below_low) * inverse;
    let (square, lost) = product_in_two(s, s);
    let square_low = lost + 2.0 * s * s_low;
    let series = polynomial_in_pairs(
        square,
        [
            6.456_808_836_091_125e-2,
            6.642_978_717_596_676e-2,
            7.692_787_398_231_016e-2,
            9.090_904_123_772_271e-2,
            1.111_111_113_555_117e-1,
            1.428_571_428_566_925_4e-1,
            2.000_000_000_000_001_2e-1,
        ],
    );
    let (third, lost) = sum_in_two(THIRD, square * series);
    let third_low = lost + THIRD_LOW;
    let (term, lost) = product_in_two(square, third);
    let term_low = lost + square * third_low + square_low * third;
    let (rest, lost) = product_in_two(s, term);
    let rest_low = lost + s * term_low + s_low * term;
    let (half, lost) = sum_in_two(s, rest);
    let half_low = lost + s_low + rest_low;
    let (sum, lost) = sum_in_two(k * LN_2_HIGH, 2.0 * half);
    (sum, lost + 2.0 * half_low + k * LN_2_LOW)
}

/// `|x|^y = e^(y ln |x|)`, where the product is the sum of two numbers.
#[inline(always)]
pub(super) fn pow(x: f64, y: f64) -> f64 {
    let base = x.abs();
    let (log, log_low) = log_in_two(parts(base));
    let log = if base == 0.0 { f64::NEG_INFINITY } else { log };
    let log = if base < f64::INFINITY { log } else { base };
    super::signed_power!(f64, x, y, exp_of_product(y, log, log_low))
}

/// The same as [`pow`] for a normal, positive `x`; `x` and `y` are finite.
#[inline(always)]
pub(super) fn pow_plain(x: f64, y: f64) -> f64 {
    let (log, log_low) = log_in_two(parts_of_normal(x));
    exp_of_product(y, log, log_low)
}

/// `e^(y (log + log_low))`.
#[inline(always)]
fn exp_of_product(y: f64, log: f64, log_low: f64) -> f64 {
    let (product, lost) = product_in_two(y, log);
    // For larger products, the result is infinity or zero, and the low part may be inaccurate.
    let low = if product.abs() < 1000.0 { lost + y * log_low } else { 0.0 };
    exp_of_two(product, low)
}

/// `ln(u) x / (u - 1)` with the rounded sum `u = 1 + x`; the factor compensates for the rounding
/// (Kahan).
#[inline(always)]
pub(super) fn log1p(x: f64) -> f64 {
    let u = 1.0 + x;
    let y = log(u) * (x / (u - 1.0));
    let y = if u == 1.0 { x } else { y };
    if x == f64::INFINITY { x } else { y }
}

/// The sigmoid function. It uses the decreasing exponential, which cannot overflow.
#[inline(always)]
pub(super) fn sigmoid(x: f64) -> f64 {
    let shrinking = exp(-x.abs());
    (if x < 0.0 { shrinking } else { 1.0 }) / (1.0 + shrinking)
}

/// `t / (t + 2)` with `t = e^(2 |x|) - 1`, which is as accurate as `t` for small `x`.
#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    let doubled = 2.0 * x.abs();
    // From this value on, the result rounds to one. NaN passes the comparison.
    let doubled = if doubled > 44.0 { 44.0 } else { doubled };
    let (k, r) = multiples_of_ln_2(doubled);
    let power = power_of_2(k);
    let t = power * expm1_near(r) + (power - 1.0);
    // A single division serves both formulas.
    let above = if t < 1.0 { t } else { 2.0 };
    let quotient = above / (t + 2.0);
    (if t < 1.0 { quotient } else { 1.0 - quotient }).copysign(x)
}

/// Returns true if [`remainder_plain`] is exact: integers as large as the quotient are exact.
#[inline(always)]
pub(super) fn is_plain_remainder(x: f64, y: f64) -> bool {
    (x.abs() / y.abs() < 4_503_599_627_370_496.0) & (y.abs() < f64::INFINITY)
}

/// The remainder of the quotient that is rounded towards zero, with the sign of `x`. The remainder is exact for the
/// correct quotient and for the next larger one.
#[inline(always)]
pub(super) fn remainder_plain(x: f64, y: f64) -> f64 {
    let (dividend, divisor) = (x.abs(), y.abs());
    let rest = (-(dividend / divisor).trunc()).mul_add(divisor, dividend);
    // A quotient just below an integer may have been rounded up to the integer.
    (if rest < 0.0 { rest + divisor } else { rest }).copysign(x)
}

/// The cube root to 23 bits, for a normal positive `x` and `1 / x`: a third of the exponent, then a
/// correction by a polynomial in `t^3 / x` (`s_cbrt.c` in FreeBSD's library, by B. D. Evans).
#[inline(always)]
fn rough(x: f64, inverse: f64) -> f64 {
    /// `(1023 - 1023/3 - 0.03306235651) 2^20`.
    const BIAS: u64 = 715_094_163;
    let third = ((x.to_bits() >> 32) * 0xaaaa_aaab) >> 33;
    let t = f64::from_bits((third + BIAS) << 32);
    let r = (t * t) * (t * inverse);
    let first = r.mul_add(
        r.mul_add(1.621_429_720_105_354_5, -1.884_979_795_433_771_7),
        1.875_951_824_271_77,
    );
    let last = r.mul_add(0.145_996_192_886_612_45, -0.758_397_934_778_766);
    t * (r * r * r).mul_add(last, first)
}

/// One step of Halley's method, in which `t^3` is the sum of two numbers.
#[inline(always)]
fn refined(t: f64, x: f64) -> f64 {
    let square = t * t;
    let square_low = t.mul_add(t, -square);
    let cube = square * t;
    let cube_low = square.mul_add(t, -cube) + square_low * t;
    let lacks = (x - cube) - cube_low;
    t + t * (lacks / (2.0 * cube + x))
}

/// The cube root, with an error below one unit in the last place.
#[inline(always)]
pub(super) fn cbrt(x: f64) -> f64 {
    /// A power of eight, and its cube root. Small numbers, whose rounding errors are subnormal, are
    /// multiplied by the power; large numbers, for which the cube of the rounded root may overflow,
    /// are divided by it.
    const FACTOR: f64 = 5.846_006_549_323_612e48;
    const ROOT: f64 = 1.801_439_850_948_198_4e16;
    let magnitude = x.abs();
    let (factor, root_of_factor) =
        if magnitude < 1e-280 { (FACTOR, 1.0 / ROOT) } else { (1.0, 1.0) };
    let (factor, root_of_factor) =
        if magnitude > 1e280 { (1.0 / FACTOR, ROOT) } else { (factor, root_of_factor) };
    let scaled = magnitude * factor;
    let root = (refined(rough(scaled, 1.0 / scaled), scaled) * root_of_factor).copysign(x);
    let is_plain = (magnitude > 0.0) & (magnitude < f64::INFINITY);
    if is_plain { root } else { x }
}
