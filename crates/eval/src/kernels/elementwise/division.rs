//! Quotients and remainders of integers.
//!
//! Machines divide integers one at a time, and floats in vectors: so integers are divided as floats that hold
//! all of their digits, or multiplied by the inverse of a divisor that is known.

use nxla_expr::BinaryOp;
use nxla_tensor::DType;

use super::dtype::Compute;
use super::lanes::{Kernel, kernel, map3_near};
use super::{ROUND_F32, ROUND_F64};

/// `x / y` towards zero modulo the width, and anything for a `y` of zero. There are vectors for quotients of
/// floats, and one that has twice the digits of an integer cannot round up to the next: a quotient that is not
/// whole is at least `1 / x` of its size below that.
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

/// `x / y` towards zero from `1 / y`. Half of one more than `x` is at least half of `1 / x` away from where the
/// quotient becomes another, which is more than both roundings.
macro_rules! times_inverse {
    ($x:expr, $inverse:expr, f32) => {
        (($x as f32 + 0.5_f32.copysign($x as f32)) * $inverse).trunc() + ROUND_F32
    };
    ($x:expr, $inverse:expr, f64) => {
        (($x as f64 + 0.5_f64.copysign($x as f64)) * $inverse).trunc() + ROUND_F64
    };
}

/// The kernel of `x`, of a divisor `y` that is not zero, and of `1 / y`, for integers of up to half the digits
/// of a float: of the remainder, or of the quotient.
macro_rules! by_inverse {
    ($is_remainder:expr, $t:ident, $through:ident) => {
        if $is_remainder {
            kernel!(|x: $t, y: $t, inverse: $through| -> $t {
                let quotient = times_inverse!(x, inverse, $through).to_bits() as $t;
                x.wrapping_sub(quotient.wrapping_mul(y))
            }) as Kernel
        } else {
            kernel!(|x: $t, _y: $t, inverse: $through| -> $t {
                times_inverse!(x, inverse, $through).to_bits() as $t
            })
        }
    };
}

/// The same for 64 bits, if a number is [`NEAR`]. Behind the last elements of a block the divisor is zero.
macro_rules! by_inverse_if_near {
    ($is_remainder:expr, $t:ident) => {{
        macro_rules! near {
            ($fast:expr, $any:expr) => {
                |srcs, out| {
                    map3_near(
                        srcs,
                        out,
                        #[inline(always)]
                        |x: $t| x.abs_diff(0) < NEAR,
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

/// The bound of integers whose products have few enough digits.
const NEAR: u64 = 1 << 49;

#[inline(always)]
fn quotient_of_near(x: i64, inverse: f64) -> i64 {
    let rounded = times_inverse!(x, inverse, f64);
    rounded.to_bits().wrapping_sub(ROUND_F64.to_bits()) as i64
}

/// The kernel of quotients or remainders by a divisor that is not zero and the same for all, for these ops on
/// integers: of `x`, the divisor, and one over it in the float that is given as well.
pub(crate) fn known_divisor_kernel(op: BinaryOp, dtype: Compute) -> Option<(Kernel, DType)> {
    let rest = op == BinaryOp::Remainder;
    if !rest && op != BinaryOp::Quotient {
        return None;
    }
    match dtype {
        Compute::U8 => Some((by_inverse!(rest, u8, f32), DType::F32)),
        Compute::S8 => Some((by_inverse!(rest, i8, f32), DType::F32)),
        Compute::U16 => Some((by_inverse!(rest, u16, f32), DType::F32)),
        Compute::S16 => Some((by_inverse!(rest, i16, f32), DType::F32)),
        Compute::U32 => Some((by_inverse!(rest, u32, f64), DType::F64)),
        Compute::S32 => Some((by_inverse!(rest, i32, f64), DType::F64)),
        Compute::U64 => Some((by_inverse_if_near!(rest, u64), DType::F64)),
        Compute::S64 => Some((by_inverse_if_near!(rest, i64), DType::F64)),
        Compute::F32 | Compute::F64 | Compute::C64 | Compute::C128 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::binary::binary_kernel;
    use super::super::lanes::Src;
    use super::*;

    /// Quotients and remainders through floats equal the operators of Rust, for all bytes and for the numbers of
    /// wider integers where rounding could go wrong.
    #[test]
    fn quotients_are_those_of_integers() {
        macro_rules! check {
            ($t:ident, $dtype:ident, $numbers:expr) => {{
                let mut numbers: Vec<$t> = $numbers;
                // So that some are left over when all loops are done.
                numbers.extend([1, 2, 3]);
                for &y in &numbers {
                    let given = |op| {
                        let mut out: Vec<$t> = vec![0; numbers.len()];
                        let x = Src { bytes: bytemuck::cast_slice(&numbers), splat: false };
                        let ys = [y; 64];
                        let y = Src { bytes: bytemuck::cast_slice(&ys), splat: true };
                        let bytes = bytemuck::cast_slice_mut(&mut out);
                        binary_kernel(op, Compute::$dtype)([x, y, Src::NONE], bytes);
                        out
                    };
                    let of_known = |op| {
                        let mut out: Vec<$t> = vec![0; numbers.len()];
                        let x = Src { bytes: bytemuck::cast_slice(&numbers), splat: false };
                        let (ys, inverse) = ([y; 64], 1.0 / y as f64);
                        let y = Src { bytes: bytemuck::cast_slice(&ys), splat: true };
                        let (kernel, through) = known_divisor_kernel(op, Compute::$dtype).unwrap();
                        let (narrow, wide) = ([inverse as f32; 64], [inverse; 64]);
                        let inverse: &[u8] = match through {
                            DType::F32 => bytemuck::cast_slice(&narrow),
                            _ => bytemuck::cast_slice(&wide),
                        };
                        let inverse = Src { bytes: inverse, splat: true };
                        kernel([x, y, inverse], bytemuck::cast_slice_mut(&mut out));
                        out
                    };
                    let (quotients, rests) =
                        (given(BinaryOp::Quotient), given(BinaryOp::Remainder));
                    for (at, &x) in numbers.iter().enumerate() {
                        let quotient = if y == 0 { !0 } else { x.wrapping_div(y) };
                        let rest = if y == 0 { x } else { x.wrapping_rem(y) };
                        assert_eq!((quotients[at], rests[at]), (quotient, rest), "{x} / {y}");
                    }
                    if y != 0 {
                        assert_eq!(of_known(BinaryOp::Quotient), quotients, "by {y}");
                        assert_eq!(of_known(BinaryOp::Remainder), rests, "by {y}");
                    }
                }
            }};
        }
        macro_rules! around {
            ($t:ident) => {{
                // Powers of two and of three, and what is next to them, up to both ends.
                let powers = (0..$t::BITS).map(|bit| (1 as $t).wrapping_shl(bit));
                let others = (0..).map_while(|power| (3 as $t).checked_pow(power));
                let centres = powers.chain(others).chain([$t::MIN, $t::MAX, 0]);
                let near =
                    |x: $t| (0..3).flat_map(move |by| [x.wrapping_add(by), x.wrapping_sub(by)]);
                centres.flat_map(near).flat_map(|x| [x, x.wrapping_neg()]).collect()
            }};
        }
        check!(u8, U8, (u8::MIN..=u8::MAX).collect());
        check!(i8, S8, (i8::MIN..=i8::MAX).collect());
        check!(u16, U16, around!(u16));
        check!(i16, S16, around!(i16));
        check!(u32, U32, around!(u32));
        check!(i32, S32, around!(i32));
        check!(u64, U64, around!(u64));
        check!(i64, S64, around!(i64));
    }
}
