//! Slices at static and dynamic starts, all clamped so that the slice fits.

use nxla_expr::{SliceAttributes, Start, TensorType};
use nxla_tensor::{HostTensor, Shape};

use crate::context::{self, Args, Cx, Fault};
use crate::kernels::elementwise::{convert, owned};
use crate::kernels::movement::{IndexMap, read};
use crate::kernels::strided::Strided;

/// The offset of a slice; `dynamic` returns the dynamic starts in order.
fn offset(
    starts: &[Start],
    mut dynamic: impl Iterator<Item = i64>,
    room: impl Fn(usize) -> usize,
    steps: &[isize],
) -> usize {
    let start = |(axis, start): (usize, &Start)| {
        let start = match start {
            Start::Static(start) => *start,
            Start::Dynamic => dynamic.next().expect("each dynamic start has an operand"),
        };
        start.clamp(0, i64::try_from(room(axis)).unwrap_or(i64::MAX)) as usize
    };
    starts.iter().enumerate().map(start).zip(steps).map(|(at, &step)| at * step as usize).sum()
}

pub(super) fn slice(
    cx: Cx<'_>,
    attributes: &SliceAttributes,
    args: &Args<'_>,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let x = args.get(0);
    let rule = index_map(x.shape(), attributes, operands(args, 1)).rule(&ty.shape);
    read(cx, x, &rule, ty)
}

/// The integers that are operands from `first` on.
fn operands(args: &Args<'_>, first: usize) -> impl Iterator<Item = i64> {
    (first..args.len()).map(|index| context::integer(args.get(index)))
}

/// The elements of a slice whose starts are all constants.
pub(crate) fn known_slice(x: &Shape, attributes: &SliceAttributes) -> IndexMap {
    index_map(x, attributes, std::iter::empty())
}

fn index_map(
    x: &Shape,
    attributes: &SliceAttributes,
    dynamic: impl Iterator<Item = i64>,
) -> IndexMap {
    let room = |axis: usize| x[axis] - attributes.lengths[axis];
    let mut steps = Strided::row_major(x);
    let offset = offset(&attributes.starts, dynamic, room, &steps);
    for (step, &stride) in steps.iter_mut().zip(&attributes.strides) {
        *step *= stride as isize;
    }
    IndexMap { offset, steps }
}

/// Writes into the operand if no other handle exists.
pub(super) fn put_slice(
    cx: Cx<'_>,
    put: &[Start],
    args: &mut Args<'_>,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let update = convert(cx, args.get(1), ty.dtype)?;
    let room = |axis: usize| ty.shape[axis] - update.shape()[axis];
    let steps = Strided::row_major(&ty.shape);
    let offset = offset(put, operands(args, 2), room, &steps);
    let mut result = owned(cx, args.take(0), ty.dtype)?;
    let rule = IndexMap { offset, steps }.rule(update.shape());
    rule.write_bytes(ty.dtype.size(), update.bytes(), context::bytes_mut(&mut result));
    Ok(result)
}
