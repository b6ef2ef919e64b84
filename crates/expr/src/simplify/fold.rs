//! Constant folding at trace time.
//!
//! Folding is an optimization and never required. It must not change a result, so the functions
//! return `None` for ops whose rounding depends on the backend, and the node remains.

use std::cmp::Ordering;

use nxla_tensor::{DType, Scalar, promote};

use crate::graph::{BinaryOp, UnaryOp};

/// Returns the value of a unary op on a constant, in the dtype of the result.
pub(super) fn unary(op: UnaryOp, x: Scalar, result: DType) -> Option<Scalar> {
    if op == UnaryOp::Negate {
        return Some(negate(x).cast(result));
    }
    if !result.is_float() || matches!(x, Scalar::Complex(..)) {
        return None;
    }
    let x = x.cast(result).as_f64();
    let value = match op {
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Round => x.round(),
        UnaryOp::RoundEven => x.round_ties_even(),
        UnaryOp::Abs => x.abs(),
        _ => return None,
    };
    Some(Scalar::Float(value).cast(result))
}

fn negate(x: Scalar) -> Scalar {
    match x {
        Scalar::Int(x) => Scalar::Int(x.wrapping_neg()),
        Scalar::UInt(x) => Scalar::UInt(x.wrapping_neg()),
        Scalar::Float(x) => Scalar::Float(-x),
        Scalar::Complex(re, im) => Scalar::Complex(-re, -im),
    }
}

/// Returns the value of a binary op on two constants, in the dtype of the result.
pub(super) fn binary(
    op: BinaryOp,
    x: Scalar,
    y: Scalar,
    (x_dtype, y_dtype): (DType, DType),
    result: DType,
) -> Option<Scalar> {
    let compute = promote(x_dtype, y_dtype);
    if let (false, Some(holds)) =
        (compute.is_complex(), compare(op, x.cast(compute), y.cast(compute)))
    {
        return Some(Scalar::UInt(u64::from(holds)));
    }
    match (x.cast(result), y.cast(result)) {
        (Scalar::Float(x), Scalar::Float(y)) => Some(Scalar::Float(float(op, x, y)?).cast(result)),
        (Scalar::Complex(..), _) => None,
        (x, y) => integer(op, x.as_i128()?, y.as_i128()?, result),
    }
}

/// Computes in `f64`. A second rounding to a narrower dtype does not change the results of these
/// ops.
fn float(op: BinaryOp, x: f64, y: f64) -> Option<f64> {
    let differ = x.partial_cmp(&y).is_some_and(Ordering::is_ne);
    match op {
        BinaryOp::Add => Some(x + y),
        BinaryOp::Subtract => Some(x - y),
        BinaryOp::Multiply => Some(x * y),
        BinaryOp::Divide => Some(x / y),
        BinaryOp::Remainder => Some(x % y),
        // Backends may return either operand if both are zero or one is NaN.
        BinaryOp::Max if differ => Some(x.max(y)),
        BinaryOp::Min if differ => Some(x.min(y)),
        _ => None,
    }
}

fn integer(op: BinaryOp, x: i128, y: i128, result: DType) -> Option<Scalar> {
    let value = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Subtract => x - y,
        BinaryOp::Multiply => x.wrapping_mul(y),
        BinaryOp::Max => x.max(y),
        BinaryOp::Min => x.min(y),
        BinaryOp::Pow => x.wrapping_pow(u32::try_from(y).ok()?),
        BinaryOp::Quotient if y != 0 => x / y,
        BinaryOp::Remainder if y != 0 => x % y,
        BinaryOp::BitwiseAnd => x & y,
        BinaryOp::BitwiseOr => x | y,
        BinaryOp::BitwiseXor => x ^ y,
        _ => return None,
    };
    // Truncation to 64 bits is exact modulo every narrower width.
    #[expect(clippy::cast_possible_truncation, reason = "integers wrap")]
    let low = value as i64;
    Some(Scalar::Int(low).cast(result))
}

fn compare(op: BinaryOp, x: Scalar, y: Scalar) -> Option<bool> {
    let ordering = match (x.as_i128(), y.as_i128()) {
        (Some(x), Some(y)) => Some(x.cmp(&y)),
        _ => x.as_f64().partial_cmp(&y.as_f64()),
    };
    match op {
        BinaryOp::Equal => Some(ordering.is_some_and(Ordering::is_eq)),
        BinaryOp::NotEqual => Some(!ordering.is_some_and(Ordering::is_eq)),
        BinaryOp::Less => Some(ordering.is_some_and(Ordering::is_lt)),
        BinaryOp::LessEqual => Some(ordering.is_some_and(Ordering::is_le)),
        BinaryOp::Greater => Some(ordering.is_some_and(Ordering::is_gt)),
        BinaryOp::GreaterEqual => Some(ordering.is_some_and(Ordering::is_ge)),
        BinaryOp::LogicalAnd => Some(!x.is_zero() && !y.is_zero()),
        BinaryOp::LogicalOr => Some(!x.is_zero() || !y.is_zero()),
        BinaryOp::LogicalXor => Some(x.is_zero() != y.is_zero()),
        _ => None,
    }
}
