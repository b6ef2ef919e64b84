//! Types of creation ops, which have no operands.

use super::check::{Inferred, given_type};
use crate::graph::{ErrorKind, Op, TensorType};

pub(super) fn infer(op: &Op) -> Inferred {
    match op {
        Op::Iota(iota) => match iota.axis {
            Some(axis) if axis >= iota.ty.rank() => Err(ErrorKind::Axis {
                axis: i64::try_from(axis).unwrap_or(i64::MAX),
                ty: Box::new(iota.ty.clone()),
            }),
            _ => countable(&iota.ty),
        },
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
