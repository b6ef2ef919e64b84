//! Functions of `f32`. Most compute in `f64` and round once; the [native](super::native) functions compute in `f32`.
//!
//! They have no branches and no tables, so that the loops around them compile to vector code. `f64`
//! has 29 additional bits, so short polynomials and one step of range reduction return the
//! correctly rounded result in nearly all cases.

use std::f64::consts::{LN_2, LOG2_E};

pub(super) use super::circular::single::{
    cos, cos_near, is_near, round, sin, sin_near, tan, tan_near,
};
pub(super) use super::native::{erf, exp, log, sigmoid, tanh};
use super::polynomial;
use crate::kernels::elementwise::ROUND_F64;

/// Rarely used functions: the function of `f64`, rounded once.
macro_rules! rounded {
    ($x:tt: $($name:ident)*) => {
        $(rounded!(@define $name $x);)*
    };
    (@define $name:ident ($($x:ident),+)) => {
        #[inline(always)]
        pub(super) fn $name($($x: f32),+) -> f32 {
            super::double::$name($(f64::from($x)),+) as f32
        }
    };
}
rounded!((x): acos acosh asin asinh atan atanh cbrt cosh erfc expm1 sinh);
rounded!((y, x): atan2);

/// `above / below` with a relative error of 1e-13, for a divisor that is a normal `f32`. A division
/// of `f32` and one step of Newton's method take less time than a division of `f64`.
#[inline(always)]
pub(super) fn quotient(above: f64, below: f64) -> f64 {
    let inverse = f64::from(1.0 / below as f32);
    above * (inverse * (-below).mul_add(inverse, 2.0))
}

/// `e^x` with a relative error of 2e-9, as `2^k e^r` with `|r| <= ln(2) / 2` and a polynomial that
/// approximates `e^r`.
#[inline(always)]
fn exp_wide(x: f64) -> f64 {
    // Outside of this range, the result is infinity or zero in `f32`. NaN passes both comparisons.
    let x = if x > 130.0 { 130.0 } else { x };
    let x = if x < -150.0 { -150.0 } else { x };
    let shifted = x * LOG2_E + ROUND_F64;
    let r = x - (shifted - ROUND_F64) * LN_2;
    let near = polynomial(
        r,
        [
            1.383_684_602_393_782_5e-3,
            8.374_815_894_693_492e-3,
            4.166_822_557_439_778e-2,
            1.666_642_016_877_905e-1,
            4.999_999_207_977_036e-1,
            1.000_000_036_323_433_6,
            1.000_000_000_554_171_6,
        ],
    );
    f64::from_bits(near.to_bits().wrapping_add(shifted.to_bits() << 52))
}

/// Computes `ln x` of a positive, finite `x` as `k ln 2 + ln m` with `m` near 1.
///
/// A polynomial with a relative error of 2e-11 computes `ln m = 2 artanh((m - 1) / (m + 1))`.
#[inline(always)]
fn log_plain(x: f64) -> f64 {
    /// The bits of `sqrt(1/2)`.
    const LOW: u64 = 0x3fe6_a09e_667f_3bcd;
    let bits = x.to_bits().wrapping_sub(LOW);
    let exponent = (bits as i64 >> 52) as i32;
    let m = f64::from_bits((bits & ((1 << 52) - 1)).wrapping_add(LOW));
    let s = quotient(m - 1.0, m + 1.0);
    let z = s * s;
    let series = polynomial(
        z,
        [
            1.166_529_096_912_094_6e-1,
            1.427_540_829_985_577_4e-1,
            2.000_006_093_848_6e-1,
            3.333_333_327_722_582_4e-1,
            1.0,
        ],
    );
    f64::from(exponent) * LN_2 + 2.0 * s * series
}

#[inline(always)]
fn log_wide(x: f64) -> f64 {
    let finite = log_plain(x);
    let positive = if x < f64::INFINITY { finite } else { x };
    if x > 0.0 {
        positive
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else {
        f64::NAN
    }
}

#[inline(always)]
pub(super) fn log1p(x: f32) -> f32 {
    let x = f64::from(x);
    let small = x * (1.0 - 0.5 * x);
    (if x.abs() < 1e-6 { small } else { log_wide(1.0 + x) }) as f32
}

/// `x^y = e^(y ln |x|)`, without the sign.
#[inline(always)]
pub(super) fn pow(x: f32, y: f32) -> f32 {
    let (base, exponent) = (f64::from(x).abs(), f64::from(y));
    super::signed_power!(f32, x, y, exp_wide(exponent * log_wide(base)) as f32)
}

/// The same as [`pow`] for a positive `x`; `x` and `y` are finite.
#[inline(always)]
pub(super) fn pow_plain(x: f32, y: f32) -> f32 {
    exp_wide(f64::from(y) * log_plain(f64::from(x))) as f32
}

/// `x` times a function of `w = -ln(1 - x^2)`, or of its square root if `w` is large, as
/// polynomials with a relative error of 2e-10. At one, `w` and the result are infinite; beyond,
/// they are NaN.
#[inline(always)]
pub(super) fn erf_inv(x: f32) -> f32 {
    let x = f64::from(x);
    let w = -log_wide((1.0 - x) * (1.0 + x));
    let center = polynomial(
        w - 2.5,
        [
            -2.025_610_900_342_819_4e-11,
            1.229_798_100_593_660_3e-10,
            8.149_115_803_385_513e-10,
            -1.085_354_683_907_070_7e-8,
            1.381_677_513_810_044_5e-8,
            4.786_394_575_510_25e-7,
            -3.417_522_055_337_774e-6,
            -4.995_866_586_820_827e-6,
            2.182_512_468_659_810_4e-4,
            -1.252_708_100_491_602_6e-3,
            -4.177_318_131_330_877e-3,
            2.466_402_767_906_647_2e-1,
            1.501_409_351_138_805_1,
        ],
    );
    let tail = polynomial(
        w.sqrt() - 3.0,
        [
            9.632_826_427_344_422e-6,
            -2.552_095_777_594_243_5e-5,
            -2.848_432_930_877_376e-5,
            2.022_290_557_367_192_3e-4,
            -2.945_479_258_058_445_7e-4,
            -1.456_157_669_015_762e-4,
            1.487_347_217_630_324_8e-3,
            -3.559_811_230_421_31e-3,
            5.684_631_526_651_391e-3,
            -7.643_688_926_452_916e-3,
            9.445_554_840_378_114e-3,
            1.001_675_273_199_534_9,
            2.832_976_798_392_034_6,
        ],
    );
    ((if w < 5.0 { center } else { tail }) * x) as f32
}

/// Returns true if [`remainder_plain`] is exact: the quotient has at most 29 bits, so that its
/// products are exact.
#[inline(always)]
pub(super) fn is_plain_remainder(x: f32, y: f32) -> bool {
    let quotient = f64::from(x).abs() / f64::from(y).abs();
    (quotient < 536_870_912.0) & (y.abs() < f32::INFINITY)
}

/// The remainder of the quotient that is rounded towards zero, with the sign of `x`.
#[inline(always)]
pub(super) fn remainder_plain(x: f32, y: f32) -> f32 {
    let (dividend, divisor) = (f64::from(x).abs(), f64::from(y).abs());
    let rest = dividend - (dividend / divisor).trunc() * divisor;
    // A quotient just below an integer may have been rounded up to the integer.
    (if rest < 0.0 { rest + divisor } else { rest } as f32).copysign(x)
}
