//! Functions of `f32` that are computed in `f32`.
//!
//! A vector holds twice as many `f32` as `f64` elements, so these functions, which models use most,
//! take little more than half the time. Their error is at most 1.02 units in the last place: the
//! result is the nearest float or its neighbor. Their polynomials are the nearest ones of their
//! degrees with coefficients of `f32`: each coefficient was rounded before the coefficients of
//! higher powers were fitted.

use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

use super::polynomial;
use crate::kernels::elementwise::ROUND_F32;

/// `k` and `r` with `x = k ln(2) + r` and `|r| <= ln(2) / 2`.
#[inline(always)]
fn multiples_of_ln_2(x: f32) -> (f32, f32) {
    /// The first 13 bits of `ln(2)`, so that small multiples are exact, and the rest.
    const HIGH: f32 = 0.693_145_75;
    const LOW: f32 = 1.428_606_8e-6;
    let k = x.mul_add(LOG2_E, ROUND_F32) - ROUND_F32;
    (k, (-k).mul_add(LOW, (-k).mul_add(HIGH, x)))
}

/// `2^k` for a normal number.
#[inline(always)]
fn power_of_2(k: f32) -> f32 {
    f32::from_bits((k + ROUND_F32).to_bits().wrapping_add(127) << 23)
}

/// `e^r - 1` for `|r| <= ln(2) / 2`.
#[inline(always)]
fn expm1_near(r: f32) -> f32 {
    let series = polynomial(r, [1.394_187_6e-3, 8.368_681e-3, 4.166_639e-2, 1.666_652_1e-1, 0.5]);
    (r * r).mul_add(series, r)
}

#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Outside of this range, the result is infinity or zero. NaN passes both comparisons.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -105.0 { -105.0 } else { x };
    let (k, r) = multiples_of_ln_2(x);
    let scaled = 1.0 + expm1_near(r);
    // Two factors, because `2^k` may be infinite or zero although the result is not.
    let half = 0.5_f32.mul_add(k, ROUND_F32) - ROUND_F32;
    scaled * power_of_2(half) * power_of_2(k - half)
}

/// `ln(2^k m)` by a polynomial in `f = m - 1`, whose first two terms are added last (`logf` in
/// S. Moshier's Cephes library).
#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    /// `2^25`, by which subnormal numbers become normal.
    const LARGE: f32 = 33_554_432.0;
    /// The first bits of `ln(2)`, so that small multiples are exact, and the rest.
    const HIGH: f32 = 0.693_359_4;
    const LOW: f32 = -2.121_944_4e-4;
    let is_subnormal = x < f32::MIN_POSITIVE;
    let bits = if is_subnormal { x * LARGE } else { x }.to_bits();
    let above = bits.wrapping_sub(FRAC_1_SQRT_2.to_bits());
    let exponent = (above.cast_signed() >> 23).cast_unsigned();
    let k = f32::from_bits(ROUND_F32.to_bits().wrapping_add(exponent)) - ROUND_F32;
    let k = if is_subnormal { k - 25.0 } else { k };
    let f = f32::from_bits(bits.wrapping_sub(exponent << 23)) - 1.0;
    let square = f * f;
    let series = polynomial(
        f,
        [
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_9e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_8e-1,
            2.000_071_4e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ],
    );
    let rest = (f * square).mul_add(series, k * LOW);
    let rest = (-0.5_f32).mul_add(square, rest);
    let y = k.mul_add(HIGH, f + rest);
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

/// The hyperbolic tangent: a polynomial for small `x`, and `1 - 2 / (e^(2 |x|) + 1)` elsewhere.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let square = magnitude * magnitude;
    let series = polynomial(
        square,
        [
            -5.481_895_6e-4,
            2.797_935e-3,
            -8.459_222e-3,
            2.174_962_1e-2,
            -5.394_835e-2,
            1.333_316_9e-1,
            -3.333_332_8e-1,
        ],
    );
    let small = (square * series).mul_add(magnitude, magnitude);
    // From this value on, the result rounds to one. NaN passes the comparison.
    let doubled = if magnitude > 10.0 { 20.0 } else { 2.0 * magnitude };
    let (k, r) = multiples_of_ln_2(doubled);
    let power = power_of_2(k);
    let large = 1.0 - 2.0 / expm1_near(r).mul_add(power, power + 1.0);
    (if magnitude < 0.8 { small } else { large }).copysign(x)
}

/// `1 / (1 + e^-x)` by the decreasing exponential. The rounding errors of the exponential and of
/// the divisor are added to the quotient.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    let magnitude = x.abs();
    // NaN passes the comparison.
    let (k, r) = multiples_of_ln_2(if magnitude > 105.0 { -105.0 } else { -magnitude });
    let above_one = expm1_near(r);
    let scaled = 1.0 + above_one;
    let half = 0.5_f32.mul_add(k, ROUND_F32) - ROUND_F32;
    let (first, second) = (power_of_2(half), power_of_2(k - half));
    let shrinking = scaled * first * second;
    let shrinking_low = (above_one - (scaled - 1.0)) * first * second;
    let below = 1.0 + shrinking;
    let below_low = (shrinking - (below - 1.0)) + shrinking_low;
    let is_negative = x < 0.0;
    let (above, above_low) = if is_negative { (shrinking, shrinking_low) } else { (1.0, 0.0) };
    let inverse = 1.0 / below;
    let quotient = above * inverse;
    let rest = (-quotient).mul_add(below, above) + (above_low - quotient * below_low);
    rest.mul_add(inverse, quotient)
}

/// The error function: a polynomial for small `x`, and `1 - e^p` with a polynomial `p` elsewhere.
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let magnitude = x.abs();
    let series = polynomial(
        magnitude * magnitude,
        [
            7.598_054e-5,
            -7.939_339e-4,
            5.181_16e-3,
            -2.685_061_7e-2,
            1.128_352_66e-1,
            -3.761_262_3e-1,
            1.283_791_7e-1,
        ],
    );
    let small = series.mul_add(magnitude, magnitude);
    // From this value on, the result rounds to one. NaN passes the comparison.
    let bounded = if magnitude > 4.0 { 4.0 } else { magnitude };
    let above_one = polynomial(
        bounded,
        [
            -2.074_415_4e-4,
            3.159_516_5e-3,
            -2.270_667_8e-2,
            1.049_661_2e-1,
            6.359_513_4e-1,
            1.284_425_6e-1,
        ],
    );
    let (k, r) = multiples_of_ln_2(-above_one.mul_add(bounded, bounded));
    let large = (-(1.0 + expm1_near(r))).mul_add(power_of_2(k), 1.0);
    (if magnitude < 1.05 { small } else { large }).copysign(x)
}
