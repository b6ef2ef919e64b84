//! Types of element-wise ops: dtype classes, promotion and broadcasting.

use nxla_tensor::{DType, Names, broadcast_shapes, promote, promote_keep_pred};

use super::check;
use super::check::{Inferred, operands, tensor};
use crate::graph::{BinaryClass, BinaryOp, ErrorKind, Op, TensorType, Type, UnaryClass, UnaryOp};

pub(super) fn infer(op: &Op, types: &[&TensorType]) -> Inferred {
    match op {
        Op::Unary(op) => {
            let [x] = operands(types)?;
            tensor(x.with_dtype(unary_dtype(*op, x.dtype)?))
        }
        Op::Binary(op) => {
            let [x, y] = operands(types)?;
            let dtype = binary_dtype(*op, x.dtype, y.dtype)?;
            tensor(broadcast_types(x, y)?.with_dtype(dtype))
        }
        Op::Select => {
            let [predicate, on_true, on_false] = operands(types)?;
            let branches = broadcast_types(on_true, on_false)?;
            let dtype = promote_keep_pred(on_true.dtype, on_false.dtype);
            tensor(broadcast_types(predicate, &branches)?.with_dtype(dtype))
        }
        Op::Clip => {
            let [x, min, max] = operands(types)?;
            tensor(x.with_dtype(clip_dtype(x, min, max)?))
        }
        Op::AsType(dtype) => {
            let [x] = operands(types)?;
            tensor(x.with_dtype(*dtype))
        }
        Op::Bitcast(dtype) => {
            let [x] = operands(types)?;
            tensor(x.with_dtype(bitcast_dtype(x.dtype, *dtype)?))
        }
        op @ crate::outside!(elementwise) => unreachable!("{} is of another family", op.name()),
    }
}

/// Returns whether the result of a unary op has the type of its operand.
pub(crate) fn unary_keeps(op: UnaryOp, ty: &Type) -> bool {
    let Type::Tensor(ty) = ty else { return false };
    unary_dtype(op, ty.dtype) == Ok(ty.dtype)
}

/// Returns whether the result of a binary op on two operands of one type has this type.
pub(crate) fn binary_keeps(op: BinaryOp, ty: &Type) -> bool {
    let Type::Tensor(ty) = ty else { return false };
    binary_dtype(op, ty.dtype, ty.dtype) == Ok(ty.dtype)
}

/// Converts `pred` to `u8` for arithmetic.
fn number(dtype: DType) -> DType {
    if dtype.is_pred() { DType::U8 } else { dtype }
}

fn require_real(dtype: DType) -> Result<DType, ErrorKind> {
    check::orderable("operand", dtype)
}

fn require_integer(dtype: DType) -> Result<DType, ErrorKind> {
    check::integer("operand", dtype)
}

/// Returns the result dtype of a unary op.
fn unary_dtype(op: UnaryOp, dtype: DType) -> Result<DType, ErrorKind> {
    Ok(match op.class() {
        UnaryClass::Float => dtype.to_floating(),
        UnaryClass::RealFloat => require_real(dtype)?.to_floating(),
        UnaryClass::Same => number(dtype),
        UnaryClass::SameReal => number(require_real(dtype)?),
        UnaryClass::Bits if dtype.is_pred() => dtype,
        UnaryClass::Bits | UnaryClass::Int => require_integer(number(dtype))?,
        UnaryClass::Predicate => DType::Pred,
        UnaryClass::Magnitude if dtype.is_complex() => dtype.to_real(),
        UnaryClass::Magnitude => number(dtype),
        UnaryClass::Part => dtype.to_real(),
        UnaryClass::Complex => dtype.to_complex(),
    })
}

/// Returns the result dtype of a binary op.
fn binary_dtype(op: BinaryOp, x: DType, y: DType) -> Result<DType, ErrorKind> {
    let promoted = promote(x, y);
    Ok(match op.class() {
        BinaryClass::Arithmetic => promoted,
        // The maximum of a `u64` and a signed integer is not negative, so `u64` can hold it.
        BinaryClass::Ordered
            if op == BinaryOp::Max
                && promoted == DType::S64
                && (x == DType::U64 || y == DType::U64) =>
        {
            DType::U64
        }
        BinaryClass::Ordered => require_real(promoted)?,
        BinaryClass::Float => promoted.to_floating(),
        BinaryClass::Int => require_integer(promoted)?,
        BinaryClass::Bits => match promote_keep_pred(x, y) {
            DType::Pred => DType::Pred,
            dtype => require_integer(dtype)?,
        },
        BinaryClass::Equality | BinaryClass::Logical => DType::Pred,
        BinaryClass::Order => {
            require_real(promoted)?;
            DType::Pred
        }
        BinaryClass::Parts => require_real(promoted)?.to_complex(),
    })
}

fn clip_dtype(x: &TensorType, min: &TensorType, max: &TensorType) -> Result<DType, ErrorKind> {
    for (argument, bound) in [("min", min), ("max", max)] {
        if bound.rank() != 0 {
            let (found, expected) = (bound.to_string(), "a scalar".into());
            return Err(ErrorKind::Shape { argument, found, expected });
        }
    }
    binary_dtype(BinaryOp::Min, binary_dtype(BinaryOp::Max, x.dtype, min.dtype)?, max.dtype)
}

fn bitcast_dtype(from: DType, to: DType) -> Result<DType, ErrorKind> {
    let (from, to) = (require_real(from)?, require_real(to)?);
    if from.bits() != to.bits() {
        let why =
            format!("must have the {} bits of {from}; got {to} with {}", from.bits(), to.bits());
        return Err(ErrorKind::invalid("dtype", why));
    }
    Ok(to)
}

/// Returns the broadcast shape and names of two operands, with the dtype of `x`.
pub(super) fn broadcast_types(x: &TensorType, y: &TensorType) -> Result<TensorType, ErrorKind> {
    let names = merge_names(x, y)?;
    if x.shape == y.shape {
        return Ok(TensorType { dtype: x.dtype, shape: x.shape.clone(), names });
    }
    let shape = broadcast_shapes(&x.shape, &y.shape).map_err(|_| ErrorKind::Broadcast {
        left: Box::new(x.clone()),
        right: Box::new(y.clone()),
    })?;
    Ok(TensorType { dtype: x.dtype, shape, names })
}

/// Merges the names of two operands, aligned from the right: a missing name takes the other name.
pub(crate) fn merge_names(x: &TensorType, y: &TensorType) -> Result<Option<Names>, ErrorKind> {
    if x.names.is_none() && y.names.is_none() {
        return Ok(None);
    }
    nxla_tensor::merge_names(x.names.as_ref(), x.rank(), y.names.as_ref(), y.rank())
        .map_err(|error| ErrorKind::Names(error.to_string()))
}
