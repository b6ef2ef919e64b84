//! Sines, cosines and tangents, and rounding, for both precisions from one description.
//!
//! The functions for angles that are not huge have no branches, so loops around them are
//! vectorized. The `f32` functions evaluate short series in `f64` and round once.

use std::f64::consts::FRAC_2_PI;

use super::single::quotient;
use super::{polynomial, polynomial_in_pairs};
use crate::kernels::elementwise::ROUND_F64;

/// The sine and cosine of `x - k pi/2` with `|x - k pi/2| <= pi/4`, and `k` in the low bits.
///
/// The difference is computed in twice the precision, as the sum of `r` and `rest`. The series come
/// from `__kernel_sin` and `__kernel_cos` in Sun's fdlibm.
#[inline(always)]
fn reduced(x: f64) -> (f64, f64, u64) {
    /// `pi/2` is the sum of three constants. `FIRST` and `SECOND` have 33 bits each, so small
    /// multiples of them are exact; `THIRD` is the remainder.
    const FIRST: f64 = 1.570_796_326_734_125_6;
    const SECOND: f64 = 6.077_100_506_303_966e-11;
    const THIRD: f64 = 2.022_266_248_795_950_6e-21;
    let shifted = x * FRAC_2_PI + ROUND_F64;
    let k = shifted - ROUND_F64;
    let first = x - k * FIRST;
    let second = first - k * SECOND;
    let lost = k * THIRD - ((first - second) - k * SECOND);
    let r = second - lost;
    let rest = (second - r) - lost;

    let z = r * r;
    let cube = z * r;
    let sine = polynomial_in_pairs(
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
    let cosine = polynomial_in_pairs(
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

/// The same as [`reduced`] with the accuracy of `f32`.
#[inline(always)]
fn reduced_short(x: f64) -> (f64, f64, u64) {
    /// The first 33 bits of `pi/2`, so that small multiples are exact, and the rest.
    const HIGH: f64 = 1.570_796_326_734_125_6;
    const LOW: f64 = 6.077_100_506_506_192e-11;
    let shifted = x * FRAC_2_PI + ROUND_F64;
    let k = shifted - ROUND_F64;
    let r = (x - k * HIGH) - k * LOW;
    let z = r * r;
    let sine = polynomial(z, [1.0 / 362_880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0]);
    let cosine =
        polynomial(z, [-1.0 / 3_628_800.0, 1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0]);
    (r * sine, cosine, shifted.to_bits())
}

/// Changes the sign if the second bit of the quadrant is set.
#[inline(always)]
fn signed(x: f64, quadrant: u64) -> f64 {
    f64::from_bits(x.to_bits() ^ (quadrant & 2) << 62)
}

#[inline(always)]
fn divide(above: f64, below: f64) -> f64 {
    above / below
}

/// The functions of one precision.
macro_rules! circular_functions {
    ($module:ident, $t:ident, $reduced:ident, $divide:ident) => {
        pub(super) mod $module {
            use super::{signed, $divide as divide, $reduced as reduced};

            /// The largest angle for the functions without branches: multiples of `pi/2` have 20
            /// bits.
            pub(in super::super) const NEAR: $t = 1e6;

            /// Returns true if the functions without branches are accurate for an angle.
            #[inline(always)]
            pub(in super::super) fn is_near(x: $t) -> bool {
                x.abs() <= NEAR
            }

            #[inline(always)]
            pub(in super::super) fn sin_near(x: $t) -> $t {
                let (sine, cosine, quadrant) = reduced(f64::from(x));
                signed(if quadrant & 1 == 0 { sine } else { cosine }, quadrant) as $t
            }

            #[inline(always)]
            pub(in super::super) fn cos_near(x: $t) -> $t {
                let (sine, cosine, quadrant) = reduced(f64::from(x));
                let value = if quadrant & 1 == 0 { cosine } else { sine };
                signed(value, quadrant.wrapping_add(1)) as $t
            }

            #[inline(always)]
            pub(in super::super) fn tan_near(x: $t) -> $t {
                let (sine, cosine, quadrant) = reduced(f64::from(x));
                let is_even = quadrant & 1 == 0;
                let (above, below) = if is_even { (sine, cosine) } else { (-cosine, sine) };
                divide(above, below) as $t
            }

            #[inline(always)]
            pub(in super::super) fn sin(x: $t) -> $t {
                if is_near(x) { sin_near(x) } else { x.sin() }
            }

            #[inline(always)]
            pub(in super::super) fn cos(x: $t) -> $t {
                if is_near(x) { cos_near(x) } else { x.cos() }
            }

            #[inline(always)]
            pub(in super::super) fn tan(x: $t) -> $t {
                if is_near(x) { tan_near(x) } else { x.tan() }
            }

            /// The nearest integer; halves are rounded away from zero.
            #[inline(always)]
            pub(in super::super) fn round(x: $t) -> $t {
                // The largest number below one half: with one half itself, the number just below
                // one half would be rounded to one.
                const HALF: $t = (0.5 as $t).next_down();
                (x + HALF.copysign(x)).trunc()
            }
        }
    };
}
circular_functions!(single, f32, reduced_short, quotient);
circular_functions!(double, f64, reduced, divide);
