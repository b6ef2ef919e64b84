//! Unary element-wise ops.

use nxla_expr::UnaryOp;
use nxla_tensor::DType;

use super::{complex, impossible};
use crate::number::{C, Number};

/// Returns the result for an element of this dtype, before it is rounded to the dtype of the
/// result.
pub(super) fn unary(op: UnaryOp, x: Number, dtype: DType) -> Number {
    let function = |real: fn(f64) -> f64, complex: fn(C) -> C| match x {
        Number::Real(x) => Number::Real(real(x)),
        Number::Complex(z) => Number::Complex(complex(z)),
        Number::Int(_) => impossible(op.name(), x),
    };
    let real = |real: fn(f64) -> f64| match x {
        Number::Real(x) => Number::Real(real(x)),
        Number::Int(_) | Number::Complex(_) => impossible(op.name(), x),
    };
    let whole = |real: fn(f64) -> f64| match x {
        Number::Int(n) => Number::Int(n),
        Number::Real(x) => Number::Real(real(x)),
        Number::Complex(_) => impossible(op.name(), x),
    };
    let (re, im) = (x.complex().re, x.complex().im);
    match op {
        UnaryOp::Exp => function(f64::exp, complex::exp),
        UnaryOp::Expm1 => function(f64::exp_m1, |z| complex::exp(z) - 1.0),
        UnaryOp::Log => function(f64::ln, complex::log),
        UnaryOp::Log1p => function(f64::ln_1p, |z| complex::log(complex::one_plus(z))),
        // The growing exponential may be infinite where the result is nonzero.
        UnaryOp::Sigmoid => function(
            |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) },
            complex::sigmoid,
        ),
        UnaryOp::Sin => function(f64::sin, complex::sin),
        UnaryOp::Cos => function(f64::cos, complex::cos),
        UnaryOp::Tan => function(f64::tan, complex::tan),
        UnaryOp::Asin => function(f64::asin, complex::asin),
        UnaryOp::Acos => function(f64::acos, complex::acos),
        UnaryOp::Atan => function(f64::atan, complex::atan),
        UnaryOp::Sinh => function(f64::sinh, complex::sinh),
        UnaryOp::Cosh => function(f64::cosh, complex::cosh),
        UnaryOp::Tanh => function(f64::tanh, complex::tanh),
        UnaryOp::Asinh => function(libm::asinh, complex::asinh),
        // The library returns wrong values for some numbers below 1.
        UnaryOp::Acosh => {
            function(|x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, complex::acosh)
        }
        UnaryOp::Atanh => function(libm::atanh, complex::atanh),
        UnaryOp::Sqrt => function(f64::sqrt, complex::sqrt),
        UnaryOp::Rsqrt => {
            function(|x| 1.0 / x.sqrt(), |z| complex::divide(C::ONE, complex::sqrt(z)))
        }
        UnaryOp::Cbrt => function(f64::cbrt, complex::cbrt),
        UnaryOp::Erf => real(libm::erf),
        UnaryOp::Erfc => real(libm::erfc),
        UnaryOp::ErfInv => real(erf_inv),
        UnaryOp::Negate => match x {
            Number::Int(n) => Number::Int(-n),
            Number::Real(x) => Number::Real(-x),
            Number::Complex(z) => Number::Complex(-z),
        },
        UnaryOp::Sign => sign(x),
        UnaryOp::Abs => match x {
            Number::Int(n) => Number::Int(n.abs()),
            Number::Real(x) => Number::Real(x.abs()),
            Number::Complex(z) => Number::Real(z.re.hypot(z.im)),
        },
        UnaryOp::Floor => whole(f64::floor),
        UnaryOp::Ceil => whole(f64::ceil),
        UnaryOp::Round => whole(f64::round),
        UnaryOp::RoundEven => match x {
            Number::Complex(z) => {
                Number::Complex(C::new(z.re.round_ties_even(), z.im.round_ties_even()))
            }
            _ => whole(f64::round_ties_even),
        },
        UnaryOp::IsNan => Number::from_bool(x.is_nan()),
        UnaryOp::IsInfinity => Number::from_bool(re.is_infinite() || im.is_infinite()),
        UnaryOp::LogicalNot => Number::from_bool(x.is_zero()),
        UnaryOp::BitwiseNot if dtype.is_pred() => Number::from_bool(x.is_zero()),
        UnaryOp::BitwiseNot => Number::Int(!x.int()),
        UnaryOp::PopulationCount => Number::Int(bits(x, dtype).count_ones().into()),
        UnaryOp::CountLeadingZeros => {
            let above = u128::BITS - dtype.bits();
            Number::Int((bits(x, dtype).leading_zeros() - above).into())
        }
        UnaryOp::Real => Number::Real(re),
        UnaryOp::Imag => Number::Real(im),
        UnaryOp::Conjugate => Number::Complex(C::new(re, -im)),
    }
}

/// Returns the bits of an integer in two's complement, in the width of its dtype.
fn bits(x: Number, dtype: DType) -> u128 {
    x.int().cast_unsigned() & ((1 << dtype.bits()) - 1)
}

/// Returns -1, 0 or 1 by the sign; zeros lose their sign, and NaN remains. `z / |z|` for complex
/// numbers.
fn sign(x: Number) -> Number {
    match x {
        Number::Int(n) => Number::Int(n.signum()),
        Number::Real(0.0) => Number::Real(0.0),
        Number::Real(x) if x.is_nan() => Number::Real(x),
        Number::Real(x) => Number::Real(1_f64.copysign(x)),
        Number::Complex(z) if z == C::ZERO => Number::Complex(C::ZERO),
        // A single infinite part determines the direction.
        Number::Complex(z) if z.re.is_infinite() != z.im.is_infinite() => {
            let part = |x: f64| if x.is_infinite() { 1_f64.copysign(x) } else { 0.0 };
            Number::Complex(C::new(part(z.re), part(z.im)))
        }
        Number::Complex(z) => {
            // The parts are halved, because the magnitude of two large parts can overflow.
            let half = z * 0.5;
            Number::Complex(half / half.re.hypot(half.im))
        }
    }
}

/// Returns the `y` with `erf(y) = x` by bisection until the bounds are neighbors. Near 1, `erfc` is
/// compared instead, because `erf` has too few digits there.
fn erf_inv(x: f64) -> f64 {
    let size = x.abs();
    if size.is_nan() || size > 1.0 {
        return f64::NAN;
    }
    if size == 0.0 || size == 1.0 {
        return if size == 0.0 { x } else { f64::INFINITY.copysign(x) };
    }
    let is_below =
        |y: f64| if size < 0.5 { libm::erf(y) < size } else { libm::erfc(y) > 1.0 - size };
    let (mut low, mut high) = (0.0, 6.0);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return high.copysign(x);
        }
        *(if is_below(middle) { &mut low } else { &mut high }) = middle;
    }
}
