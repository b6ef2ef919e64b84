//! Counting and identity matrices.

use nxla_expr::{Iota, Op, TensorType};
use nxla_tensor::{DType, Shape};

use crate::context::Cx;
use crate::widen;
use crate::writer::Value;

pub(crate) fn lower(cx: &mut Cx<'_>, op: &Op) -> Value {
    match op {
        Op::Iota(attributes) => iota(cx, attributes),
        Op::Eye(ty) => eye(cx, ty),
        op @ nxla_expr::outside!(create) => unreachable!("{} is of another family", op.name()),
    }
}

fn iota(cx: &mut Cx<'_>, Iota { axis, ty }: &Iota) -> Value {
    let counting = widen::counter(ty.dtype, ty.shape.size());
    let counted = match axis {
        Some(axis) => cx.iota(*axis, counting, &ty.shape),
        None => cx.iota(0, counting, &Shape::from([ty.shape.size()])),
    };
    let shaped = cx.reshape(counted, &ty.shape);
    cx.convert(shaped, ty.dtype)
}

fn eye(cx: &mut Cx<'_>, ty: &TensorType) -> Value {
    let rank = ty.rank();
    let row = cx.iota(rank - 2, DType::S32, &ty.shape);
    let column = cx.iota(rank - 1, DType::S32, &ty.shape);
    let diagonal = cx.compare("EQ", row, column);
    cx.convert(diagonal, ty.dtype)
}
