//! The allowed differences of two backends, and the numbers on which they are compared.
//!
//! Exact results have equal bits, except that all NaN are equal; each other tolerance has a reason.
//! Operands contain no subnormal numbers, and inexact results may contain zero instead of subnormal
//! numbers, because XLA flushes them.

use nxla::graph::{BinaryOp, Op, ReduceOp, UnaryOp, WindowOp};
use nxla::{DType, HostTensor, Scalar};

use crate::case::Other;
use crate::values::{Numbers, epsilon, smallest};

/// The comparison for an op.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    /// The range of the operands.
    pub(crate) numbers: Numbers,
    /// The allowed difference in units of the last place of the result.
    ulps: f64,
    /// Results smaller than this count as this large: they are differences of larger numbers.
    floor: f64,
    /// True if results must have equal bits.
    exact: bool,
    /// True if subnormal numbers equal zero.
    flushes: bool,
}

pub(crate) const EXACT: Tolerance =
    Tolerance { numbers: Numbers::Any, ulps: 0.0, floor: 0.0, exact: true, flushes: true };

/// Extrema: which zero of either sign is the larger one is not defined.
pub(crate) const EQUAL: Tolerance = Tolerance { exact: false, ..EXACT };

/// Rounded once by each backend, from values that are not quite the same.
const ROUNDED: Tolerance = Tolerance { ulps: 4.0, ..EQUAL };

/// Added up in another order. Terms are near 1, so that errors are of that size too, and none is
/// infinite: whether large terms cancel before they overflow depends on the order as well.
pub(crate) const SUMMED: Tolerance =
    Tolerance { numbers: Numbers::Tame, ulps: 4.0, floor: 1.0, ..EQUAL };

/// A function of complex numbers. The backends use different formulas; parts are neither large
/// (XLA's squares of parts overflow), nor infinite (backends disagree on the values of functions),
/// nor zero (formulas differ in their rounding errors).
const COMPLEX: Tolerance = Tolerance { numbers: Numbers::Plane, ulps: 32.0, floor: 1.0, ..EQUAL };

/// The tolerance of an op on operands of a dtype.
pub(crate) fn of(op: &Op, dtype: DType) -> Tolerance {
    match op {
        Op::Unary(op) => unary(*op, dtype),
        Op::Binary(op) => binary(*op, dtype),
        // The product is rounded once for each factor, and a tensor has this many elements.
        Op::Reduce(ReduceOp::Product, _) if is_widest(dtype) => Tolerance { ulps: 96.0, ..SUMMED },
        Op::Reduce(ReduceOp::Sum | ReduceOp::Product, _)
        | Op::ReduceFun(_)
        | Op::Window(WindowOp::Sum | WindowOp::Product, _)
        | Op::WindowFun(_)
        | Op::WindowScatter(..)
        | Op::Dot(_)
        | Op::Conv(_)
        | Op::IndexedAdd(_) => SUMMED,
        // Both backends round intermediate results, in different orders.
        Op::Fft(_) => Tolerance { ulps: 16.0, ..SUMMED },
        // The matrices are well conditioned, but each element is the result of a chain of
        // operations. Factors and their errors are as large as the diagonal of the matrix. Factors
        // of narrower floats are rounded from `f32`.
        Op::Factorize(_) if is_computed(dtype) => Tolerance { ulps: 16.0, floor: 9.0, ..SUMMED },
        Op::TriangularSolve(_) | Op::Cholesky | Op::Factorize(_) => {
            Tolerance { ulps: 16.0, ..SUMMED }
        }
        Op::Clip
        | Op::Reduce(ReduceOp::Max | ReduceOp::Min, _)
        | Op::Window(WindowOp::Max | WindowOp::Min, _) => EQUAL,
        // The strictest comparison: an op with rounded results fails until it has an arm.
        _ => EXACT,
    }
}

fn unary(op: UnaryOp, dtype: DType) -> Tolerance {
    match op {
        UnaryOp::Negate
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::RoundEven
        | UnaryOp::IsNan
        | UnaryOp::IsInfinity
        | UnaryOp::LogicalNot
        | UnaryOp::BitwiseNot
        | UnaryOp::PopulationCount
        | UnaryOp::CountLeadingZeros
        | UnaryOp::Real
        | UnaryOp::Imag
        | UnaryOp::Conjugate => EXACT,
        // The absolute value of a complex number is a square root, and its sign is a quotient.
        UnaryOp::Sign | UnaryOp::Abs if !dtype.is_complex() => EXACT,
        // Some functions use the logarithm of `1 + x` below.
        _ if dtype == DType::C128 => Tolerance { ulps: 160.0, ..COMPLEX },
        _ if dtype.is_complex() => COMPLEX,
        // XLA's approximation of `log(1 + x)` in `f64` has only 14 digits near `|x| = 0.41`: the
        // largest error among 40,000 numbers is 121 units in the last place.
        UnaryOp::Log1p | UnaryOp::Atanh if dtype == DType::F64 => {
            Tolerance { ulps: 160.0, ..ROUNDED }
        }
        // XLA computes `exp(x + log(1/2))`. The absolute rounding error of the sum, which may be as
        // large as the logarithm of the largest number, becomes a relative error of the result.
        UnaryOp::Sinh | UnaryOp::Cosh => Tolerance { ulps: largest_log(dtype) / 2.0, ..ROUNDED },
        // The factor `exp(-x^2)` has the same error.
        UnaryOp::Erfc => Tolerance { ulps: largest_log(dtype) / 2.0, ..ROUNDED },
        // XLA raises to the power of a rounded third.
        UnaryOp::Cbrt => Tolerance { ulps: largest_log(dtype) / 8.0, ..ROUNDED },
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
        | UnaryOp::Tanh
        | UnaryOp::Asinh
        | UnaryOp::Acosh
        | UnaryOp::Atanh
        | UnaryOp::Sqrt
        | UnaryOp::Rsqrt
        | UnaryOp::Erf
        | UnaryOp::ErfInv
        | UnaryOp::Sign
        | UnaryOp::Abs => ROUNDED,
    }
}

fn binary(op: BinaryOp, dtype: DType) -> Tolerance {
    match op {
        BinaryOp::Max | BinaryOp::Min => EQUAL,
        BinaryOp::Add | BinaryOp::Subtract => Tolerance { ulps: 0.5, ..ROUNDED },
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Pow | BinaryOp::Atan2
            if dtype.is_complex() =>
        {
            COMPLEX
        }
        BinaryOp::Multiply | BinaryOp::Divide => Tolerance { ulps: 0.5, ..ROUNDED },
        BinaryOp::Remainder | BinaryOp::Pow | BinaryOp::Atan2 => ROUNDED,
        _ => EXACT,
    }
}

/// Returns whether a factorization computes in the dtype of its factors, whose errors then show.
fn is_computed(dtype: DType) -> bool {
    matches!(dtype.to_floating(), DType::F32 | DType::F64 | DType::C64 | DType::C128)
}

/// Returns whether the evaluator reduces in a dtype, whose errors then show.
fn is_widest(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::C128)
}

/// The logarithm of the largest number.
fn largest_log(dtype: DType) -> f64 {
    match dtype.to_floating() {
        DType::F64 => 710.0,
        _ => 89.0,
    }
}

impl Tolerance {
    /// Returns the tolerance for the other backend. The reference does not approximate like XLA and does
    /// not flush subnormal numbers.
    pub(crate) fn for_backend(self, other: Other) -> Tolerance {
        match other {
            Other::Reference => {
                // Sums, factors and complex functions have similar errors on both backends.
                let ulps = if self.floor > 0.0 { self.ulps } else { self.ulps.min(ROUNDED.ulps) };
                Tolerance { ulps, flushes: false, ..self }
            }
            Other::Xla => self,
        }
    }

    /// The first element that differs by more, if there is one.
    pub(crate) fn difference(&self, ours: &HostTensor, theirs: &HostTensor) -> Option<String> {
        if (ours.dtype(), ours.shape()) != (theirs.dtype(), theirs.shape()) {
            return Some(format!("evaluator {ours}, other {theirs}"));
        }
        let differs =
            |&index: &usize| !self.allows(ours.dtype(), ours.get(index), theirs.get(index));
        let index = (0..ours.size()).find(differs)?;
        let (ours, theirs) = (ours.get(index), theirs.get(index));
        Some(format!("element {index}: evaluator {ours:?}, other {theirs:?}"))
    }

    fn allows(&self, dtype: DType, ours: Scalar, theirs: Scalar) -> bool {
        if dtype.is_integer() {
            return ours == theirs;
        }
        let ((a, b), (c, d)) = (ours.parts(), theirs.parts());
        if self.exact {
            let same = |a: f64, c: f64| a.to_bits() == c.to_bits() || a.is_nan() && c.is_nan();
            return same(a, c) && same(b, d);
        }
        // The error of a complex result is relative to its magnitude, not to the part.
        let size = [c, d].into_iter().filter(|x| x.is_finite()).fold(0.0, f64::hypot);
        let tiny = if self.flushes { smallest(dtype) } else { smallest(dtype) * epsilon(dtype) };
        let allowed = self.ulps * epsilon(dtype) * size.max(self.floor) + tiny;
        let near = |a: f64, c: f64| a == c || a.is_nan() && c.is_nan() || (a - c).abs() <= allowed;
        near(a, c) && near(b, d)
    }
}
