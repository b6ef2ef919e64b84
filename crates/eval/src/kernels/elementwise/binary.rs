//! Kernels of two and three operands.
//!
//! Cases that the hardware does not define follow XLA: the quotient of an integer and zero is -1 (all bits set), and
//! the remainder is the dividend. A shift by a negative count, or by the width or more, returns 0; a right shift of a
//! signed integer returns the sign bit in every bit.

use nxla_expr::BinaryOp;
use nxla_tensor::Complex;

use super::division::divided;
use super::dtype::Compute;
use super::lanes::{Kernel, kernel, map2_near};
use super::math::{Real, complex};
use crate::kernels::number::{Number, narrow, wide};
use crate::kernels::strided::match_size;

/// The kernel of an op on two operands of a compute dtype. The result has the same dtype, except
/// for comparisons, which return `pred`, and for `complex`. Logical ops expect operands of `pred`.
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

/// Kernels that compute the same bits for signed and unsigned integers.
macro_rules! bit_kernels {
    ($name:ident, $t:ident) => {
        bit_kernels!(
            $name, $t; Pow Remainder Quotient Max Min RightShift Greater Less GreaterEqual LessEqual Divide Atan2 Complex
        );
    };
    ($name:ident, $t:ident; $($other:ident)*) => {
        fn $name(op: BinaryOp) -> Kernel {
            match op {
                BinaryOp::Add => kernel!(|x: $t, y: $t| -> $t { x.wrapping_add(y) }),
                BinaryOp::Subtract => kernel!(|x: $t, y: $t| -> $t { x.wrapping_sub(y) }),
                BinaryOp::Multiply => kernel!(|x: $t, y: $t| -> $t { x.wrapping_mul(y) }),
                BinaryOp::BitwiseAnd | BinaryOp::LogicalAnd => {
                    kernel!(|x: $t, y: $t| -> $t { x & y })
                }
                BinaryOp::BitwiseOr | BinaryOp::LogicalOr => {
                    kernel!(|x: $t, y: $t| -> $t { x | y })
                }
                BinaryOp::BitwiseXor | BinaryOp::LogicalXor => {
                    kernel!(|x: $t, y: $t| -> $t { x ^ y })
                }
                BinaryOp::LeftShift => {
                    kernel!(|x: $t, y: $t| -> $t { if y < ($t::BITS as $t) { x << y } else { 0 } })
                }
                BinaryOp::Equal => kernel!(|x: $t, y: $t| -> u8 { u8::from(x == y) }),
                BinaryOp::NotEqual => kernel!(|x: $t, y: $t| -> u8 { u8::from(x != y) }),
                $(BinaryOp::$other)|* => {
                    unreachable!("{} depends on signs or computes in floats", op.name())
                }
            }
        }
    };
}
bit_kernels!(bits_u8, u8);
bit_kernels!(bits_u16, u16);
bit_kernels!(bits_u32, u32);
bit_kernels!(bits_u64, u64);

macro_rules! integer_kernels {
    ($name:ident, $t:ident, $unsigned:ident, $bits:ident, pow: $pow:expr, divide: $divide:expr) => {
        fn $name(op: BinaryOp) -> Kernel {
            match op {
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
                BinaryOp::RightShift => kernel!(|x: $t, y: $t| -> $t {
                    if (y as $unsigned) < ($t::BITS as $unsigned) {
                        x >> y
                    } else {
                        // Two shifts, because a shift by the whole width is not allowed.
                        (x >> ($t::BITS - 1)) >> 1
                    }
                }),
                BinaryOp::Greater => kernel!(|x: $t, y: $t| -> u8 { u8::from(x > y) }),
                BinaryOp::Less => kernel!(|x: $t, y: $t| -> u8 { u8::from(x < y) }),
                BinaryOp::GreaterEqual => kernel!(|x: $t, y: $t| -> u8 { u8::from(x >= y) }),
                BinaryOp::LessEqual => kernel!(|x: $t, y: $t| -> u8 { u8::from(x <= y) }),
                op => $bits(op),
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

macro_rules! unsigned_kernels {
    ($name:ident, $t:ident, $bits:ident, $through:ident) => {
        integer_kernels!(
            $name, $t, $t, $bits,
            pow: |x: $t, y: $t| power_by_squaring!(x, y),
            divide: divided!($t through $through)
        );
    };
}
unsigned_kernels!(integer_u8, u8, bits_u8, f32);
unsigned_kernels!(integer_u16, u16, bits_u16, f32);
unsigned_kernels!(integer_u32, u32, bits_u32, f64);
unsigned_kernels!(integer_u64, u64, bits_u64, integers);

macro_rules! signed_kernels {
    ($name:ident, $t:ident, $unsigned:ident, $bits:ident, $through:ident) => {
        integer_kernels!(
            $name, $t, $unsigned, $bits,
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
signed_kernels!(integer_i8, i8, u8, bits_u8, f32);
signed_kernels!(integer_i16, i16, u16, bits_u16, f32);
signed_kernels!(integer_i32, i32, u32, bits_u32, f64);
signed_kernels!(integer_i64, i64, u64, bits_u64, integers);

macro_rules! real_kernels {
    ($name:ident, $t:ident) => {
        real_kernels!(
            $name, $t; Quotient BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift LogicalAnd LogicalOr LogicalXor
        );
    };
    ($name:ident, $t:ident; $($integer_op:ident)*) => {
        fn $name(op: BinaryOp) -> Kernel {
            match op {
                BinaryOp::Add => kernel!(|x: $t, y: $t| -> $t { x + y }),
                BinaryOp::Subtract => kernel!(|x: $t, y: $t| -> $t { x - y }),
                BinaryOp::Multiply => kernel!(|x: $t, y: $t| -> $t { x * y }),
                BinaryOp::Divide => kernel!(|x: $t, y: $t| -> $t { x / y }),
                BinaryOp::Remainder => |srcs, out| {
                    let (near, fast) = (<$t>::is_plain_remainder, <$t>::remainder_plain);
                    map2_near::<$t, $t, $t>(srcs, out, near, fast, |x, y| x % y);
                },
                BinaryOp::Pow => |srcs, out| {
                    let (near, fast) = (<$t>::is_plain_power, <$t>::pow_plain);
                    map2_near::<$t, $t, $t>(srcs, out, near, fast, <$t as Real>::pow);
                },
                BinaryOp::Atan2 => kernel!(|x: $t, y: $t| -> $t { Real::atan2(x, y) }),
                // This form returns NaN if either operand is NaN, and compiles to vector code.
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
                $(BinaryOp::$integer_op)|* => unreachable!("{} is not on floats", op.name()),
            }
        }
    };
}
real_kernels!(real_f32, f32);
real_kernels!(real_f64, f64);

/// Kernels of complex numbers: the functions `$op`, and ops that compute with parts.
macro_rules! complex_kernels {
    ($name:ident, $t:ident, $multiply:expr; $($op:ident $function:ident),*; $($other:ident)*) => {
        fn $name(op: BinaryOp) -> Kernel {
            type C = Complex<$t>;
            match op {
                $(BinaryOp::$op => kernel!(|z: C, w: C| -> C { complex::$function(z, w) }),)*
                BinaryOp::Add => kernel!(|z: C, w: C| -> C { z + w }),
                BinaryOp::Subtract => kernel!(|z: C, w: C| -> C { z - w }),
                BinaryOp::Multiply => kernel!(|z: C, w: C| -> C { $multiply(z, w) }),
                BinaryOp::Equal => kernel!(|z: C, w: C| -> u8 { u8::from(z == w) }),
                BinaryOp::NotEqual => kernel!(|z: C, w: C| -> u8 { u8::from(z != w) }),
                $(BinaryOp::$other)|* => unreachable!("{} is not on {}", op.name(), stringify!($name)),
            }
        }
    };
}
complex_kernels!(
    // Products of `f32` parts are exact in `f64`, so that the result is rounded once.
    complex_c64, f32, |z: C, w: C| narrow(wide(z) * wide(w));
    ;
    Divide Pow Atan2 Remainder Complex Quotient Max Min BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift Greater Less
        GreaterEqual LessEqual LogicalAnd LogicalOr LogicalXor
);
complex_kernels!(
    complex_c128, f64, |z: C, w: C| z * w;
    Divide divide, Pow pow, Atan2 atan2;
    Remainder Complex Quotient Max Min BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift Greater Less GreaterEqual
        LessEqual LogicalAnd LogicalOr LogicalXor
);

/// The kernel for the third or fourth power of a float; `f32` is rounded once.
pub(crate) fn known_power_kernel(exponent: f64, dtype: Compute) -> Option<Kernel> {
    macro_rules! powers {
        ($t:ident) => {
            match exponent {
                3.0 => Some(kernel!(|x: $t| -> $t {
                    let x = x.widen();
                    (x * x * x) as $t
                }) as Kernel),
                4.0 => Some(kernel!(|x: $t| -> $t {
                    let square = x.widen() * x.widen();
                    (square * square) as $t
                })),
                _ => None,
            }
        };
    }
    match dtype {
        Compute::F32 => powers!(f32),
        Compute::F64 => powers!(f64),
        _ => None,
    }
}

/// `predicate ? x : y` on elements of this many bytes; the predicate is a `pred`.
pub(crate) fn select_kernel(size: usize) -> Kernel {
    match_size!(size, T => kernel!(|p: u8, x: T, y: T| -> T { if p != 0 { x } else { y } }))
}

/// `min(max(x, low), high)`, as XLA's clamp: the result is NaN if an operand is NaN, and the upper
/// bound wins if the bounds cross.
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

/// Copies the elements, for an op that only changes the dtype.
pub(crate) fn copy_kernel(size: usize) -> Kernel {
    match_size!(size, T => kernel!(|x: T| -> T { x }))
}
