//! Inverse trigonometric functions.
//!
//! The functions have no branches and no tables, so that the compiler can vectorize loops around
//! them. Their error is less than two units in the last place, and less than three for `atan2`. The
//! polynomials interpolate the functions at the Chebyshev nodes of the interval.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::polynomial_in_pairs;

/// `pi/2` minus its `f64`. Twice and half of it are the corresponding differences for `pi` and
/// `pi/4`.
const FRAC_PI_2_LOW: f64 = 6.123_233_995_736_766e-17;

/// `(asin(x) / x - 1) / x^2` as a function of `z = x^2 <= 1/4`.
#[inline(always)]
fn asin_series(z: f64) -> f64 {
    polynomial_in_pairs(
        z,
        [
            0.028_757_851_367_421_566,
            -0.014_851_887_071_247_204,
            0.017_400_879_442_694_02,
            0.005_457_506_718_640_358,
            0.010_322_814_350_185_78,
            0.011_479_177_415_184_906,
            0.013_971_212_973_552_933,
            0.017_352_392_720_869_973,
            0.022_372_172_942_149_89,
            0.030_381_944_138_531_247,
            0.044_642_857_146_355_43,
            0.074_999_999_999_984_33,
            0.166_666_666_666_666_69,
        ],
    )
}

/// Computes `(atan(t) / t - 1) / t^2` from `z = t^2` for `|t| <= tan(pi/8)`.
#[inline(always)]
fn atan_series(z: f64) -> f64 {
    polynomial_in_pairs(
        z,
        [
            -0.019_176_887_119_062_26,
            0.039_231_658_295_587_19,
            -0.050_854_497_379_402_6,
            0.058_581_489_128_022_1,
            -0.066_645_114_473_819_48,
            0.076_921_831_908_260_87,
            -0.090_909_045_781_239_03,
            0.111_111_110_152_563_61,
            -0.142_857_142_846_665_42,
            0.199_999_999_999_955_2,
            -0.333_333_333_333_333_3,
        ],
    )
}

/// Reduces the argument by `asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2))` if `|x| > 1/2`. Returns
/// whether it was reduced, the reduced argument, its rounding error, and its square.
#[inline(always)]
fn halved(x: f64) -> (bool, f64, f64, f64) {
    let magnitude = x.abs();
    let is_large = magnitude > 0.5;
    let z = if is_large { 0.5 - 0.5 * magnitude } else { x * x };
    let root = z.sqrt();
    let lacks = (-root).mul_add(root, z) / (root + root);
    let lacks = if root == 0.0 { 0.0 } else { lacks };
    if is_large { (true, root, lacks, z) } else { (false, magnitude, 0.0, z) }
}

/// The inverse sine; NaN for arguments beyond one.
#[inline(always)]
pub(super) fn asin(x: f64) -> f64 {
    let (is_large, s, lacks, z) = halved(x);
    let rest = s * z * asin_series(z) + lacks;
    let large = (FRAC_PI_2 - 2.0 * s) - (2.0 * rest - FRAC_PI_2_LOW);
    (if is_large { large } else { s + rest }).copysign(x)
}

/// The inverse cosine; NaN for arguments beyond one.
#[inline(always)]
pub(super) fn acos(x: f64) -> f64 {
    let (is_large, s, lacks, z) = halved(x);
    let rest = s * z * asin_series(z) + lacks;
    let is_negative = x < 0.0;
    let above = 2.0 * (s + rest);
    let below = 2.0 * (FRAC_PI_2 - (s + (rest - FRAC_PI_2_LOW)));
    let (s, rest) = if is_negative { (-s, -rest) } else { (s, rest) };
    let small = FRAC_PI_2 - (s - (FRAC_PI_2_LOW - rest));
    if is_large { if is_negative { below } else { above } } else { small }
}

/// The angle of a point with nonnegative coordinates. It is 0, `pi/4` or `pi/2` plus `atan(t)` with
/// `|t| <= tan(pi/8)`, and NaN if a coordinate is NaN.
#[inline(always)]
fn angle_of(y: f64, x: f64) -> f64 {
    /// `tan(pi/8)` and `tan(3 pi/8)`.
    const FIRST: f64 = 0.414_213_562_373_095_03;
    const LAST: f64 = 2.414_213_562_373_095;
    let (is_low, is_high) = (y <= FIRST * x, y >= LAST * x);
    let (above, below) = if is_high { (-x, y) } else { (y - x, y + x) };
    let (above, below) = if is_low { (y, x) } else { (above, below) };
    let (base, base_low) =
        if is_high { (FRAC_PI_2, FRAC_PI_2_LOW) } else { (FRAC_PI_4, 0.5 * FRAC_PI_2_LOW) };
    let (base, base_low) = if is_low { (0.0, 0.0) } else { (base, base_low) };
    let t = above / below;
    let z = t * t;
    base + (t + (t * z * atan_series(z) + base_low))
}

#[inline(always)]
pub(super) fn atan(x: f64) -> f64 {
    angle_of(x.abs(), 1.0).copysign(x)
}

/// `atan(y / x)` in the quadrant of the point `(x, y)`, with the values of IEEE 754 for zeros and
/// infinities.
#[inline(always)]
pub(super) fn atan2(y: f64, x: f64) -> f64 {
    /// 2^-100.
    const SMALL: f64 = 7.888_609_052_210_118e-31;
    // The steps below add the operands, which would overflow for larger numbers.
    let is_huge = (y.abs() > 1e300) | (x.abs() > 1e300);
    let scale = if is_huge { SMALL } else { 1.0 };
    let (y, x) = (y * scale, x * scale);
    let (height, width) = (y.abs(), x.abs());
    // The quotient of two zeros or two infinities is NaN.
    let is_zero = (height == 0.0) & (width == 0.0);
    let is_infinite = (height == f64::INFINITY) & (width == f64::INFINITY);
    let (height, width) = if is_zero { (0.0, 1.0) } else { (height, width) };
    let (height, width) = if is_infinite { (1.0, 1.0) } else { (height, width) };
    let angle = angle_of(height, width);
    let angle = if x.is_sign_negative() { PI - (angle - 2.0 * FRAC_PI_2_LOW) } else { angle };
    angle.copysign(y)
}
