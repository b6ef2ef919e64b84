//! Kernels of one operand.

use num_complex::Complex;
use nxla_expr::UnaryOp;

use super::dtype::Compute;
use super::lanes::{Kernel, kernel, map1_near};
use super::math::{Real, complex};

/// The kernel of an op on operands of a compute dtype. Its result has that dtype too, except for
/// predicates (`pred`) and the real-valued ops on complex numbers (their parts' dtype).
pub(crate) fn unary_kernel(op: UnaryOp, dtype: Compute) -> Kernel {
    match dtype {
        Compute::U8 => unsigned_u8(op),
        Compute::U16 => unsigned_u16(op),
        Compute::U32 => unsigned_u32(op),
        Compute::U64 => unsigned_u64(op),
        Compute::S8 => signed_i8(op),
        Compute::S16 => signed_i16(op),
        Compute::S32 => signed_i32(op),
        Compute::S64 => signed_i64(op),
        Compute::F32 => real_f32(op),
        Compute::F64 => real_f64(op),
        Compute::C64 => complex_c64(op),
        Compute::C128 => complex_c128(op),
    }
}

/// Ops whose operands have become floats before they get to a kernel.
fn not_on_integers(op: UnaryOp) -> ! {
    unreachable!("{} computes in floats", op.name())
}

macro_rules! integer_kernels {
    ($name:ident, $t:ident, negate: $negate:expr, sign: $sign:expr, abs: $abs:expr) => {
        fn $name(op: UnaryOp) -> Kernel {
            match op {
                UnaryOp::Negate => kernel!(|x: $t| -> $t { $negate(x) }),
                UnaryOp::Sign => kernel!(|x: $t| -> $t { $sign(x) }),
                UnaryOp::Abs => kernel!(|x: $t| -> $t { $abs(x) }),
                UnaryOp::BitwiseNot => kernel!(|x: $t| -> $t { !x }),
                UnaryOp::PopulationCount => kernel!(|x: $t| -> $t { x.count_ones() as $t }),
                UnaryOp::CountLeadingZeros => kernel!(|x: $t| -> $t { x.leading_zeros() as $t }),
                UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::RoundEven => {
                    kernel!(|x: $t| -> $t { x })
                }
                UnaryOp::LogicalNot => kernel!(|x: $t| -> u8 { u8::from(x == 0) }),
                UnaryOp::IsNan | UnaryOp::IsInfinity => kernel!(|_x: $t| -> u8 { 0 }),
                UnaryOp::Exp
                | UnaryOp::Expm1
                | UnaryOp::Log
                | UnaryOp::Log1p
                | UnaryOp::Sigmoid
                | UnaryOp::Sin
                | UnaryOp::Cos
                | UnaryOp::Tan
                | UnaryOp::Asin
                | UnaryOp::Acos
                | UnaryOp::Atan
                | UnaryOp::Sinh
                | UnaryOp::Cosh
                | UnaryOp::Tanh
                | UnaryOp::Asinh
                | UnaryOp::Acosh
                | UnaryOp::Atanh
                | UnaryOp::Sqrt
                | UnaryOp::Rsqrt
                | UnaryOp::Cbrt
                | UnaryOp::Erf
                | UnaryOp::Erfc
                | UnaryOp::ErfInv
                | UnaryOp::Real
                | UnaryOp::Imag
                | UnaryOp::Conjugate => not_on_integers(op),
            }
        }
    };
}

macro_rules! unsigned_kernels {
    ($name:ident, $t:ident) => {
        integer_kernels!($name, $t, negate: $t::wrapping_neg, sign: |x: $t| x.min(1), abs: |x| x);
    };
}
unsigned_kernels!(unsigned_u8, u8);
unsigned_kernels!(unsigned_u16, u16);
unsigned_kernels!(unsigned_u32, u32);
unsigned_kernels!(unsigned_u64, u64);

macro_rules! signed_kernels {
    ($name:ident, $t:ident) => {
        integer_kernels!($name, $t, negate: $t::wrapping_neg, sign: $t::signum, abs: $t::wrapping_abs);
    };
}
signed_kernels!(signed_i8, i8);
signed_kernels!(signed_i16, i16);
signed_kernels!(signed_i32, i32);
signed_kernels!(signed_i64, i64);

macro_rules! real_kernels {
    ($name:ident, $t:ident) => {
        fn $name(op: UnaryOp) -> Kernel {
            match op {
                UnaryOp::Exp => kernel!(|x: $t| -> $t { Real::exp(x) }),
                UnaryOp::Expm1 => kernel!(|x: $t| -> $t { Real::expm1(x) }),
                UnaryOp::Log => kernel!(|x: $t| -> $t { Real::log(x) }),
                UnaryOp::Log1p => kernel!(|x: $t| -> $t { Real::log1p(x) }),
                UnaryOp::Sigmoid => kernel!(|x: $t| -> $t { Real::sigmoid(x) }),
                UnaryOp::Sin => |srcs, out| {
                    map1_near(srcs, out, <$t>::is_near, <$t>::sin_near, <$t as Real>::sin);
                },
                UnaryOp::Cos => |srcs, out| {
                    map1_near(srcs, out, <$t>::is_near, <$t>::cos_near, <$t as Real>::cos);
                },
                UnaryOp::Tan => |srcs, out| {
                    map1_near(srcs, out, <$t>::is_near, <$t>::tan_near, <$t as Real>::tan);
                },
                UnaryOp::Asin => kernel!(|x: $t| -> $t { Real::asin(x) }),
                UnaryOp::Acos => kernel!(|x: $t| -> $t { Real::acos(x) }),
                UnaryOp::Atan => kernel!(|x: $t| -> $t { Real::atan(x) }),
                UnaryOp::Sinh => kernel!(|x: $t| -> $t { Real::sinh(x) }),
                UnaryOp::Cosh => kernel!(|x: $t| -> $t { Real::cosh(x) }),
                UnaryOp::Tanh => kernel!(|x: $t| -> $t { Real::tanh(x) }),
                UnaryOp::Asinh => kernel!(|x: $t| -> $t { Real::asinh(x) }),
                UnaryOp::Acosh => kernel!(|x: $t| -> $t { Real::acosh(x) }),
                UnaryOp::Atanh => kernel!(|x: $t| -> $t { Real::atanh(x) }),
                UnaryOp::Sqrt => kernel!(|x: $t| -> $t { x.sqrt() }),
                UnaryOp::Rsqrt => kernel!(|x: $t| -> $t { 1.0 / x.sqrt() }),
                UnaryOp::Cbrt => kernel!(|x: $t| -> $t { Real::cbrt(x) }),
                UnaryOp::Erf => kernel!(|x: $t| -> $t { Real::erf(x) }),
                UnaryOp::Erfc => kernel!(|x: $t| -> $t { Real::erfc(x) }),
                UnaryOp::ErfInv => kernel!(|x: $t| -> $t { Real::erf_inv(x) }),
                UnaryOp::Negate => kernel!(|x: $t| -> $t { -x }),
                // Zeros lose their sign, and NaN stays NaN.
                UnaryOp::Sign => kernel!(|x: $t| -> $t {
                    if x > 0.0 {
                        1.0
                    } else if x < 0.0 {
                        -1.0
                    } else {
                        x + 0.0
                    }
                }),
                UnaryOp::Abs => kernel!(|x: $t| -> $t { x.abs() }),
                UnaryOp::Floor => kernel!(|x: $t| -> $t { x.floor() }),
                UnaryOp::Ceil => kernel!(|x: $t| -> $t { x.ceil() }),
                UnaryOp::Round => kernel!(|x: $t| -> $t { Real::round(x) }),
                UnaryOp::RoundEven => kernel!(|x: $t| -> $t { x.round_ties_even() }),
                UnaryOp::IsNan => kernel!(|x: $t| -> u8 { u8::from(x.is_nan()) }),
                UnaryOp::IsInfinity => kernel!(|x: $t| -> u8 { u8::from(x.abs() == $t::INFINITY) }),
                UnaryOp::LogicalNot => kernel!(|x: $t| -> u8 { u8::from(x == 0.0) }),
                UnaryOp::Real => kernel!(|x: $t| -> $t { x }),
                UnaryOp::Imag => kernel!(|_x: $t| -> $t { 0.0 }),
                UnaryOp::Conjugate
                | UnaryOp::BitwiseNot
                | UnaryOp::PopulationCount
                | UnaryOp::CountLeadingZeros => unreachable!("{} is not on floats", op.name()),
            }
        }
    };
}
real_kernels!(real_f32, f32);
real_kernels!(real_f64, f64);

/// The kernel that changes the sign of floats of so few bytes, which is their first bit.
pub(crate) fn sign_kernel(op: UnaryOp, size: usize) -> Kernel {
    match (op, size) {
        (UnaryOp::Abs, 1) => kernel!(|x: u8| -> u8 { x & 0x7f }),
        (UnaryOp::Negate, 1) => kernel!(|x: u8| -> u8 { x ^ 0x80 }),
        (UnaryOp::Abs, 2) => kernel!(|x: u16| -> u16 { x & 0x7fff }),
        (UnaryOp::Negate, 2) => kernel!(|x: u16| -> u16 { x ^ 0x8000 }),
        (op, size) => unreachable!("{} of {size} bytes is computed in wider floats", op.name()),
    }
}

type Wide = Complex<f64>;

#[inline(always)]
fn widen(z: Complex<f32>) -> Wide {
    Complex::new(f64::from(z.re), f64::from(z.im))
}

#[inline(always)]
pub(super) fn narrow(z: Wide) -> Complex<f32> {
    Complex::new(z.re as f32, z.im as f32)
}

macro_rules! complex_kernels {
    ($name:ident, $t:ident, $widen:expr, $narrow:expr) => {
        fn $name(op: UnaryOp) -> Kernel {
            macro_rules! through {
                ($f:expr) => {
                    kernel!(|z: Complex<$t>| -> Complex<$t> { $narrow($f($widen(z))) })
                };
            }
            match op {
                UnaryOp::Exp => through!(complex::exp),
                UnaryOp::Expm1 => through!(complex::expm1),
                UnaryOp::Log => through!(Wide::ln),
                UnaryOp::Log1p => through!(complex::log1p),
                UnaryOp::Sigmoid => through!(complex::sigmoid),
                UnaryOp::Sin => through!(complex::sin),
                UnaryOp::Cos => through!(complex::cos),
                UnaryOp::Tan => through!(complex::tan),
                UnaryOp::Asin => through!(complex::asin),
                UnaryOp::Acos => through!(complex::acos),
                UnaryOp::Atan => through!(complex::atan),
                UnaryOp::Sinh => through!(complex::sinh),
                UnaryOp::Cosh => through!(complex::cosh),
                UnaryOp::Tanh => through!(complex::tanh),
                UnaryOp::Asinh => through!(complex::asinh),
                UnaryOp::Acosh => through!(complex::acosh),
                UnaryOp::Atanh => through!(complex::atanh),
                UnaryOp::Sqrt => through!(complex::sqrt),
                UnaryOp::Rsqrt => through!(complex::rsqrt),
                UnaryOp::Cbrt => through!(complex::cbrt),
                UnaryOp::Sign => through!(complex::sign),
                UnaryOp::Negate => kernel!(|z: Complex<$t>| -> Complex<$t> { -z }),
                UnaryOp::Conjugate => kernel!(|z: Complex<$t>| -> Complex<$t> { z.conj() }),
                UnaryOp::Abs => kernel!(|z: Complex<$t>| -> $t { z.re.hypot(z.im) }),
                UnaryOp::RoundEven => kernel!(|z: Complex<$t>| -> Complex<$t> {
                    Complex::new(z.re.round_ties_even(), z.im.round_ties_even())
                }),
                UnaryOp::Real => kernel!(|z: Complex<$t>| -> $t { z.re }),
                UnaryOp::Imag => kernel!(|z: Complex<$t>| -> $t { z.im }),
                UnaryOp::IsNan => kernel!(|z: Complex<$t>| -> u8 { u8::from(z.is_nan()) }),
                UnaryOp::IsInfinity => {
                    kernel!(|z: Complex<$t>| -> u8 {
                        u8::from(z.re.is_infinite() | z.im.is_infinite())
                    })
                }
                UnaryOp::LogicalNot => {
                    kernel!(|z: Complex<$t>| -> u8 { u8::from(z.re == 0.0 && z.im == 0.0) })
                }
                UnaryOp::Erf
                | UnaryOp::Erfc
                | UnaryOp::ErfInv
                | UnaryOp::Floor
                | UnaryOp::Ceil
                | UnaryOp::Round
                | UnaryOp::BitwiseNot
                | UnaryOp::PopulationCount
                | UnaryOp::CountLeadingZeros => {
                    unreachable!("{} is not on complex numbers", op.name())
                }
            }
        }
    };
}
complex_kernels!(complex_c64, f32, widen, narrow);
complex_kernels!(complex_c128, f64, |z| z, |z| z);
