//! Types of creation ops, which have no operands.

use super::check::{Inferred, axis_in_range, given_type};
use crate::graph::{ErrorKind, Op, TensorType};

pub(super) fn infer(op: &Op) -> Inferred {
    match op {
        Op::Iota(iota) => {
            iota.axis.map_or(Ok(()), |axis| axis_in_range(axis, &iota.ty))?;
            countable(&iota.ty)
        }
        Op::Eye(ty) if ty.rank() < 2 => Err(ErrorKind::Shape {
            argument: "shape",
            found: ty.to_string(),
            expected: "at least two axes".into(),
        }),
        Op::Eye(ty) => given_type(ty),
        op @ crate::outside!(create) => unreachable!("{} is of another family", op.name()),
    }
}

fn countable(ty: &TensorType) -> Inferred {
    if ty.dtype.is_pred() {
        let expected = "an integer, float or complex dtype";
        return Err(ErrorKind::DType { argument: "dtype", found: ty.dtype, expected });
    }
    given_type(ty)
}
