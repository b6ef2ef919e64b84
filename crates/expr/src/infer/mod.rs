//! The type of a node from its op and the types of its operands.
//!
//! This is where user errors are found: every check of shapes, dtypes and axes that an op needs
//! is made here, once, and nothing ill-typed gets past it. One file per family.

mod check;
mod contract;
mod control;
mod create;
mod elementwise;
mod index;
mod linalg;
mod movement;
mod reduce;
mod window;

use crate::error::ErrorKind;
use crate::op::{Family, Op};
use crate::types::{TensorType, Type};

pub(crate) use elementwise::{binary_keeps, merge_names, unary_keeps};

/// The result of a type rule; the op's name and the line are added by the graph.
pub(crate) type Inferred = Result<Type, ErrorKind>;

/// The type of `op` applied to operands of these types.
pub(crate) fn infer(op: &Op, operands: &[&Type]) -> Inferred {
    match op.family() {
        Family::Create => create::infer(op),
        Family::Control => control::infer(op, operands),
        family => {
            let operands = tensors(operands)?;
            match family {
                Family::Elementwise => elementwise::infer(op, &operands),
                Family::Movement => movement::infer(op, &operands),
                Family::Reduce => reduce::infer(op, &operands),
                Family::Window => window::infer(op, &operands),
                Family::Contract => contract::infer(op, &operands),
                Family::Index => index::infer(op, &operands),
                Family::Linalg => linalg::infer(op, &operands),
                Family::Create | Family::Control => unreachable!("handled above"),
            }
        }
    }
}

/// Checks that every operand is one tensor.
fn tensors<'a>(operands: &[&'a Type]) -> Result<Vec<&'a TensorType>, ErrorKind> {
    operands
        .iter()
        .map(|ty| {
            ty.as_tensor().ok_or_else(|| ErrorKind::NotATensor {
                argument: "operand",
                found: Box::new((*ty).clone()),
            })
        })
        .collect()
}

/// Checks the number of operands and gives them by name.
pub(crate) fn operands<'a, const N: usize>(
    types: &[&'a TensorType],
) -> Result<[&'a TensorType; N], ErrorKind> {
    <[&TensorType; N]>::try_from(types)
        .map_err(|_| ErrorKind::Arity { expected: N.to_string(), found: types.len() })
}

/// A result of one tensor.
pub(crate) fn tensor(ty: TensorType) -> Inferred {
    Ok(Type::Tensor(ty))
}
