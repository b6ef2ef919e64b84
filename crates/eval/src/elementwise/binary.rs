//! Kernels of two and three operands.
//!
//! Where the hardware has no answer, these are XLA's: dividing an integer by zero gives -1 (all
//! bits set) and leaves the dividend as remainder; a shift by the width or more, or by a negative
//! count, gives 0, or the sign bit in every place for the right shift of a signed integer.

use num_complex::Complex;
use nxla_expr::BinaryOp;
use nxla_tensor::DType;

use super::dtype::Compute;
use super::lanes::{Kernel, kernel, map2_near, map2_over, map3_near};
use super::math::{Real, complex};
use super::unary::narrow;
use super::{ROUND_F32, ROUND_F64};

/// The kernel of an op on two operands of a compute dtype. Its result has that dtype too, except
/// for comparisons, which give `pred`, and for `complex`, which makes one number of two parts. Logical ops expect operands converted to `pred`.
pub(crate) fn binary_kernel(op: BinaryOp, dtype: Compute) -> Kernel {
    match dtype {
        Compute::U8 => integer_u8(op),
        Compute::U16 => integer_u16(op),
        Compute::U32 => integer_u32(op),
        Compute::U64 => integer_u64(op),
        Compute::S8 => integer_i8(op),
        Compute::S16 => integer_i16(op),
        Compute::S32 => integer_i32(op),
        Compute::S64 => integer_i64(op),
        Compute::F32 => real_f32(op),
        Compute::F64 => real_f64(op),
        Compute::C64 => complex_c64(op),
        Compute::C128 => complex_c128(op),
    }
}

macro_rules! integer_kernels {
    ($name:ident, $t:ident, $unsigned:ident, pow: $pow:expr, divide: $divide:expr) => {
        fn $name(op: BinaryOp) -> Kernel {
            match op {
                BinaryOp::Add => kernel!(|x: $t, y: $t| -> $t { x.wrapping_add(y) }),
                BinaryOp::Subtract => kernel!(|x: $t, y: $t| -> $t { x.wrapping_sub(y) }),
                BinaryOp::Multiply => kernel!(|x: $t, y: $t| -> $t { x.wrapping_mul(y) }),
                BinaryOp::Pow => kernel!(|x: $t, y: $t| -> $t { $pow(x, y) }),
                BinaryOp::Remainder => {
                    kernel!(|x: $t, y: $t| -> $t {
                        let quotient: $t = $divide(x, y);
                        if y == 0 { x } else { x.wrapping_sub(quotient.wrapping_mul(y)) }
                    })
                }
                BinaryOp::Quotient => {
                    kernel!(|x: $t, y: $t| -> $t { if y == 0 { !0 } else { $divide(x, y) } })
                }
                BinaryOp::Max => kernel!(|x: $t, y: $t| -> $t { x.max(y) }),
                BinaryOp::Min => kernel!(|x: $t, y: $t| -> $t { x.min(y) }),
                BinaryOp::BitwiseAnd => kernel!(|x: $t, y: $t| -> $t { x & y }),
                BinaryOp::BitwiseOr => kernel!(|x: $t, y: $t| -> $t { x | y }),
                BinaryOp::BitwiseXor => kernel!(|x: $t, y: $t| -> $t { x ^ y }),
                BinaryOp::LeftShift => kernel!(|x: $t, y: $t| -> $t {
                    if (y as $unsigned) < ($t::BITS as $unsigned) { x << y } else { 0 }
                }),
                BinaryOp::RightShift => kernel!(|x: $t, y: $t| -> $t {
                    if (y as $unsigned) < ($t::BITS as $unsigned) {
                        x >> y
                    } else {
                        // Two steps, for a shift by the whole width is not allowed.
                        (x >> ($t::BITS - 1)) >> 1
                    }
                }),
                BinaryOp::Equal => kernel!(|x: $t, y: $t| -> u8 { u8::from(x == y) }),
                BinaryOp::NotEqual => kernel!(|x: $t, y: $t| -> u8 { u8::from(x != y) }),
                BinaryOp::Greater => kernel!(|x: $t, y: $t| -> u8 { u8::from(x > y) }),
                BinaryOp::Less => kernel!(|x: $t, y: $t| -> u8 { u8::from(x < y) }),
                BinaryOp::GreaterEqual => kernel!(|x: $t, y: $t| -> u8 { u8::from(x >= y) }),
                BinaryOp::LessEqual => kernel!(|x: $t, y: $t| -> u8 { u8::from(x <= y) }),
                BinaryOp::LogicalAnd => kernel!(|x: $t, y: $t| -> $t { x & y }),
                BinaryOp::LogicalOr => kernel!(|x: $t, y: $t| -> $t { x | y }),
                BinaryOp::LogicalXor => kernel!(|x: $t, y: $t| -> $t { x ^ y }),
                BinaryOp::Divide | BinaryOp::Atan2 | BinaryOp::Complex => {
                    unreachable!("{} computes in floats", op.name())
                }
            }
        }
    };
}

/// `x ^ y` modulo the width, by repeated squaring; `y` is not negative.
macro_rules! power_by_squaring {
    ($x:expr, $y:expr) => {{
        let (mut base, mut exponent, mut power) = ($x, $y, 1);
        while exponent != 0 {
            if exponent & 1 == 1 {
                power = base.wrapping_mul(power);
            }
            base = base.wrapping_mul(base);
            exponent >>= 1;
        }
        power
    }};
}

/// `x / y` towards zero modulo the width, and anything for a `y` of zero. There are vectors for quotients of
/// floats, and one that has twice the digits of an integer cannot round up to the next: a quotient that is not
/// whole is at least `1 / x` of its size below that.
macro_rules! divided {
    ($t:ident through f32) => {
        |x: $t, y: $t| ((x as f32 / y as f32).trunc() + ROUND_F32).to_bits() as $t
    };
    ($t:ident through f64) => {
        |x: $t, y: $t| ((x as f64 / y as f64).trunc() + ROUND_F64).to_bits() as $t
    };
    ($t:ident through integers) => {
        |x: $t, y: $t| if y == 0 { 0 } else { x.wrapping_div(y) }
    };
}

/// `x / y` towards zero from `1 / y`. Half of one more than `x` is at least half of `1 / x` away from where the
/// quotient becomes another, which is more than both roundings.
macro_rules! times_inverse {
    ($x:expr, $inverse:expr, $t:ident, f32) => {
        (($x as f32 + 0.5_f32.copysign($x as f32)) * $inverse).trunc() + ROUND_F32
    };
    ($x:expr, $inverse:expr, $t:ident, f64) => {
        (($x as f64 + 0.5_f64.copysign($x as f64)) * $inverse).trunc() + ROUND_F64
    };
}

/// The kernel of `x`, of a divisor `y` that is not zero, and of `1 / y`, for integers of up to half the digits
/// of a float.
macro_rules! by_inverse {
    ($op:expr, $t:ident, $through:ident) => {
        match $op {
            BinaryOp::Quotient => kernel!(|x: $t, _y: $t, inverse: $through| -> $t {
                times_inverse!(x, inverse, $t, $through).to_bits() as $t
            }),
            _ => kernel!(|x: $t, y: $t, inverse: $through| -> $t {
                let quotient = times_inverse!(x, inverse, $t, $through).to_bits() as $t;
                x.wrapping_sub(quotient.wrapping_mul(y))
            }),
        }
    };
}

/// The same for 64 bits, if a number is [`NEAR`]. Behind the last elements of a block the divisor is zero.
macro_rules! by_inverse_if_near {
    ($op:expr, $t:ident) => {
        match $op {
            BinaryOp::Quotient => |srcs, out| {
                map3_near(
                    srcs,
                    out,
                    #[inline(always)]
                    |x: $t| x.abs_diff(0) < NEAR,
                    #[inline(always)]
                    |x: $t, _y: $t, inverse: f64| quotient_of_near(x as i64, inverse) as $t,
                    #[inline(always)]
                    |x: $t, y: $t, _| if y == 0 { 0 } else { x.wrapping_div(y) },
                )
            },
            _ => |srcs, out| {
                map3_near(
                    srcs,
                    out,
                    #[inline(always)]
                    |x: $t| x.abs_diff(0) < NEAR,
                    #[inline(always)]
                    |x: $t, y: $t, inverse: f64| {
                        let quotient = quotient_of_near(x as i64, inverse) as $t;
                        x.wrapping_sub(quotient.wrapping_mul(y))
                    },
                    #[inline(always)]
                    |x: $t, y: $t, _| if y == 0 { 0 } else { x.wrapping_rem(y) },
                )
            },
        }
    };
}

/// What the size of an integer is below that has as few digits.
const NEAR: u64 = 1 << 49;

#[inline(always)]
fn quotient_of_near(x: i64, inverse: f64) -> i64 {
    let rounded = times_inverse!(x, inverse, i64, f64);
    rounded.to_bits().wrapping_sub(ROUND_F64.to_bits()) as i64
}

/// The kernel of quotients and remainders by a divisor that is not zero and the same for all: of `x`, the
/// divisor, and one over it in the float that is given as well.
pub(crate) fn known_divisor_kernel(op: BinaryOp, dtype: Compute) -> Option<(Kernel, DType)> {
    let (kernel, through): (Kernel, DType) = match dtype {
        Compute::U8 => (by_inverse!(op, u8, f32), DType::F32),
        Compute::S8 => (by_inverse!(op, i8, f32), DType::F32),
        Compute::U16 => (by_inverse!(op, u16, f32), DType::F32),
        Compute::S16 => (by_inverse!(op, i16, f32), DType::F32),
        Compute::U32 => (by_inverse!(op, u32, f64), DType::F64),
        Compute::S32 => (by_inverse!(op, i32, f64), DType::F64),
        Compute::S64 => (by_inverse_if_near!(op, i64), DType::F64),
        Compute::U64 => (by_inverse_if_near!(op, u64), DType::F64),
        Compute::F32 | Compute::F64 | Compute::C64 | Compute::C128 => return None,
    };
    Some((kernel, through))
}

macro_rules! unsigned_kernels {
    ($name:ident, $t:ident, $through:ident) => {
        integer_kernels!(
            $name, $t, $t,
            pow: |x: $t, y: $t| power_by_squaring!(x, y),
            divide: divided!($t through $through)
        );
    };
}
unsigned_kernels!(integer_u8, u8, f32);
unsigned_kernels!(integer_u16, u16, f32);
unsigned_kernels!(integer_u32, u32, f64);
unsigned_kernels!(integer_u64, u64, integers);

macro_rules! signed_kernels {
    ($name:ident, $t:ident, $unsigned:ident, $through:ident) => {
        integer_kernels!(
            $name, $t, $unsigned,
            pow: |x: $t, y: $t| {
                match x {
                    _ if y >= 0 => power_by_squaring!(x, y),
                    1 => 1,
                    -1 => if y & 1 == 0 { 1 } else { -1 },
                    _ => 0,
                }
            },
            divide: divided!($t through $through)
        );
    };
}
signed_kernels!(integer_i8, i8, u8, f32);
signed_kernels!(integer_i16, i16, u16, f32);
signed_kernels!(integer_i32, i32, u32, f64);
signed_kernels!(integer_i64, i64, u64, integers);

macro_rules! real_kernels {
    ($name:ident, $t:ident) => {
        fn $name(op: BinaryOp) -> Kernel {
            match op {
                BinaryOp::Add => kernel!(|x: $t, y: $t| -> $t { x + y }),
                BinaryOp::Subtract => kernel!(|x: $t, y: $t| -> $t { x - y }),
                BinaryOp::Multiply => kernel!(|x: $t, y: $t| -> $t { x * y }),
                BinaryOp::Divide => kernel!(|x: $t, y: $t| -> $t { x / y }),
                BinaryOp::Remainder => kernel!(|x: $t, y: $t| -> $t { x % y }),
                BinaryOp::Pow => |srcs, out| {
                    map2_near::<$t, $t, $t>(
                        srcs,
                        out,
                        #[inline(always)]
                        |x, y| x.is_plain_power(y),
                        #[inline(always)]
                        |x, y| x.pow_plain(y),
                        #[inline(always)]
                        |x, y| Real::pow(x, y),
                    )
                },
                BinaryOp::Atan2 => kernel!(|x: $t, y: $t| -> $t { Real::atan2(x, y) }),
                // Written so that NaN on either side comes out, and to become vector code.
                BinaryOp::Max => {
                    kernel!(|x: $t, y: $t| -> $t { if (x > y) | x.is_nan() { x } else { y } })
                }
                BinaryOp::Min => {
                    kernel!(|x: $t, y: $t| -> $t { if (x < y) | x.is_nan() { x } else { y } })
                }
                BinaryOp::Equal => kernel!(|x: $t, y: $t| -> u8 { u8::from(x == y) }),
                BinaryOp::NotEqual => kernel!(|x: $t, y: $t| -> u8 { u8::from(x != y) }),
                BinaryOp::Greater => kernel!(|x: $t, y: $t| -> u8 { u8::from(x > y) }),
                BinaryOp::Less => kernel!(|x: $t, y: $t| -> u8 { u8::from(x < y) }),
                BinaryOp::GreaterEqual => kernel!(|x: $t, y: $t| -> u8 { u8::from(x >= y) }),
                BinaryOp::LessEqual => kernel!(|x: $t, y: $t| -> u8 { u8::from(x <= y) }),
                BinaryOp::Complex => {
                    kernel!(|x: $t, y: $t| -> Complex<$t> { Complex::new(x, y) })
                }
                BinaryOp::Quotient
                | BinaryOp::BitwiseAnd
                | BinaryOp::BitwiseOr
                | BinaryOp::BitwiseXor
                | BinaryOp::LeftShift
                | BinaryOp::RightShift
                | BinaryOp::LogicalAnd
                | BinaryOp::LogicalOr
                | BinaryOp::LogicalXor => unreachable!("{} is not on floats", op.name()),
            }
        }
    };
}
real_kernels!(real_f32, f32);
real_kernels!(real_f64, f64);

macro_rules! complex_kernels {
    ($name:ident, $t:ident, $narrow:expr) => {
        fn $name(op: BinaryOp) -> Kernel {
            type C = Complex<$t>;
            // Products of `f32` parts are exact in `f64`, so that the result is rounded once.
            macro_rules! through {
                ($f:expr) => {
                    kernel!(|z: C, w: C| -> C {
                        let z = Complex::<f64>::new(f64::from(z.re), f64::from(z.im));
                        let w = Complex::<f64>::new(f64::from(w.re), f64::from(w.im));
                        $narrow($f(z, w))
                    })
                };
            }
            match op {
                BinaryOp::Add => kernel!(|z: C, w: C| -> C { z + w }),
                BinaryOp::Subtract => kernel!(|z: C, w: C| -> C { z - w }),
                BinaryOp::Multiply => through!(|z: Complex<f64>, w| z * w),
                BinaryOp::Divide => through!(complex::divide),
                BinaryOp::Pow => through!(complex::pow),
                BinaryOp::Atan2 => through!(complex::atan2),
                BinaryOp::Equal => kernel!(|z: C, w: C| -> u8 { u8::from(z == w) }),
                BinaryOp::NotEqual => kernel!(|z: C, w: C| -> u8 { u8::from(z != w) }),
                BinaryOp::Remainder
                | BinaryOp::Complex
                | BinaryOp::Quotient
                | BinaryOp::Max
                | BinaryOp::Min
                | BinaryOp::BitwiseAnd
                | BinaryOp::BitwiseOr
                | BinaryOp::BitwiseXor
                | BinaryOp::LeftShift
                | BinaryOp::RightShift
                | BinaryOp::Greater
                | BinaryOp::Less
                | BinaryOp::GreaterEqual
                | BinaryOp::LessEqual
                | BinaryOp::LogicalAnd
                | BinaryOp::LogicalOr
                | BinaryOp::LogicalXor => unreachable!("{} is not on complex numbers", op.name()),
            }
        }
    };
}
complex_kernels!(complex_c64, f32, narrow);
complex_kernels!(complex_c128, f64, |z| z);

/// The kernel for `x` to the power of a small integer, which is a product; `f32` is rounded once, and
/// integers wrap.
pub(crate) fn known_power_kernel(exponent: f64, dtype: Compute) -> Option<Kernel> {
    macro_rules! float {
        ($t:ty) => {
            match exponent {
                -1.0 => kernel!(|x: $t| -> $t { (1.0 / f64::from(x)) as $t }),
                3.0 => kernel!(|x: $t| -> $t {
                    let x = f64::from(x);
                    (x * x * x) as $t
                }),
                4.0 => kernel!(|x: $t| -> $t {
                    let x = f64::from(x);
                    ((x * x) * (x * x)) as $t
                }),
                _ => return None,
            }
        };
    }
    macro_rules! integer {
        ($t:ident) => {
            match exponent {
                3.0 => kernel!(|x: $t| -> $t { x.wrapping_mul(x).wrapping_mul(x) }),
                4.0 => kernel!(|x: $t| -> $t {
                    let square = x.wrapping_mul(x);
                    square.wrapping_mul(square)
                }),
                _ => return None,
            }
        };
    }
    let kernel: Kernel = match dtype {
        Compute::U8 => integer!(u8),
        Compute::U16 => integer!(u16),
        Compute::U32 => integer!(u32),
        Compute::U64 => integer!(u64),
        Compute::S8 => integer!(i8),
        Compute::S16 => integer!(i16),
        Compute::S32 => integer!(i32),
        Compute::S64 => integer!(i64),
        Compute::F32 => float!(f32),
        Compute::F64 => float!(f64),
        Compute::C64 | Compute::C128 => return None,
    };
    Some(kernel)
}

/// `predicate ? x : y` on elements of this many bytes; the predicate is a `pred`.
pub(crate) fn select_kernel(size: usize) -> Kernel {
    match size {
        1 => kernel!(|p: u8, x: u8, y: u8| -> u8 { if p != 0 { x } else { y } }),
        2 => kernel!(|p: u8, x: u16, y: u16| -> u16 { if p != 0 { x } else { y } }),
        4 => kernel!(|p: u8, x: u32, y: u32| -> u32 { if p != 0 { x } else { y } }),
        8 => kernel!(|p: u8, x: u64, y: u64| -> u64 { if p != 0 { x } else { y } }),
        16 => kernel!(|p: u8, x: [u64; 2], y: [u64; 2]| -> [u64; 2] { if p != 0 { x } else { y } }),
        size => unreachable!("no element has {size} bytes"),
    }
}

/// The same where `y` is what the result holds before it is written.
pub(crate) fn select_over_kernel(size: usize) -> Kernel {
    macro_rules! over {
        ($t:ty) => {
            |srcs, out| {
                map2_over(
                    srcs,
                    out,
                    #[inline(always)]
                    |p: u8, x: $t, y: $t| if p != 0 { x } else { y },
                )
            }
        };
    }
    match size {
        1 => over!(u8),
        2 => over!(u16),
        4 => over!(u32),
        8 => over!(u64),
        16 => over!([u64; 2]),
        size => unreachable!("no element has {size} bytes"),
    }
}

/// `min(max(x, low), high)`, as XLA's clamp: NaN among the three comes out, and where the bounds
/// cross, the upper one wins.
pub(crate) fn clip_kernel(dtype: Compute) -> Kernel {
    macro_rules! integer {
        ($t:ident) => {
            kernel!(|x: $t, low: $t, high: $t| -> $t { x.max(low).min(high) })
        };
    }
    macro_rules! real {
        ($t:ident) => {
            kernel!(|x: $t, low: $t, high: $t| -> $t {
                let x = if (x > low) | x.is_nan() { x } else { low };
                if (x < high) | x.is_nan() { x } else { high }
            })
        };
    }
    match dtype {
        Compute::U8 => integer!(u8),
        Compute::U16 => integer!(u16),
        Compute::U32 => integer!(u32),
        Compute::U64 => integer!(u64),
        Compute::S8 => integer!(i8),
        Compute::S16 => integer!(i16),
        Compute::S32 => integer!(i32),
        Compute::S64 => integer!(i64),
        Compute::F32 => real!(f32),
        Compute::F64 => real!(f64),
        Compute::C64 | Compute::C128 => unreachable!("complex numbers have no order"),
    }
}

/// The elements themselves, where an op changes nothing but the name of their dtype.
pub(crate) fn copy_kernel(size: usize) -> Kernel {
    match size {
        1 => kernel!(|x: u8| -> u8 { x }),
        2 => kernel!(|x: u16| -> u16 { x }),
        4 => kernel!(|x: u32| -> u32 { x }),
        8 => kernel!(|x: u64| -> u64 { x }),
        16 => kernel!(|x: [u64; 2]| -> [u64; 2] { x }),
        size => unreachable!("no element has {size} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::Src;
    use super::*;

    /// Quotients and remainders through floats are those of the language, for all bytes and for the numbers of
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
