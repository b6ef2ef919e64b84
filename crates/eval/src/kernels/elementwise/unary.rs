//! Kernels of one operand.

use nxla_expr::UnaryOp;
use nxla_tensor::Complex;

use super::binary::copy_kernel;
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

macro_rules! unsigned_kernels {
    ($name:ident, $t:ident) => {
        unsigned_kernels!(
            $name, $t; Exp Expm1 Log Log1p Sigmoid Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sqrt
                Rsqrt Cbrt Erf Erfc ErfInv Real Imag Conjugate
        );
    };
    ($name:ident, $t:ident; $($float_op:ident)*) => {
        fn $name(op: UnaryOp) -> Kernel {
            match op {
                UnaryOp::Negate => kernel!(|x: $t| -> $t { x.wrapping_neg() }),
                UnaryOp::Sign => kernel!(|x: $t| -> $t { x.min(1) }),
                UnaryOp::BitwiseNot => kernel!(|x: $t| -> $t { !x }),
                UnaryOp::PopulationCount => kernel!(|x: $t| -> $t { x.count_ones() as $t }),
                UnaryOp::CountLeadingZeros => kernel!(|x: $t| -> $t { x.leading_zeros() as $t }),
                UnaryOp::Abs
                | UnaryOp::Floor
                | UnaryOp::Ceil
                | UnaryOp::Round
                | UnaryOp::RoundEven => copy_kernel(size_of::<$t>()),
                UnaryOp::LogicalNot => kernel!(|x: $t| -> u8 { u8::from(x == 0) }),
                UnaryOp::IsNan | UnaryOp::IsInfinity => kernel!(|_x: $t| -> u8 { 0 }),
                $(UnaryOp::$float_op)|* => unreachable!("{} computes in floats", op.name()),
            }
        }
    };
}

unsigned_kernels!(unsigned_u8, u8);
unsigned_kernels!(unsigned_u16, u16);
unsigned_kernels!(unsigned_u32, u32);
unsigned_kernels!(unsigned_u64, u64);

/// The kernels of signed integers: kernels of unsigned integers, except for functions of the sign.
macro_rules! signed_kernels {
    ($name:ident, $t:ident, $unsigned:ident) => {
        fn $name(op: UnaryOp) -> Kernel {
            match op {
                UnaryOp::Sign => kernel!(|x: $t| -> $t { x.signum() }),
                UnaryOp::Abs => kernel!(|x: $t| -> $t { x.wrapping_abs() }),
                op => $unsigned(op),
            }
        }
    };
}
signed_kernels!(signed_i8, i8, unsigned_u8);
signed_kernels!(signed_i16, i16, unsigned_u16);
signed_kernels!(signed_i32, i32, unsigned_u32);
signed_kernels!(signed_i64, i64, unsigned_u64);

macro_rules! real_kernels {
    ($name:ident, $t:ident; $($op:ident $function:ident,)*; $($near_op:ident $near:ident $any:ident,)*) => {
        fn $name(op: UnaryOp) -> Kernel {
            match op {
                $(UnaryOp::$op => kernel!(|x: $t| -> $t { Real::$function(x) }),)*
                $(UnaryOp::$near_op => |srcs, out| {
                    map1_near(srcs, out, <$t>::is_near, <$t>::$near, <$t as Real>::$any);
                },)*
                UnaryOp::Sqrt => kernel!(|x: $t| -> $t { x.sqrt() }),
                UnaryOp::Rsqrt => kernel!(|x: $t| -> $t { 1.0 / x.sqrt() }),
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
    ($name:ident, $t:ident) => {
        real_kernels!(
            $name, $t;
            Exp exp, Expm1 expm1, Log log, Log1p log1p, Sigmoid sigmoid, Asin asin, Acos acos, Atan atan,
            Sinh sinh, Cosh cosh, Tanh tanh, Asinh asinh, Acosh acosh, Atanh atanh, Cbrt cbrt, Erf erf,
            Erfc erfc, ErfInv erf_inv, Round round,;
            Sin sin_near sin, Cos cos_near cos, Tan tan_near tan,
        );
    };
}
real_kernels!(real_f32, f32);
real_kernels!(real_f64, f64);

/// The kernel that changes the sign bit of floats of at most two bytes.
pub(crate) fn sign_kernel(op: UnaryOp, size: usize) -> Kernel {
    match (op, size) {
        (UnaryOp::Abs, 1) => kernel!(|x: u8| -> u8 { x & 0x7f }),
        (UnaryOp::Negate, 1) => kernel!(|x: u8| -> u8 { x ^ 0x80 }),
        (UnaryOp::Abs, 2) => kernel!(|x: u16| -> u16 { x & 0x7fff }),
        (UnaryOp::Negate, 2) => kernel!(|x: u16| -> u16 { x ^ 0x8000 }),
        (op, size) => unreachable!("{} of {size} bytes is computed in wider floats", op.name()),
    }
}

/// Kernels of complex numbers: the functions `$op`, and ops that compute with parts.
macro_rules! complex_kernels {
    ($name:ident, $t:ident; $($op:ident $function:ident,)*; $($other:ident)*) => {
        fn $name(op: UnaryOp) -> Kernel {
            match op {
                $(UnaryOp::$op => {
                    kernel!(|z: Complex<$t>| -> Complex<$t> { complex::$function(z) })
                })*
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
                $(UnaryOp::$other)|* => unreachable!("{} is not on {}", op.name(), stringify!($name)),
            }
        }
    };
}
complex_kernels!(
    complex_c64, f32;
    ;
    Exp Expm1 Log Log1p Sigmoid Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sqrt Rsqrt Cbrt Sign
        Erf Erfc ErfInv Floor Ceil Round BitwiseNot PopulationCount CountLeadingZeros
);
complex_kernels!(
    complex_c128, f64;
    Exp exp, Expm1 expm1, Log log, Log1p log1p, Sigmoid sigmoid, Sin sin, Cos cos, Tan tan, Asin asin, Acos acos,
    Atan atan, Sinh sinh, Cosh cosh, Tanh tanh, Asinh asinh, Acosh acosh, Atanh atanh, Sqrt sqrt, Rsqrt rsqrt,
    Cbrt cbrt, Sign sign,;
    Erf Erfc ErfInv Floor Ceil Round BitwiseNot PopulationCount CountLeadingZeros
);
