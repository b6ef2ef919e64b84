//! Rewrites of ops that do not change their operand, and of unary ops on constants.

use nxla_tensor::{DType, Scalar};

use super::fold;
use super::outcome::{Simplified, constant};
use crate::graph::{Constant, ExprId, Graph, Op, Type, TypeId, UnaryOp};

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
    let rounded = Constant { value, ty: constant.ty.clone() };
    Simplified::Node(Op::Constant(Box::new(rounded)), Default::default())
}

pub(super) fn as_type(graph: &Graph, dtype: DType, x: ExprId, ty: TypeId) -> Simplified {
    if graph.type_id(x) == ty {
        return Simplified::Is(x);
    }
    // as_type(c) = the converted constant
    match constant(graph, x) {
        Some(constant) => {
            let ty = constant.ty.with_dtype(dtype);
            let value = constant.value.cast(dtype);
            Simplified::Node(Op::Constant(Box::new(Constant { value, ty })), Default::default())
        }
        None => Simplified::Keep,
    }
}

pub(super) fn unary(graph: &Graph, op: UnaryOp, x: ExprId, ty: TypeId) -> Simplified {
    if let Some(constant) = constant(graph, x) {
        let Type::Tensor(result) = graph.type_at(ty) else { return Simplified::Keep };
        // f(c) = the constant f(c)
        return match fold::unary(op, constant.value, result.dtype) {
            Some(value) => Simplified::Node(
                Op::Constant(Box::new(Constant { value, ty: result.clone() })),
                Default::default(),
            ),
            None => Simplified::Keep,
        };
    }
    let dtype = graph.dtype(x);
    // the imaginary part of a real number is 0
    if op == UnaryOp::Imag
        && !dtype.is_complex()
        && let Type::Tensor(result) = graph.type_at(ty)
    {
        let value = Scalar::Float(0.0);
        let zero = Constant { value, ty: result.clone() };
        return Simplified::Node(Op::Constant(Box::new(zero)), Default::default());
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
