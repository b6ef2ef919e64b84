//! Binary element-wise ops.

use std::cmp::Ordering;

use nxla_expr::BinaryOp;
use nxla_tensor::DType;

use super::{complex, impossible};
use crate::number::{C, Number};

/// Returns the result for two elements of this dtype, before it is rounded to the dtype of the
/// result.
pub(super) fn binary(op: BinaryOp, x: Number, y: Number, dtype: DType) -> Number {
    let order = || x.compare(y);
    match op {
        BinaryOp::Add => x.add(y),
        BinaryOp::Subtract => match (x, y) {
            (Number::Int(x), Number::Int(y)) => Number::Int(x - y),
            (Number::Real(x), Number::Real(y)) => Number::Real(x - y),
            (x, y) => Number::Complex(x.complex() - y.complex()),
        },
        BinaryOp::Multiply => x.multiply(y),
        BinaryOp::Pow => match (x, y) {
            (Number::Int(x), Number::Int(y)) => Number::Int(power(x, y)),
            (Number::Real(x), Number::Real(y)) => Number::Real(x.powf(y)),
            (x, y) => Number::Complex(complex::pow(x.complex(), y.complex())),
        },
        BinaryOp::Divide => floats(op, x, y, |x, y| x / y, complex::divide),
        BinaryOp::Atan2 => floats(op, x, y, f64::atan2, complex::atan2),
        // The result has the sign of `x`. Division by zero returns `x`.
        BinaryOp::Remainder => match (x, y) {
            (Number::Int(x), Number::Int(0)) => Number::Int(x),
            (Number::Int(x), Number::Int(y)) => Number::Int(x % y),
            (Number::Real(x), Number::Real(y)) => Number::Real(x % y),
            (x, _) => impossible(op.name(), x),
        },
        // Division by zero returns a value with all bits set.
        BinaryOp::Quotient if y.int() == 0 => Number::Int(-1),
        BinaryOp::Quotient => Number::Int(x.int() / y.int()),
        BinaryOp::Max => x.larger(y),
        BinaryOp::Min => x.smaller(y),
        BinaryOp::BitwiseAnd => Number::Int(x.int() & y.int()),
        BinaryOp::BitwiseOr => Number::Int(x.int() | y.int()),
        BinaryOp::BitwiseXor => Number::Int(x.int() ^ y.int()),
        BinaryOp::LeftShift => match distance(y, dtype) {
            Some(distance) => Number::Int(x.int() << distance),
            None => Number::ZERO,
        },
        // The sign bit of a signed integer fills the vacated bits.
        BinaryOp::RightShift => Number::Int(x.int() >> distance(y, dtype).unwrap_or(dtype.bits())),
        BinaryOp::Equal => Number::from_bool(x.equals(y)),
        BinaryOp::NotEqual => Number::from_bool(!x.equals(y)),
        BinaryOp::Greater => Number::from_bool(order() == Some(Ordering::Greater)),
        BinaryOp::Less => Number::from_bool(order() == Some(Ordering::Less)),
        BinaryOp::GreaterEqual => Number::from_bool(order().is_some_and(Ordering::is_ge)),
        BinaryOp::LessEqual => Number::from_bool(order().is_some_and(Ordering::is_le)),
        BinaryOp::LogicalAnd => Number::from_bool(!x.is_zero() && !y.is_zero()),
        BinaryOp::LogicalOr => Number::from_bool(!x.is_zero() || !y.is_zero()),
        BinaryOp::LogicalXor => Number::from_bool(x.is_zero() != y.is_zero()),
        BinaryOp::Complex => Number::Complex(C::new(x.complex().re, y.complex().re)),
    }
}

/// Computes a function of real or of complex numbers.
fn floats(
    op: BinaryOp,
    x: Number,
    y: Number,
    real: fn(f64, f64) -> f64,
    complex: fn(C, C) -> C,
) -> Number {
    match (x, y) {
        (Number::Real(x), Number::Real(y)) => Number::Real(real(x, y)),
        (Number::Complex(x), Number::Complex(y)) => Number::Complex(complex(x, y)),
        (x, _) => impossible(op.name(), x),
    }
}

/// Returns the distance of a shift if it is less than the width; a negative distance is invalid.
fn distance(y: Number, dtype: DType) -> Option<u32> {
    u32::try_from(y.int()).ok().filter(|&distance| distance < dtype.bits())
}

/// Computes `x^y` as the square of `x^(y/2)`, times `x` if `y` is odd. A negative power of an
/// integer is the truncated quotient, and 0 for 0.
fn power(x: i128, y: i128) -> i128 {
    match (x, y) {
        (_, 0) | (1, _) => 1,
        (-1, _) => {
            if y % 2 == 0 {
                1
            } else {
                -1
            }
        }
        (_, ..0) => 0,
        (_, 1..) => {
            let root = power(x, y / 2);
            let square = root.wrapping_mul(root);
            if y % 2 == 0 { square } else { square.wrapping_mul(x) }
        }
    }
}
