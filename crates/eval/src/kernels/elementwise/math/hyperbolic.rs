//! Hyperbolic functions and their inverses, without branches and tables.
//!
//! Their error is below two units in the last place, and below four for the inverse functions.

use std::f64::consts::LN_2;

use super::double::{expm1_near, log, multiples_of_ln_2, power_of_2};

/// The argument above which hyperbolic functions are infinite.
const MOST: f64 = 711.0;

/// A normal magnitude below which `e^x - 1` rounds to `x`.
const TINY: f64 = 1e-300;

/// `e^x - 1`, which is accurate for `x <= 1`, and `e^x / 2`, for `0 <= x <= MOST`.
#[inline(always)]
fn less_one_and_half(x: f64) -> (f64, f64) {
    let (k, r) = multiples_of_ln_2(x);
    let rest = expm1_near(r);
    let power = power_of_2(if k > 2.0 { 2.0 } else { k });
    let less_one = power.mul_add(rest, power - 1.0);
    (less_one, (1.0 + rest) * power_of_2(k - 2.0) * 2.0)
}

#[inline(always)]
fn bounded(x: f64) -> f64 {
    // NaN passes the comparison.
    if x.abs() > MOST { MOST } else { x.abs() }
}

#[inline(always)]
pub(super) fn sinh(x: f64) -> f64 {
    let magnitude = bounded(x);
    let (t, half) = less_one_and_half(magnitude);
    let small = 0.5 * (t + t / (t + 1.0));
    (if magnitude < 1.0 { small } else { half - 0.25 / half }).copysign(x)
}

#[inline(always)]
pub(super) fn cosh(x: f64) -> f64 {
    let (_, half) = less_one_and_half(bounded(x));
    half + 0.25 / half
}

/// `e^x - 1` from two factors, so that no power of two overflows unless the result does.
#[inline(always)]
pub(super) fn expm1(x: f64) -> f64 {
    // Outside of this range, the result is infinity or minus one. NaN passes both comparisons.
    let bounded = if x > 710.0 { 710.0 } else { x };
    let bounded = if bounded < -50.0 { -50.0 } else { bounded };
    let (k, r) = multiples_of_ln_2(bounded);
    let half = power_of_2(k - 1.0);
    let value = 2.0 * half.mul_add(expm1_near(r), half - 0.5);
    // Half of a subnormal number may be inexact.
    (if x.abs() < TINY { x } else { value }).copysign(x)
}

/// `ln(1 + x)` as [`log1p`](super::double::log1p). If `y` is so large that its square may overflow,
/// `ln(2 y)` instead.
#[inline(always)]
fn log_of_sum(x: f64, y: f64) -> f64 {
    let is_large = y > 268_435_456.0;
    let u = 1.0 + x;
    let y = log(if is_large { y } else { u });
    let small = if u == 1.0 { x } else { y * (x / (u - 1.0)) };
    if is_large { y + LN_2 } else { small }
}

/// `ln(x + sqrt(x^2 + 1))`.
#[inline(always)]
pub(super) fn asinh(x: f64) -> f64 {
    let magnitude = x.abs();
    let square = magnitude * magnitude;
    let above = magnitude + square / (1.0 + (1.0 + square).sqrt());
    log_of_sum(above, magnitude).copysign(x)
}

/// `ln(x + sqrt(x^2 - 1))`.
#[inline(always)]
pub(super) fn acosh(x: f64) -> f64 {
    let above = x - 1.0;
    let value = log_of_sum(above + (above * (above + 2.0)).sqrt(), x);
    if x < 1.0 { f64::NAN } else { value }
}

/// `ln(1 + 2 x / (1 - x)) / 2`.
#[inline(always)]
pub(super) fn atanh(x: f64) -> f64 {
    let magnitude = x.abs();
    let quotient = 2.0 * magnitude / (1.0 - magnitude);
    let value = 0.5 * log_of_sum(quotient, 0.0);
    let value = if magnitude == 1.0 { f64::INFINITY } else { value };
    value.copysign(x)
}
