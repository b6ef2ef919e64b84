//! Type inference: the type of a node from its op and the types of its operands.
//!
//! Inference finds user errors. It makes every check of shapes, dtypes and axes exactly once, and
//! no ill-typed node passes it. There is one file per family.

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

use crate::graph::{Family, Op, Type};

pub(crate) use elementwise::{binary_keeps, merge_names, unary_keeps};
pub(crate) use reduce::without_axes;

/// Infers the type of `op` for operands of these types.
pub(crate) fn infer(op: &Op, operands: &[&Type]) -> check::Inferred {
    let ty = infer_family(op, operands)?;
    ty.parts().iter().try_for_each(|part| part.shape.check_limits())?;
    Ok(ty)
}

fn infer_family(op: &Op, operands: &[&Type]) -> check::Inferred {
    match op.family() {
        Family::Create => create::infer(op),
        Family::Control => control::infer(op, operands),
        family => {
            let operands = check::tensors(operands)?;
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
