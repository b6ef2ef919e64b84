//! Creation ops, whose results depend only on their type.

use nxla_expr::{Op, TensorType};

use crate::array::{Array, position};
use crate::number::Number;

pub(crate) fn evaluate(op: &Op, ty: &TensorType) -> Array {
    match op {
        Op::Iota(iota) => match iota.axis {
            // y[i] = i[axis].
            Some(axis) => Array::from_fn(ty, |index| Number::count(index[axis])),
            // y[i] = the number of elements before i.
            None => Array::from_fn(ty, |index| Number::count(position(index, &ty.shape))),
        },
        // y[…, i, j] = 1 if i = j, else 0.
        Op::Eye(_) => Array::from_fn(ty, |index| {
            let [.., row, column] = index else { unreachable!("an eye has two axes") };
            Number::from_bool(row == column)
        }),
        op @ nxla_expr::outside!(create) => unreachable!("{} is of another family", op.name()),
    }
}
