//! Ops that move elements.

use nxla_expr::{Broadcast, Op, Padding, TensorType};

use crate::array::Array;
use crate::number::Number;

pub(crate) fn evaluate(op: &Op, ty: &TensorType, x: &[&Array]) -> Array {
    match op {
        // The same elements in row-major order.
        Op::Reshape(_) | Op::Squeeze(_) => Array::new(ty.dtype, &ty.shape, x[0].elements.clone()),
        Op::Transpose(permutation) => transpose(x[0], permutation, ty),
        Op::Reverse(axes) => reverse(x[0], axes, ty),
        Op::Broadcast(attributes) => broadcast(x[0], attributes, ty),
        Op::Pad(config) => pad(x[0], x[1].item(), config, ty),
        Op::Concatenate(axis) => concatenate(x, *axis, ty),
        Op::Stack(attributes) => stack(x, attributes.axis, ty),
        op @ nxla_expr::outside!(movement) => unreachable!("{} is of another family", op.name()),
    }
}

/// `y[i] = x[j]` with `j[permutation[axis]] = i[axis]`.
fn transpose(x: &Array, permutation: &[usize], ty: &TensorType) -> Array {
    Array::from_fn(ty, |index| {
        let mut place = vec![0; index.len()];
        for (axis, &of_x) in permutation.iter().enumerate() {
            place[of_x] = index[axis];
        }
        x.at(&place)
    })
}

/// `y[i] = x[j]` with `j[axis] = size - 1 - i[axis]` for these axes and `i[axis]` for others.
fn reverse(x: &Array, axes: &[usize], ty: &TensorType) -> Array {
    Array::from_fn(ty, |index| {
        let mut place = index.to_vec();
        for &axis in axes {
            place[axis] = x.shape[axis] - 1 - index[axis];
        }
        x.at(&place)
    })
}

/// `y[i] = x[j]` with `j[axis] = i[axes[axis]]`, or 0 along an axis of size 1.
fn broadcast(x: &Array, attributes: &Broadcast, ty: &TensorType) -> Array {
    Array::from_fn(ty, |index| {
        let place = |axis: usize| match x.shape[axis] {
            1 => 0,
            _ => index[attributes.axes[axis]],
        };
        x.at(&(0..x.rank()).map(place).collect::<Vec<_>>())
    })
}

/// Element `j` of an axis moves to `low + j (interior + 1)`; all other elements are `value`.
/// Elements that would move outside are dropped.
fn pad(x: &Array, value: Number, config: &[Padding], ty: &TensorType) -> Array {
    Array::from_fn(ty, |index| {
        let place = |axis: usize| {
            let Padding { low, interior, .. } = config[axis];
            let (steps, step) = (index[axis] as i128 - i128::from(low), interior as i128 + 1);
            let at = usize::try_from(steps / step).ok()?;
            (steps >= 0 && steps % step == 0 && at < x.shape[axis]).then_some(at)
        };
        match (0..x.rank()).map(place).collect::<Option<Vec<usize>>>() {
            Some(place) => x.at(&place),
            None => value,
        }
    })
}

/// Concatenates the operands along an axis.
fn concatenate(operands: &[&Array], axis: usize, ty: &TensorType) -> Array {
    Array::from_fn(ty, |index| {
        let mut place = index.to_vec();
        for x in operands {
            if place[axis] < x.shape[axis] {
                return x.at(&place);
            }
            place[axis] -= x.shape[axis];
        }
        unreachable!("the axis is as long as the axes of all operands together")
    })
}

/// `y[…, n, …] = x_n[…]`, with `n` at the position of the axis.
fn stack(operands: &[&Array], axis: usize, ty: &TensorType) -> Array {
    Array::from_fn(ty, |index| {
        let mut place = index.to_vec();
        let number = place.remove(axis);
        operands[number].at(&place)
    })
}
