//! Quotients and remainders of integers.
//!
//! Processors divide integers one at a time, and floats in vectors. Integers are therefore divided
//! as floats that represent them exactly, or multiplied by the inverse of a known divisor.

use nxla_expr::BinaryOp;

use super::ROUND_F64;
use super::dtype::Compute;
use super::lanes::{Kernel, map3_near};

/// `x / y` rounded toward zero, modulo the width; the result for a zero `y` is unspecified. The
/// quotient is computed in floats with twice the digits of the integers. It cannot round up to the
/// next integer, because a quotient that is not an integer is below it by at least `1 / x` of its
/// magnitude.
macro_rules! divided {
    ($t:ident through f32) => {
        |x: $t, y: $t| {
            ((x as f32 / y as f32).trunc() + $crate::kernels::elementwise::ROUND_F32).to_bits()
                as $t
        }
    };
    ($t:ident through f64) => {
        |x: $t, y: $t| {
            ((x as f64 / y as f64).trunc() + $crate::kernels::elementwise::ROUND_F64).to_bits()
                as $t
        }
    };
    ($t:ident through integers) => {
        |x: $t, y: $t| if y == 0 { 0 } else { x.wrapping_div(y) }
    };
}
pub(super) use divided;

/// The kernel of `x`, of a nonzero divisor `y`, and of `1 / y`: the remainder or the quotient.
/// Numbers below [`NEAR`] are multiplied by the inverse. After the last elements of a block, the
/// divisor is zero.
macro_rules! by_inverse {
    ($is_remainder:expr, $t:ident) => {{
        macro_rules! near {
            ($fast:expr, $any:expr) => {
                |srcs, out| {
                    map3_near(
                        srcs,
                        out,
                        #[inline(always)]
                        |x: $t, _, _| x.abs_diff(0) < NEAR,
                        #[inline(always)]
                        $fast,
                        #[inline(always)]
                        $any,
                    )
                }
            };
        }
        if $is_remainder {
            near!(
                |x: $t, y: $t, inverse: f64| {
                    let quotient = quotient_of_near(x as i64, inverse) as $t;
                    x.wrapping_sub(quotient.wrapping_mul(y))
                },
                |x: $t, y: $t, _| if y == 0 { 0 } else { x.wrapping_rem(y) }
            ) as Kernel
        } else {
            near!(
                |x: $t, _y: $t, inverse: f64| quotient_of_near(x as i64, inverse) as $t,
                |x: $t, y: $t, _| if y == 0 { 0 } else { x.wrapping_div(y) }
            )
        }
    }};
}

/// The bound of integers whose products fit in the significand of a float.
const NEAR: u64 = 1 << 49;

#[inline(always)]
fn quotient_of_near(x: i64, inverse: f64) -> i64 {
    // Adding one half to `x` keeps the product at least half of `1 / divisor` away from an integer,
    // which is more than the error of both roundings.
    let x = x as f64;
    let rounded = ((x + 0.5_f64.copysign(x)) * inverse).trunc() + ROUND_F64;
    rounded.to_bits().wrapping_sub(ROUND_F64.to_bits()) as i64
}

/// The kernel of quotients or remainders by a nonzero divisor that is the same for all elements.
/// The operands are `x`, the divisor, and its inverse in `f64`. Narrower integers are divided as
/// fast as floats.
pub(crate) fn known_divisor_kernel(op: BinaryOp, dtype: Compute) -> Option<Kernel> {
    let is_remainder = op == BinaryOp::Remainder;
    match dtype {
        Compute::U64 => Some(by_inverse!(is_remainder, u64)),
        Compute::S64 => Some(by_inverse!(is_remainder, i64)),
        _ => None,
    }
}
