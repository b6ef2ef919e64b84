//! Tensors made from nothing but their type, and random words.

mod threefry;

use nxla_expr::{Op, TensorType};
use nxla_tensor::{Element, HostTensor, Scalar, match_dtype};

use crate::context;
use crate::context::{Cx, Fault};
use crate::kernels::elementwise::count_from;

pub(crate) use threefry::{random_wide_words, random_words};

pub(crate) fn evaluate(cx: Cx<'_>, op: &Op, ty: &TensorType) -> Result<HostTensor, Fault> {
    match op {
        Op::Iota(iota) => iota_tensor(cx, iota.axis, ty),
        Op::Eye(_) => eye(cx, ty),
        op @ nxla_expr::outside!(create) => unreachable!("{} is of another family", op.name()),
    }
}

/// Counts along an axis, or through the whole tensor. Counts wrap in integers that are too
/// narrow, as the conversion of an integer does.
fn iota_tensor(cx: Cx<'_>, axis: Option<usize>, ty: &TensorType) -> Result<HostTensor, Fault> {
    // Counts repeat in blocks: each number stands for `inner` neighbours, `count` numbers follow.
    let (count, inner) = match axis {
        Some(axis) => (ty.shape[axis], ty.shape[axis + 1..].iter().product()),
        None => (ty.shape.size(), 1),
    };
    let numbers = context::build_bytes(ty.dtype, &[count].into(), |out| {
        cx.rows(out, ty.dtype.size(), 1, |first, out| count_from(first, ty.dtype, out));
    })?;
    if inner == 1 && count == ty.shape.size() {
        return Ok(context::reshaped(numbers, &ty.shape));
    }
    match_dtype!(ty.dtype, T => {
        let numbers = context::slice::<T>(&numbers);
        context::build(ty.dtype, &ty.shape, |out: &mut [T]| {
            if inner == 1 {
                out.chunks_exact_mut(count.max(1)).for_each(|out| out.copy_from_slice(numbers));
            } else if inner > 0 {
                let blocks = out.chunks_exact_mut(inner).zip(numbers.iter().cycle());
                blocks.for_each(|(out, &number)| out.fill(number));
            }
        })
    })
}

/// Ones on the diagonal of the last two axes.
fn eye(cx: Cx<'_>, ty: &TensorType) -> Result<HostTensor, Fault> {
    let [.., rows, columns] = ty.shape[..] else { unreachable!("an eye has two axes") };
    match_dtype!(ty.dtype, T => {
        let (zero, one) = (Scalar::zero(ty.dtype), Scalar::one(ty.dtype));
        let (zero, one) = (T::from_scalar(zero), T::from_scalar(one));
        context::build(ty.dtype, &ty.shape, |out: &mut [T]| {
            cx.rows(out, columns, columns, |first, out| {
                out.fill(zero);
                let (mut row, mut out) = (first % rows, out);
                while !out.is_empty() {
                    let here = out.len().min((rows - row) * columns);
                    let (matrix, rest) = out.split_at_mut(here);
                    let diagonal = matrix.iter_mut().skip(row).step_by(columns + 1);
                    diagonal.take(columns.saturating_sub(row)).for_each(|x| *x = one);
                    (row, out) = (0, rest);
                }
            });
        })
    })
}
