//! Constant folding at trace time.
//!
//! Folding is an optimization and never required. If the rounding of an op depends on the backend,
//! the functions return `None` and the node remains.

use nxla_tensor::{DType, Scalar, promote};

use crate::graph::{BinaryOp, UnaryOp};

/// Returns the value of a unary op on a constant, in the dtype of the result.
pub(super) fn unary(op: UnaryOp, x: Scalar, result: DType) -> Option<Scalar> {
    if op == UnaryOp::Negate {
        return negate(x).map(|value| value.canonical(result)).map(|value| wrap(value, result));
    }
    if result.is_complex() || matches!(x, Scalar::Complex(..)) {
        return None;
    }
    let x = x.cast(result).as_f64();
    let value = match op {
        UnaryOp::Exp => x.exp(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Rsqrt => x.sqrt().recip(),
        UnaryOp::Sigmoid => (1.0 + (-x).exp()).recip(),
        UnaryOp::Floor if result.is_float() => x.floor(),
        UnaryOp::Ceil if result.is_float() => x.ceil(),
        UnaryOp::Round if result.is_float() => x.round(),
        UnaryOp::RoundEven if result.is_float() => x.round_ties_even(),
        UnaryOp::Abs if result.is_float() => x.abs(),
        _ => return None,
    };
    Some(Scalar::Float(value).cast(result))
}

fn negate(x: Scalar) -> Option<Scalar> {
    match x {
        Scalar::Int(x) => Some(Scalar::Int(x.wrapping_neg())),
        Scalar::UInt(x) => Some(Scalar::UInt(x.wrapping_neg())),
        Scalar::Float(x) => Some(Scalar::Float(-x)),
        Scalar::Complex(re, im) => Some(Scalar::Complex(-re, -im)),
    }
}

/// Wraps integers to the width of their dtype; floats keep the precision of their literals.
fn wrap(value: Scalar, dtype: DType) -> Scalar {
    if dtype.is_integer() { value.cast(dtype) } else { value }
}

/// Returns the value of a binary op on two constants, in the dtype of the result.
pub(super) fn binary(
    op: BinaryOp,
    x: Scalar,
    y: Scalar,
    (x_dtype, y_dtype): (DType, DType),
    result: DType,
) -> Option<Scalar> {
    if let BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply = op {
        return ring(op, x, y, result);
    }
    let compute = promote(x_dtype, y_dtype);
    if compute.is_complex() {
        return None;
    }
    if let Some(holds) = compare(op, x.cast(compute), y.cast(compute)) {
        return Some(Scalar::UInt(u64::from(holds)));
    }
    if result.is_float() {
        let (x, y) = (x.cast(result).as_f64(), y.cast(result).as_f64());
        let value = match op {
            BinaryOp::Divide => x / y,
            BinaryOp::Pow => x.powf(y),
            BinaryOp::Remainder => x % y,
            BinaryOp::Atan2 => x.atan2(y),
            BinaryOp::Max if !x.is_nan() && !y.is_nan() => x.max(y),
            BinaryOp::Min if !x.is_nan() && !y.is_nan() => x.min(y),
            _ => return None,
        };
        return Some(Scalar::Float(value).cast(result));
    }
    integer(op, x.as_i128()?, y.as_i128()?, result)
}

/// Computes sums and products, exactly for integers and in full literal precision for floats.
fn ring(op: BinaryOp, x: Scalar, y: Scalar, result: DType) -> Option<Scalar> {
    if result.is_integer() {
        return integer(op, x.as_i128()?, y.as_i128()?, result);
    }
    let ((a, b), (c, d)) = (x.parts(), y.parts());
    let (re, im) = match op {
        BinaryOp::Add => (a + c, b + d),
        BinaryOp::Subtract => (a - c, b - d),
        BinaryOp::Multiply if result.is_complex() => (a * c - b * d, a * d + b * c),
        BinaryOp::Multiply => (a * c, 0.0),
        _ => return None,
    };
    let value = if result.is_complex() { Scalar::Complex(re, im) } else { Scalar::Float(re) };
    Some(value.canonical(result))
}

fn integer(op: BinaryOp, x: i128, y: i128, result: DType) -> Option<Scalar> {
    let value = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Subtract => x - y,
        BinaryOp::Multiply => x.checked_mul(y)?,
        BinaryOp::Max => x.max(y),
        BinaryOp::Min => x.min(y),
        BinaryOp::Pow => x.checked_pow(u32::try_from(y).ok()?)?,
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
        BinaryOp::Equal => Some(ordering.is_some_and(std::cmp::Ordering::is_eq)),
        BinaryOp::NotEqual => Some(!ordering.is_some_and(std::cmp::Ordering::is_eq)),
        BinaryOp::Less => Some(ordering.is_some_and(std::cmp::Ordering::is_lt)),
        BinaryOp::LessEqual => Some(ordering.is_some_and(std::cmp::Ordering::is_le)),
        BinaryOp::Greater => Some(ordering.is_some_and(std::cmp::Ordering::is_gt)),
        BinaryOp::GreaterEqual => Some(ordering.is_some_and(std::cmp::Ordering::is_ge)),
        BinaryOp::LogicalAnd => Some(!x.is_zero() && !y.is_zero()),
        BinaryOp::LogicalOr => Some(!x.is_zero() || !y.is_zero()),
        BinaryOp::LogicalXor => Some(x.is_zero() != y.is_zero()),
        _ => None,
    }
}
