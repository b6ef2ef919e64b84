//! Arithmetic, functions, comparisons and conversions of elements.

mod binary;
mod complex;
mod unary;

use nxla_expr::{BinaryClass, BinaryOp, Op, TensorType, UnaryClass, UnaryOp};
use nxla_tensor::{DType, HostTensor, promote};

use crate::array::Array;
use crate::number::Number;

pub(crate) fn evaluate(op: &Op, ty: &TensorType, x: &[&Array]) -> Array {
    match op {
        // y[i] = op(x[i]).
        Op::Unary(op) => {
            let dtype = unary_dtype(*op, x[0].dtype, ty.dtype);
            let x = x[0].cast(dtype);
            Array::from_fn(ty, |index| unary::unary(*op, x.at(index), dtype))
        }
        // z[i] = op(x[i], y[i]).
        Op::Binary(op) => {
            let dtype = binary_dtype(*op, x[0].dtype, x[1].dtype, ty.dtype);
            let (x, y) = (x[0].cast(dtype), x[1].cast(dtype));
            let pair = |index: &[usize]| (x.broadcast_at(index), y.broadcast_at(index));
            Array::from_fn(ty, |index| {
                let (x, y) = pair(index);
                binary::binary(*op, x, y, dtype)
            })
        }
        // The second operand where the predicate is nonzero, and the third elsewhere.
        Op::Select => Array::from_fn(ty, |index| {
            let chosen = if x[0].broadcast_at(index).is_zero() { x[2] } else { x[1] };
            chosen.broadcast_at(index)
        }),
        // `min(max(x[i], low), high)`: if the bounds cross, the upper bound wins.
        Op::Clip => {
            let [x, low, high] = [0, 1, 2].map(|operand| x[operand].cast(ty.dtype));
            Array::from_fn(ty, |index| x.at(index).larger(low.item()).smaller(high.item()))
        }
        Op::AsType(dtype) => x[0].cast(*dtype),
        Op::Bitcast(dtype) => bitcast(x[0], *dtype),
        op @ nxla_expr::outside!(elementwise) => {
            unreachable!("{} is of another family", op.name())
        }
    }
}

/// Returns the dtype in which a unary op is computed.
fn unary_dtype(op: UnaryOp, x: DType, result: DType) -> DType {
    match op.class() {
        UnaryClass::Float
        | UnaryClass::RealFloat
        | UnaryClass::Complex
        | UnaryClass::Same
        | UnaryClass::SameReal
        | UnaryClass::Bits
        | UnaryClass::Int => result,
        UnaryClass::Part if !x.is_complex() => result,
        UnaryClass::Part | UnaryClass::Predicate | UnaryClass::Magnitude => x,
    }
}

/// Returns the dtype in which a binary op is computed.
fn binary_dtype(op: BinaryOp, x: DType, y: DType, result: DType) -> DType {
    match op.class() {
        BinaryClass::Arithmetic
        | BinaryClass::Ordered
        | BinaryClass::Float
        | BinaryClass::Int
        | BinaryClass::Bits => result,
        BinaryClass::Equality | BinaryClass::Order => promote(x, y),
        BinaryClass::Logical => DType::Pred,
        BinaryClass::Parts => result.to_real(),
    }
}

/// Interprets the bits of each element as another dtype. Integers of one width with equal bits are
/// equal modulo `2^bits`; the byte of a boolean is true if any of its bits is set.
fn bitcast(x: &Array, to: DType) -> Array {
    if x.dtype.is_integer() && to.is_integer() {
        return x.cast(to);
    }
    let from = TensorType::new(x.dtype, &x.shape[..]);
    let bits = x.host(&from).expect("the number of elements equals the size");
    let byte = if to.is_pred() { DType::U8 } else { to };
    let read = HostTensor::from_bytes(byte, &x.shape[..], bits.bytes());
    Array::of(&read.expect("the widths are equal")).cast(to)
}

/// Panics for operands that type inference rejects or that are converted before.
fn impossible(op: &str, x: Number) -> ! {
    unreachable!("{op} does not take {x:?}")
}
