//! Tensors that depend only on their type, and random words.

mod threefry;

use nxla_expr::{Op, TensorType};
use nxla_tensor::{HostTensor, Scalar};

use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::count_from;
use crate::kernels::movement::read;
use crate::kernels::strided::Strided;

pub(crate) use threefry::{random_wide_words, random_words};

pub(crate) fn evaluate(cx: Cx<'_>, op: &Op, ty: &TensorType) -> Result<HostTensor, Fault> {
    match op {
        Op::Iota(iota) => iota_tensor(cx, iota.axis, ty),
        Op::Eye(_) => eye(ty),
        op @ nxla_expr::outside!(create) => unreachable!("{} is of another family", op.name()),
    }
}

/// Counts along an axis, or through the whole tensor. Counts wrap in integers that are too
/// narrow, as the conversion of an integer does.
fn iota_tensor(cx: Cx<'_>, axis: Option<usize>, ty: &TensorType) -> Result<HostTensor, Fault> {
    // The result repeats one block, which has `count` numbers, each `inner` times.
    let (count, inner) = match axis {
        Some(axis) => (ty.shape[axis], ty.shape[axis + 1..].iter().product()),
        None => (ty.shape.size(), 1),
    };
    let numbers = context::build_bytes(ty.dtype, &[count].into(), |out| {
        cx.rows(out, ty.dtype.size(), 1, |first, out| count_from(first, ty.dtype, out));
    })?;
    if inner == 1 && count == ty.shape.size() {
        return Ok(context::reshape(numbers, &ty.shape));
    }
    let outer = ty.shape.size().checked_div(count * inner).unwrap_or(0);
    let rule = Strided::new(0, [(outer, 0), (count, 1), (inner, 0)]);
    read(cx, &numbers, &rule, ty)
}

/// Ones on the diagonal of the last two axes.
fn eye(ty: &TensorType) -> Result<HostTensor, Fault> {
    let [.., rows, columns] = ty.shape[..] else { unreachable!("an eye has two axes") };
    let mut result = HostTensor::zeros(ty.dtype, ty.shape.clone())?;
    let matrices = ty.shape.size().checked_div(rows * columns).unwrap_or(0);
    let axes = [(matrices, (rows * columns) as isize), (rows.min(columns), columns as isize + 1)];
    let diagonals = Strided::new(0, axes);
    let ones = HostTensor::full(Scalar::one(ty.dtype), ty.dtype, [diagonals.len()])?;
    diagonals.write_bytes(ty.dtype.size(), ones.bytes(), context::bytes_mut(&mut result));
    Ok(result)
}
