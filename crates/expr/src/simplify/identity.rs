//! Rewrites of ops that do not change their operand, and of unary ops on constants.

use nxla_tensor::{DType, Scalar};

use super::fold;
use super::outcome::{Simplified, constant};
use crate::graph::{Constant, ExprId, Graph, Type, TypeId, UnaryOp};

/// Returns `x` for an op that keeps the value, if the types are equal.
pub(super) fn unchanged(graph: &Graph, x: ExprId, ty: TypeId) -> Simplified {
    if graph.type_id(x) == ty { Simplified::Is(x) } else { Simplified::Keep }
}

/// c = c rounded to its dtype
pub(super) fn round_constant(constant: &Constant) -> Simplified {
    let value = constant.value.cast(constant.ty.dtype);
    if value == constant.value {
        return Simplified::Keep;
    }
    Simplified::constant(value, constant.ty.clone())
}

pub(super) fn as_type(graph: &Graph, dtype: DType, x: ExprId, ty: TypeId) -> Simplified {
    if graph.type_id(x) == ty {
        return Simplified::Is(x);
    }
    // as_type(c) = the converted constant
    match constant(graph, x) {
        Some(constant) => {
            let ty = constant.ty.with_dtype(dtype);
            Simplified::constant(constant.value.cast(dtype), ty)
        }
        None => Simplified::Keep,
    }
}

pub(super) fn unary(graph: &Graph, op: UnaryOp, x: ExprId, ty: TypeId) -> Simplified {
    if let Some(constant) = constant(graph, x) {
        let Type::Tensor(result) = graph.type_at(ty) else { return Simplified::Keep };
        // f(c) = the constant f(c)
        return match fold::unary(op, constant.value, result.dtype) {
            Some(value) => Simplified::constant(value, result.clone()),
            None => Simplified::Keep,
        };
    }
    let dtype = graph.dtype(x);
    // the imaginary part of a real number is 0
    if op == UnaryOp::Imag
        && !dtype.is_complex()
        && let Type::Tensor(result) = graph.type_at(ty)
    {
        return Simplified::constant(Scalar::Float(0.0), result.clone());
    }
    let changes_nothing = match op {
        // Rounding does not change an integer.
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::RoundEven => dtype.is_integer(),
        // |x| = x for unsigned x
        UnaryOp::Abs => dtype.is_unsigned(),
        // the real part of a real number is the number
        UnaryOp::Real => dtype.is_float(),
        _ => false,
    };
    if changes_nothing { Simplified::Is(x) } else { Simplified::Keep }
}
